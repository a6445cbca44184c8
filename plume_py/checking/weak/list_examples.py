"""What is wrong with a list that somebody read, in a sentence, and with a step where another transaction matters."""

from plume_py.base.text import display, key_text, txn_text
from plume_py.checking.graph.lists import faults
from plume_py.checking.graph.reads import version_sources
from plume_py.checking.result import Step
from plume_py.checking.steps import StepWriter, list_text
from plume_py.checking.violation import Argument
from plume_py.history.model import APPEND
from plume_py.history.value_codes import Atom
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN


def list_argument(writer: StepWriter, pattern: str, o: int) -> Argument:
    """What is wrong with the list that operation ``o`` read."""
    history = writer.history
    assert history.lists is not None
    read, t, x = writer.read_text(o), writer.owner(o), int(history.op_key[o])
    if pattern == INCOMPATIBLE:
        other = writer.list_op(int(writer.reads.list_reference[x]))
        writer.name(writer.owner(other))
        return Argument([], f"{writer.read_text(other)}, but {read}", [other, o])
    i = int(history.lists.ops.searchsorted(o))
    place = faults(history, writer.reads.judged, version_sources(history), i)[pattern]
    if pattern in "de":
        own = list_text(_appended(writer, t, x, before=o))
        wrong = "does not end in any of these" if pattern == "d" else "does not end in exactly these"
        had = f"{txn_text(writer.name(t))} had appended {own} to {key_text(history.key(x))}"
        return Argument([], f"{had}, but {read}, which {wrong}", [o])
    version = int(history.lists.items[place])
    element, source = display(history.value(version)), int(history.version_writer[version])
    if pattern in (TORN, "f"):
        return _incomplete(writer, pattern, o, version)
    aborted = txn_text(history.txn_label[source]) if pattern == "b" else ""
    why = {
        "a": f"nobody appended {element}",
        "b": f"{element} was appended by {aborted}, which aborted",
        "c": f"{element} is its own, and it appended it only afterwards",
        DUPLICATE: f"{element} is there more than once",
    }[pattern]
    return Argument([], f"{read}: {why}", [o])


def _incomplete(writer: StepWriter, pattern: str, o: int, version: int) -> Argument:
    """The list does not show all appends of one writer, among them ``version``, together and in order."""
    history = writer.history
    source, value = int(history.version_writer[version]), history.value(version)
    appended = _appended(writer, source, int(history.op_key[o]))
    items = history.op(o).value
    assert isinstance(items, tuple)
    visible = [v for v, t in zip(items, writer.list_writers(o), strict=True) if t == source]
    missing = [v for v in appended if v not in visible]
    names, key = (writer.name(source), writer.name(writer.owner(o))), writer.key(int(history.op_key[o]))
    theirs = f"{txn_text(names[0])}'s append"
    if pattern == "f":
        how = (
            f"{theirs} of {display(value)}, but not of {display(missing[0])}, which followed it" if missing else theirs
        )
    elif missing:
        how = f"{theirs} of {display(visible[0])} but not of {display(missing[0])}"
    elif visible == appended:
        how = f"{theirs}s {list_text(appended)} apart"
    else:
        how = f"{theirs}s {list_text(appended)} in another order"
    read, wrote = writer.read_text(o), writer.write_op(source, version)
    step = Step(*names, "WR", key, read, value, source_op=wrote, target_op=o)
    return Argument([step], f"{read}: that shows {how}", [o])


def _appended(writer: StepWriter, t: int, x: int, before: int | None = None) -> list[Atom]:
    """What t appended to x, in program order, up to operation ``before``."""
    history = writer.history
    ops = range(int(history.txn_start[t]), int(history.txn_start[t + 1]) if before is None else before)
    mine = [o for o in ops if history.op_kind[o] == APPEND and history.op_key[o] == x]
    return [history.value(int(history.op_version[o])) for o in mine]
