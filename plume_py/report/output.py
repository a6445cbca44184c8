"""Select the renderer of each output format of ``check``, ``test`` and ``watch``. Renderers are imported on demand."""

from collections.abc import Sequence

from plume_py.checking.result import Result

# Formats printed per history, as results arrive. The other formats are one document for all results.
STREAMED = ("text", "jsonl", "github")


def one(output: str, result: Result, *, verbose: bool = False) -> str:
    """Return the output of a streamed format for one result. May be empty."""
    if output == "text":
        from plume_py.report.text import render

        return render(result, verbose=verbose)
    if output == "jsonl":
        from plume_py.report.json import line

        return line(result)
    from plume_py.report import github

    return github.render(result)


def whole(output: str, results: Sequence[Result]) -> str:
    """Return the output of a document format for all results."""
    if output == "dot":
        from plume_py.report import dot

        return dot.render_all([(violation, result.history) for result in results for violation in result.violations])
    if output == "junit":
        from plume_py.report.junit import document
    elif output == "sarif":
        from plume_py.report.sarif import document
    elif output == "elle":
        from plume_py.report.elle import document
    else:
        from plume_py.report.json import document
    return document(results)
