"""The output formats of ``check``: which renderer each has. Nothing is imported before it is needed."""

from collections.abc import Sequence

from plume_py.checking.result import Result

# Printed history by history, as results come in.
STREAMED = ("text", "jsonl", "github")
# Printed once, for all.
DOCUMENTS = ("json", "junit", "sarif", "dot", "elle")


def one(output: str, result: Result, *, verbose: bool = False) -> str:
    """What a streamed format prints for one result; may be empty."""
    if output == "text":
        from plume_py.report.text import render

        return render(result, verbose=verbose)
    if output == "jsonl":
        from plume_py.report.json import line

        return line(result)
    from plume_py.report import github

    return github.render(result)


def whole(output: str, results: Sequence[Result]) -> str:
    """What a document format prints for all results."""
    if output == "junit":
        from plume_py.report import junit

        return junit.document(results)
    if output == "sarif":
        from plume_py.report import sarif

        return sarif.document(results)
    if output == "dot":
        from plume_py.report import dot

        return dot.render_all([(violation, result.history) for result in results for violation in result.violations])
    if output == "elle":
        from plume_py.report import elle

        return elle.document(results)
    from plume_py.report import json

    return json.document(results)
