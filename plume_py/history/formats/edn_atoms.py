r"""Spell keys and values of Jepsen histories that are neither integers nor plain strings as strings.

The model has only integers and strings. A keyword, a float, a boolean, a ratio, a character and a vector become their
EDN text: ``:x``, ``1.5``, ``true``, ``1/2``, ``\a``, ``[1 "a"]``; a symbol gets a quote, ``'x``. A string is kept,
unless it looks like such a text. Then it keeps its quotes: the string ``"1.5"`` has quotes, the float ``1.5`` has none.
A string that looks like a quoted string also keeps its quotes. So two atoms never share a text, and ``written`` inverts
the mapping.

Numbers are equal if Clojure's ``=`` says so: ``0x10``, ``020`` and ``16r10`` are 16, ``4/2`` is 2, ``1.0M`` is ``1M``.
"""

import re
from decimal import Decimal
from math import gcd

import msgspec

from plume_py.history.formats.edn_kernels import MAX_TEXT

# The kernel puts this before a string that may look like another kind of atom; only these strings are examined.
MARK = "\0"
# The kernel puts this before the text of a character, a symbol, or a number that JSON does not have.
EXACT = "\x7f"
MARKED = re.compile(rb'"(?:\\u0000|\x7f)')

# The kernel turns a set into an object with this single key, which no map can have (such a string is marked).
SET = "#{}"

# The characters of symbols and keywords, and the start of a symbol.
_IN_NAME = r"[A-Za-z0-9.*!_?$%&=<>/|+\-:#'\u0080-\U0010ffff]"
_SYMBOL = rf"(?:[A-Za-z.*!_?$%&=<>/|\u0080-\U0010ffff]|[+-](?![0-9])){_IN_NAME}*"
_KEYWORD = rf":(?!:){_IN_NAME}+"
_FLOAT = r"-?[0-9]+(?:\.[0-9]+(?:e[+-][0-9]+)?|e[+-][0-9]+)"
_EXACT = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?M|-?[0-9]+/[0-9]+"
_SPECIAL = r"true|false|##[A-Za-z-]+"
_CHARACTER = r"\\(?:[a-z]{3,}|u[0-9a-f]{4}|[^\x00-\x20,\x7f])"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"'
_SCALAR = re.compile(rf"{_KEYWORD}|{_FLOAT}|{_EXACT}|{_SPECIAL}|{_CHARACTER}|'(?!(?:nil|true|false)\Z){_SYMBOL}")
_TOKEN = re.compile(
    rf"{_STRING}|\[|\]|(?:{_KEYWORD}|{_EXACT}|{_FLOAT}|{_SPECIAL}|nil|-?[0-9]+|{_CHARACTER}|{_SYMBOL})(?=[ \]]|\Z)"
)
_A_FLOAT = re.compile(_FLOAT)
_AN_EXACT = re.compile(_EXACT)

# Characters with a name.
_NAMES = {"\n": "newline", " ": "space", "\t": "tab", "\r": "return", "\f": "formfeed", "\b": "backspace"}
_NAMED = {name: character for character, name in _NAMES.items()}


def text_of(atom: object, *, marked: bool) -> int | str | None:
    """Return the key or value for a decoded atom. Raise TypeError if there is none.

    ``marked``: the atom comes from the EDN kernel, with its marks.
    """
    if isinstance(atom, str):
        if not marked:
            return _quoted_if_ambiguous(atom)
        if atom.startswith(EXACT):
            exact = _exact(atom[1:])
            return f"'{exact}" if isinstance(exact, str) and _is_symbol(atom[1:]) else exact
        return _quoted_if_ambiguous(atom[1:]) if atom.startswith(MARK) else atom
    if atom is None or type(atom) is int:
        return atom
    if isinstance(atom, bool | float | list):
        return _edn(atom, marked)
    raise TypeError


def written(text: str) -> str:
    """Return the EDN that is read as ``text``: a keyword, a number, a string and so on."""
    if text[:1] == "'" and _is_text_of_other_atom(text):
        return text[1:]
    return text if _is_text_of_other_atom(text) else msgspec.json.encode(string_of(text)).decode()


def string_of(text: str) -> str:
    """Return the string that ``text`` represents, or ``text`` if it represents another kind of atom."""
    inner = text[1:-1]
    return inner if len(text) > 1 and text[0] == text[-1] == '"' and _is_text_of_other_atom(_core(inner)) else text


def _quoted_if_ambiguous(string: str) -> str:
    return f'"{string}"' if _is_text_of_other_atom(_core(string)) else string


def _core(string: str) -> str:
    """Return the string without the quotes around it."""
    quotes = min(len(string) - len(string.lstrip('"')), len(string) - len(string.rstrip('"')), len(string) // 2)
    return string[quotes : len(string) - quotes]


def _is_text_of_other_atom(text: str) -> bool:
    """Return whether ``text`` is the text of an atom that is not a string."""
    if text[:1] == "[":
        return text[-1:] == "]" and _is_vector(text)
    return _SCALAR.fullmatch(text) is not None and _is_canonical(text)


def _is_canonical(token: str) -> bool:
    if token[:1] == "\\":
        inner = token[1:]
        character = _NAMED.get(inner) if inner[0] != "u" or len(inner) == 1 else chr(int(inner[1:], 16))
        return _character(inner if len(inner) == 1 else character or "") == token
    if _AN_EXACT.fullmatch(token):
        by_zero = "/" in token and not token.split("/")[1].strip("0")
        return len(token) <= MAX_TEXT and not by_zero and _exact(token) == token
    return _A_FLOAT.fullmatch(token) is None or _float(float(token)) == token


def _is_symbol(token: str) -> bool:
    """Return whether a text with the mark EXACT is a symbol."""
    return token[0] != "\\" and not token.lstrip("+-")[:1].isdecimal()


def _exact(token: str) -> int | str:
    """Return the integer or text for a token that JSON does not have: a number, a character or a symbol."""
    if token[0] == "\\":
        return _character(token[1:])
    if _is_symbol(token):
        return token
    sign, digits = ("-", token[1:]) if token[0] == "-" else ("", token.removeprefix("+"))
    if "/" in digits:
        above, below = map(int, digits.split("/"))
        common = gcd(above, below)
        return int(f"{sign}{above // common}") if below == common else f"{sign}{above // common}/{below // common}"
    if digits[-1] == "M":
        return _decimal(sign, digits[:-1])
    base, _, digits = digits.replace("R", "r").rpartition("r")
    return int(sign + digits, int(base)) if base else int(sign + digits, 16 if digits[1:2] in ("x", "X") else 8)


def _decimal(sign: str, digits: str) -> str:
    """Return an exact decimal number without insignificant zeros."""
    try:
        number = Decimal(digits).as_tuple()
    except ArithmeticError:  # an exponent of 18 digits
        return f"{sign}{digits}M"
    text = "".join(map(str, number.digits))
    short = text.rstrip("0")
    if not short:
        return "0M"
    exponent = int(number.exponent) + len(text) - len(short)
    if 0 < exponent < 20:
        short, exponent = short + "0" * exponent, 0
    return f"{sign}{Decimal((0, tuple(map(int, short)), exponent))}M"


def _character(character: str) -> str:
    r"""Return a character in EDN: ``\a``, its name, or its number."""
    if character in _NAMES:
        return f"\\{_NAMES[character]}"
    plain = len(character) == 1 and character > " " and character not in ",\x7f"
    return f"\\{character}" if plain else "".join(f"\\u{ord(one):04x}" for one in character)


def _is_vector(text: str) -> bool:
    """Return whether ``text`` is a vector as ``_edn`` spells it."""
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
    """Return a decoded form as EDN. Raise TypeError for sets and maps."""
    if isinstance(form, list):
        return f"[{' '.join(_edn(inner, marked) for inner in form)}]"
    if form is None or isinstance(form, bool):
        return {None: "nil", True: "true", False: "false"}[form]
    if isinstance(form, int):
        return str(form)
    if isinstance(form, float):
        return _float(form)
    if isinstance(form, str):
        if marked and form.startswith(EXACT):
            return str(_exact(form[1:]))
        if marked and not form.startswith(MARK) and _SCALAR.fullmatch(form):
            return form
        return msgspec.json.encode(form.removeprefix(MARK) if marked else form).decode()
    raise TypeError


def _float(number: float) -> str:
    return repr(number + 0.0)  # -0.0 becomes 0.0
