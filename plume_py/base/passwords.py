"""Passwords in addresses of databases and files, however wrongly written: none may be shown, by us or a driver.

Whoever is given an address says so (``keep_secret``); every line for people goes through ``redacted``, by ``one_line``.
"""

import re
from functools import cache

HIDDEN = "***"

# Names of parameters whose values are nobody's business.
_SECRET_NAME = re.compile(
    r"pass|pwd|secret|token|signature|credential|api.?key|access.?key|authorization|(?<![a-z])(?:sig|auth)(?![a-z])",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"([^\s?&;=/:@]+)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&;]*)")
_USER = re.compile(r"^([^:]*://[^:/@]*):.*@|^((?:[^:/@?]*:)?[^:/@?]*):(?!//)[^?]*@", re.DOTALL)
# As those who open a URL take it apart: a user with a password before the host; parameters.
_URL_USER = re.compile(r"(://[^/?#:]*):[^/?#]*@")
# One inside another, as in zip://history.json::https://host/archive.zip.
_URL_CHAIN = re.compile(r"::(?=[\w+.-]+://)")
# The same with a slash in the password, as some have: no host and port.
_URL_ODD = re.compile(r"://[^/?#:@\[]*:(?![0-9]*[/?#])[^/?#@]*[/?#].*@", re.DOTALL)
_URL_PARAMETER = re.compile(r"([?&;#])([^?&;#=/]*)=[^?&;#]*")
# Shorter ones are only taken out where they stand by themselves: they are part of many words.
_SHORT = 4
# A password may hold colons and at signs; an address of more than so many is none.
_MANY = 20

_kept: dict[str, None] = {}


def keep_secret(address: str) -> None:
    """From now on, the passwords of this address are left out of what is told."""
    if _patterns(address) or without_password(address) != address:  # most words hold no secret
        _kept[address] = None


def without_password(address: str) -> str:
    """An address that may be written down, also if it is not a valid one: passwords like to have odd characters."""
    start, mark, query = _USER.sub(lambda user: f"{user[1] or user[2]}@", address).partition("?")
    kept = [piece for piece in query.split("&") if not _is_secret(piece.partition("=")[0])]
    shown = _PARAMETER.sub(_hide, start) + (mark if any(kept) else "") + "&".join(kept)
    return _PARAMETER.sub(_hide, shown)


def without_credentials(url: str) -> str:
    """A URL that was opened, and so is written well, as it may be written down: what is no secret stays as it is.

    ``without_password`` rather takes away too much, so that two files could get one name.
    """
    first, *others = _URL_CHAIN.split(url, maxsplit=1)
    if others:
        return f"{without_credentials(first)}::{without_credentials(others[0])}"
    if _URL_ODD.search(url):
        return without_password(url)
    place, *more = re.split(r"(?=[?#])", _URL_USER.sub(r"\1@", url), maxsplit=1)
    return place + _URL_PARAMETER.sub(_hide_value, "".join(more))


def _hide_value(parameter: re.Match[str]) -> str:
    return parameter[0] if not _is_secret(parameter[2]) else f"{parameter[1]}{parameter[2]}={HIDDEN}"


def redacted(text: str) -> str:
    """``text`` without the passwords of all addresses so far."""
    for address in list(_kept):  # another thread may add one
        text = without_those_of(address, text)
    return text


def without_those_of(address: str, text: str) -> str:
    """``text`` without the passwords of this address."""
    if len(address) > 1:
        text = text.replace(address, without_password(address))
    for pattern in _patterns(address):
        text = pattern.sub(HIDDEN, text)
    return text


def _is_secret(name: str) -> bool:
    if "%" in name:
        from urllib.parse import unquote

        name = unquote(name)
    return _SECRET_NAME.search(name) is not None


def _hide(parameter: re.Match[str]) -> str:
    return parameter[0] if not _is_secret(parameter[1]) else f"{parameter[1]}{parameter[2]}{HIDDEN}"


@cache
def _patterns(address: str) -> tuple[re.Pattern[str], ...]:
    """What to look for, the longest first: a part of it may be quoted alone, and in another spelling."""
    secrets = _secrets(address)
    if not secrets:
        return ()
    from urllib.parse import quote, unquote, unquote_plus

    spelled = {
        spelling
        for secret in secrets
        for spelling in (secret, unquote(secret), unquote_plus(secret), quote(secret), repr(secret)[1:-1])
    }
    return tuple(
        re.compile(re.escape(s) if len(s) >= _SHORT else rf"(?<!\w){re.escape(s)}(?!\w)")
        for s in sorted(spelled, key=lambda s: (-len(s), s))
        if len(s) > 1 or s.isalnum()
    )


def _secrets(address: str) -> set[str]:
    """Whatever could be a password in it: between a colon and an at sign, or the value of a parameter."""
    colons = [place for place, character in enumerate(address) if character == ":"][:_MANY]
    ats = [place for place, character in enumerate(address) if character == "@"][-_MANY:]
    found = {address[a + 1 : b] for a in colons for b in ats if a + 1 < b and address[a + 1 : a + 3] != "//"}
    for parameter in _PARAMETER.finditer(address):
        if _is_secret(parameter[1]):
            rest = address[parameter.start(3) :]
            found |= {parameter[3], parameter[3].strip("'"), *rest.split(maxsplit=1)[:1]}
    # a driver that takes the address apart in another way quotes a piece of it
    pieces = {piece for secret in found for piece in re.split(r"[\s/?#@:%\[\]&;']", secret) if len(piece) > 2}
    return {secret for secret in found | (pieces - _public(address)) if secret}


def _public(address: str) -> set[str]:
    """The words of the address without its password: the host, the user and the database may be told."""
    return set(re.split(r"\W+", without_password(address)))
