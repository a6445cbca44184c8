"""The prose of the code: short sentences, and the words of docs/glossary.md and the style instead of riddles."""

import ast
import io
import re
import tokenize

import pytest
from paths import ROOT

# Each hides who acts, or has a plain equivalent: the actor's name, "reports", "is", "violates", "the remaining ...".
REJECTED = re.compile(
    r"\b(?:who|whom|whoever|whose|nobody|somebody|told|tells?|stands?|stood|likewise|besides|anew|in itself|by itself"
    r"|at hand|the rest|those that|those of|is had|be had|goes wrong|went wrong|mend(?:s|ed|ing)?|apart|of its own"
    r"|of their own|what (?:is|was|are|were) (?:there|asked|found|left|read|given|broken|wrong))\b",
    re.I,
)
LONGEST = 25  # words
TOLERATED = 1.5  # rejected words in 1,000
TOLERATED_LENGTH = 0.05  # of the sentences


def files():
    return sorted((ROOT / "plume_py").rglob("*.py"))


def comments(source):
    """Yield each block of consecutive comment lines."""
    block, last = [], -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "# noqa", "# type:")):
            if token.start[0] != last + 1 and block:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(block)


def docstrings(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                if not part.lstrip().startswith((">>>", "..")):
                    yield " ".join(part.split())


def texts():
    """Yield (file, text) of every docstring and comment, without names in backticks."""
    for path in files():
        source = path.read_text()
        for text in (*docstrings(source), *comments(source)):
            yield path, re.sub(r"`[^`]*`", "X", text)


def sentences(text):
    return re.split(r"(?<=[.!?:])\s+(?=[A-Z\"'(\[])", text)


def words(text):
    return re.findall(r"[A-Za-z][\w'-]*", text)


def test_sentences_are_short():
    found = [(path, sentence) for path, text in texts() for sentence in sentences(text) if words(sentence)]
    long = [f"{path.relative_to(ROOT)}: {sentence}" for path, sentence in found if len(words(sentence)) > LONGEST]
    assert len(long) <= TOLERATED_LENGTH * len(found), "\n".join(long)


def test_words_are_plain():
    hits, total = [], 0
    for path, text in texts():
        total += len(words(text))
        hits += [f"{path.relative_to(ROOT)}: {hit}: {text}" for hit in REJECTED.findall(text)]
    assert len(hits) <= TOLERATED * total / 1000, "\n".join(hits)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_does(path):
    """A statement of at least three words; an empty file needs none."""
    text = path.read_text()
    description = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    assert not text or len(words(description)) >= 3
    assert not description.endswith("?")
