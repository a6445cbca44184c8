r"""Keys and values of Jepsen histories that are neither integers nor plain strings, as strings.

The model knows integers and strings only. A keyword, a float, a boolean, a ratio and a vector become the text that EDN
has for them: ``:x``, ``1.5``, ``true``, ``1/2``, ``[1 "a"]``. A string stays as it is, unless that would make it look
like one of those: then it keeps its quotes (the string ``"1.5"`` is ``"1.5"`` with quotes, the float is ``1.5``
without), and so does a string that looks like such a string. So no two atoms share a text, and every text stands for
exactly one atom: ``written`` finds it again. Symbols and characters, which no workload uses, count as strings.
"""

import re

import msgspec

# The kernel puts this before a string that may look like something else; ``Pairing`` looks at no other strings.
MARK = "\0"
MARK_IN_JSON = b'"\\u0000'

# What the kernel makes of a set: an object with this one key, which no map can have (the string is marked).
SET = "#{}"

_KEYWORD = r":(?!:)[A-Za-z0-9.*!_?$%&=<>/|+\-:#'\u0080-\U0010ffff]+"
_FLOAT = r"-?[0-9]+(?:\.[0-9]+(?:e[+-][0-9]+)?|e[+-][0-9]+)"
_EXACT = r"-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)M|-?[0-9]+/[0-9]+|-?0[xX][0-9a-fA-F]+"
_SPECIAL = r"true|false|##[A-Za-z-]+"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"'
_SCALAR = re.compile(rf"{_KEYWORD}|{_FLOAT}|{_EXACT}|{_SPECIAL}")
_TOKEN = re.compile(rf"{_STRING}|{_KEYWORD}|{_EXACT}|{_FLOAT}|{_SPECIAL}|nil|-?[0-9]+|\[|\]")
_A_FLOAT = re.compile(_FLOAT)


def text_of(atom: object, *, marked: bool) -> int | str | None:
    """The key or value that stands for a decoded one; ``marked``: it comes from the kernel. TypeError if none does."""
    if isinstance(atom, str):
        if not marked:
            return _quoted_if_odd(atom)
        return _quoted_if_odd(atom[1:]) if atom.startswith(MARK) else atom
    if atom is None or type(atom) is int:
        return atom
    if isinstance(atom, bool | float | list):
        return _edn(atom, marked)
    raise TypeError


def written(text: str) -> str:
    """The EDN that is read as ``text``: a keyword, a number, …, or a string."""
    return text if _is_odd(text) else msgspec.json.encode(string_of(text)).decode()


def string_of(text: str) -> str:
    """The string that ``text`` stands for, unless it stands for something else."""
    inner = text[1:-1]
    return inner if len(text) > 1 and text[0] == text[-1] == '"' and _is_odd(_core(inner)) else text


def _quoted_if_odd(string: str) -> str:
    return f'"{string}"' if _is_odd(_core(string)) else string


def _core(string: str) -> str:
    """What is left of a string without the quotes around it."""
    quotes = min(len(string) - len(string.lstrip('"')), len(string) - len(string.rstrip('"')), len(string) // 2)
    return string[quotes : len(string) - quotes]


def _is_odd(text: str) -> bool:
    """Is this the text of something that is no string?"""
    if text[:1] == "[":
        return text[-1:] == "]" and _is_vector(text)
    return _SCALAR.fullmatch(text) is not None and _is_canonical(text)


def _is_canonical(token: str) -> bool:
    return _A_FLOAT.fullmatch(token) is None or _float(float(token)) == token


def _is_vector(text: str) -> bool:
    """Is this a vector, spelled as ``_edn`` does?"""
    depth, at, space = 0, 0, True
    while at < len(text):
        if text[at] == " ":
            if space or text[at + 1 : at + 2] in ("", " ", "]"):
                return False
            at, space = at + 1, True
            continue
        found = _TOKEN.match(text, at)
        if found is None or not (space or found[0] == "]") or not _is_canonical(found[0]):
            return False
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        at, space = found.end(), found[0] == "["
        if depth <= 0:
            break
    return depth == 0 and at == len(text)


def _edn(form: object, marked: bool) -> str:
    """A decoded form as EDN; TypeError for sets and maps."""
    if isinstance(form, list):
        return f"[{' '.join(_edn(inner, marked) for inner in form)}]"
    if form is None or isinstance(form, bool):
        return {None: "nil", True: "true", False: "false"}[form]
    if isinstance(form, int):
        return str(form)
    if isinstance(form, float):
        return _float(form)
    if isinstance(form, str):
        if marked and not form.startswith(MARK) and _SCALAR.fullmatch(form):
            return form
        return msgspec.json.encode(form.removeprefix(MARK) if marked else form).decode()
    raise TypeError


def _float(number: float) -> str:
    return repr(number + 0.0)  # there is only one zero
