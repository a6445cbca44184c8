"""The nodes on which transactions ran, if a native history names them.

No verdict depends on nodes, so the readers skip them. Commands that print or convert a history read them here.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from plume_py.base.errors import IsocheckError
from plume_py.history.model import History
from plume_py.history.source import Source

_MARK = b'"node"'


class NodeEntry(msgspec.Struct):
    """The id and the node of a transaction."""

    id: str | int | None = None
    node: str = ""


class _Document(msgspec.Struct):
    sessions: list[list[NodeEntry]]


_lines, _documents = msgspec.json.Decoder(NodeEntry), msgspec.json.Decoder(_Document)


def placed_in(path: str, format: str | None, largest: int | None = None) -> dict[int, NodeEntry]:
    """Return the transactions that name a node: by number for JSON, by line for JSON Lines.

    A JSON file of more than ``largest`` bytes is not read again.
    """
    if format not in ("json", "jsonl") or not os.path.isfile(path):
        return {}
    if format == "json" and largest is not None and os.path.getsize(path) > largest:
        return {}
    source = Source(path)
    try:
        return dict(_of_document(source) if format == "json" else _of_lines(source))
    except (OSError, IsocheckError, msgspec.MsgspecError, RecursionError):
        return {}  # a "node" field of another type, or the file has changed
    finally:
        source.close()


def _of_document(source: Source) -> Iterator[tuple[int, NodeEntry]]:
    content = bytes(source.content())
    sessions = _documents.decode(content).sessions if _MARK in content else []
    yield from enumerate(txn for session in sessions for txn in session)


def _of_lines(source: Source) -> Iterator[tuple[int, NodeEntry]]:
    number = 1
    for chunk in source.lines():
        for at, line in enumerate(bytes(chunk).split(b"\n") if _MARK in chunk else ()):
            if _MARK in line:
                yield number + at, _lines.decode(line)
        number += bytes(chunk).count(b"\n")


def with_nodes(history: History, path: str) -> History:
    """Return ``history``, which was read from the file at ``path``, with the nodes that the file names."""
    placed = placed_in(path, history.format)
    places: Iterable[int] = range(history.transactions)
    if history.format == "jsonl":
        places = history.txn_line.tolist() if history.txn_line is not None else ()
    nodes = tuple(
        found.node if (found := placed.get(place)) is not None and found.id in (None, history.txn_label[t]) else ""
        for t, place in enumerate(places)
    )
    return replace(history, txn_node=nodes) if any(nodes) else history


def placed_as(history: History, whole: History) -> History:
    """Return ``history``, a part of ``whole``, with the nodes of its transactions, which it finds by id."""
    if whole.txn_node is None:
        return history
    named = {whole.txn_label[t]: node for t, node in enumerate(whole.txn_node)}
    nodes = tuple(named.get(history.txn_label[t], "") for t in range(history.transactions))
    return replace(history, txn_node=nodes) if any(nodes) else history
