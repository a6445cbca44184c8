"""Keep passwords in addresses of databases and files out of all output, also if the address is malformed.

A command that receives an address calls ``keep_secret``. ``text.one_line`` passes every message through ``redacted``,
because drivers quote addresses, or pieces of them, in their errors.
"""

import re
from functools import cache

HIDDEN = "***"

# Names of parameters with secret values.
_SECRET_NAME = re.compile(
    r"pass|pwd|secret|token|signature|credential|api.?key|access.?key|authorization|(?<![a-z])(?:sig|auth)(?![a-z])",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"([^\s?&;=/:@]+)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&;]*)")
_USER = re.compile(r"^([^:]*://[^:/@]*):.*@|^((?:[^:/@?]*:)?[^:/@?]*):(?!//)[^?]*@", re.DOTALL)
# User and password before the host, and parameters, as libraries that open URLs split them.
_URL_USER = re.compile(r"(://[^/?#:]*):[^/?#]*@")
# A URL inside another one, as in zip://history.json::https://host/archive.zip.
_URL_CHAIN = re.compile(r"::(?=[\w+.-]+://)")
# User and password with a slash in the password, so that no host and port follow the colon.
_URL_ODD = re.compile(r"://[^/?#:@\[]*:(?![0-9]*[/?#])[^/?#@]*[/?#].*@", re.DOTALL)
_URL_PARAMETER = re.compile(r"([?&;#])([^?&;#=/]*)=[^?&;#]*")
# Shorter passwords are removed only as whole words, because they are part of many words.
_SHORT = 4
# Number of colons and at signs that are considered: a password may contain both.
_MANY = 20

_kept: dict[str, None] = {}


def keep_secret(address: str) -> None:
    """Remove the passwords of this address from all later output."""
    if _patterns(address) or without_password(address) != address:  # most words contain no secret
        _kept[address] = None


def without_password(address: str) -> str:
    """Return the address without passwords, also if it is malformed, as passwords with odd characters make it."""
    start, mark, query = _USER.sub(lambda user: f"{user[1] or user[2]}@", address).partition("?")
    kept = [piece for piece in query.split("&") if not _is_secret(piece.partition("=")[0])]
    shown = _PARAMETER.sub(_hide, start) + (mark if any(kept) else "") + "&".join(kept)
    return _PARAMETER.sub(_hide, shown)


def without_credentials(url: str) -> str:
    """Return a well-formed URL, such as one that was opened, without passwords and otherwise unchanged.

    ``without_password`` removes more than necessary, so two files could get the same name.
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
    """Return ``text`` without the passwords of all addresses given to ``keep_secret``."""
    for address in list(_kept):  # another thread may add one
        text = without_those_of(address, text)
    return text


def without_those_of(address: str, text: str) -> str:
    """Return ``text`` without the passwords of this address."""
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
    """Return patterns of the passwords and their parts in several spellings, the longest first."""
    secrets = _secrets(address)
    if not secrets:
        return ()
    from urllib.parse import quote, unquote, unquote_plus

    spellings = {
        spelling
        for secret in secrets
        for spelling in (secret, unquote(secret), unquote_plus(secret), quote(secret), repr(secret)[1:-1])
    }
    return tuple(
        re.compile(re.escape(s) if len(s) >= _SHORT else rf"(?<!\w){re.escape(s)}(?!\w)")
        for s in sorted(spellings, key=lambda s: (-len(s), s))
        if len(s) > 1 or s.isalnum()
    )


def _secrets(address: str) -> set[str]:
    """Return all that could be a password: between a colon and an at sign, or the value of a secret parameter."""
    colons = [position for position, character in enumerate(address) if character == ":"][:_MANY]
    ats = [position for position, character in enumerate(address) if character == "@"][-_MANY:]
    found = {address[a + 1 : b] for a in colons for b in ats if a + 1 < b and address[a + 1 : a + 3] != "//"}
    for parameter in _PARAMETER.finditer(address):
        if _is_secret(parameter[1]):
            rest = address[parameter.start(3) :]
            found |= {parameter[3], parameter[3].strip("'"), *rest.split(maxsplit=1)[:1]}
    # a driver that splits the address in another way quotes a piece of the password
    pieces = {piece for secret in found for piece in re.split(r"[\s/?#@:%\[\]&;']", secret) if len(piece) > 2}
    return {secret for secret in found | (pieces - _public(address)) if secret}


def _public(address: str) -> set[str]:
    """Return the words of the address without its password: host, user and database may be shown."""
    return set(re.split(r"\W+", without_password(address)))
