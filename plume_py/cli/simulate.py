"""``isocheck simulate``: a workload on a simulated protocol that keeps a level per transaction."""

from typing import TYPE_CHECKING

import click

from plume_py.base.errors import LimitError
from plume_py.base.exits import ExitCode, combined, exit_code
from plume_py.base.text import one_line
from plume_py.cli.common_options import tell_written, timeout_option

if TYPE_CHECKING:
    from plume_py.history.model import History
    from plume_py.reasoning.allocate.trial import Trial

PROTOCOLS = ("si-s2pl", "pc-si-ser")
ALLOCATIONS = ("weakest", "si-ser", "ser", "random")


@click.command("simulate")
@click.argument("source", metavar="WORKLOAD")
@click.option("--protocol", type=click.Choice(PROTOCOLS), default="pc-si-ser", show_default=True)
@click.option("--allocation", type=click.Choice(ALLOCATIONS), default="weakest", show_default=True)
@click.option("--sessions", type=click.IntRange(1, 10_000), default=10, show_default=True)
@click.option("--instances", type=click.IntRange(1, 1_000_000), default=200, show_default=True, help="If programs.")
@click.option("--largest", type=click.IntRange(min=1), default=500, show_default=True, help="Parameter value.")
@click.option("--runs", type=click.IntRange(1, 100_000), default=5, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--bug", default="", help="A mistake in the protocol; an unknown one lists them.")
@click.option("--costs", metavar="NAME=VALUE,…", default="", help="What takes how long; an unknown name lists them.")
@timeout_option("Seconds in all.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write a history (of the first bad run, else the last).")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    source: str,
    protocol: str,
    allocation: str,
    sessions: int,
    instances: int,
    largest: int,
    runs: int,
    seed: int,
    bug: str,
    costs: str,
    timeout: float | None,
    out: str | None,
) -> None:
    """Run a workload on a simulated protocol and check what came of it at the declared levels.

    Exit code: 0 every run keeps its levels (and is serializable, except with --allocation random), 1 some run does not,
    2 wrong usage, 3 the time was up before all runs and none had broken them, 4 WORKLOAD could not be read.

    \b
    Examples:
      isocheck simulate smallbank --runs 20
      isocheck simulate tpcc --allocation random --out run.json
      isocheck simulate smallbank --allocation ser --costs data=replicated,nodes=10,validation=each
    """
    from plume_py.reasoning.allocate.trial import summarize
    from plume_py.report.text import render

    tried, stopped = _tried(source, instances, largest, sessions, protocol, allocation, runs, seed, bug, costs, timeout)
    if not tried:
        click.echo(one_line(f"undecided: {stopped}"))
        ctx.exit(ExitCode.UNDECIDED)
    told = summarize(tried)
    click.echo(f"{source} on {protocol}{f' with the bug {bug}' if bug else ''}, allocation {allocation}")
    click.echo(f"  {told.runs} runs of {len(tried[0].levels)} transactions in {sessions} sessions")
    if costs:
        click.echo(one_line(f"  costs {costs}"))
    click.echo(f"  median {told.throughput:.1f} transactions/s, latency {told.latency * 1000:.0f} ms (simulated)")
    click.echo(f"  median {told.aborted:.0f} attempts aborted")
    for level, count in told.broken.items():
        click.echo(f"  {level} violated in {count} of {told.runs} runs")
    if told.undecided:
        click.echo(f"  undecided in {told.undecided} of {told.runs} runs")
    if stopped:
        click.echo(one_line(f"  {stopped}, before all {runs} runs"))
    bad = [trial for trial in tried if trial.result.ok is False]
    if bad:
        click.echo("")
        click.echo(render(bad[0].result))
    if out is not None:
        _write((bad or tried[-1:])[0].outcome.history, out)
    codes = [exit_code(trial.result.ok, None) for trial in tried]
    ctx.exit(combined([*codes, ExitCode.UNDECIDED] if stopped else codes))


def _tried(
    source: str,
    instances: int,
    largest: int,
    sessions: int,
    protocol: str,
    allocation: str,
    runs: int,
    seed: int,
    bug: str,
    costs: str,
    timeout: float | None,
) -> "tuple[list[Trial], str]":
    """The runs, as many as there is time for, and why it is not all of them."""
    from plume_py.base.limits import Limits
    from plume_py.base.memory import share_of_machine
    from plume_py.reasoning.allocate.driver import Drawing, open_space, open_workload
    from plume_py.reasoning.allocate.simulate import parse_cost_model
    from plume_py.reasoning.allocate.trial import in_sessions, trials

    tried: list[Trial] = []
    cost_model = parse_cost_model(costs)
    limits = Limits(timeout, share_of_machine(1))
    try:
        with limits.enforced():
            opened = open_workload(source)
            drawing = Drawing(None if opened.instances else instances, largest, seed)
            workload = in_sessions(open_space(opened, "instance", True, drawing)[2], sessions, seed)
            for trial in trials(
                workload, protocol, allocation, runs, seed=seed, bug=bug, costs=cost_model, limits=limits
            ):
                tried.append(trial)
    except LimitError as error:
        return tried, str(error)
    return tried, ""


def _write(history: "History", out: str) -> None:
    from plume_py.base.atomic_files import write_atomically
    from plume_py.history.formats.json_writer import write_json

    write_atomically(out, write_json(history).chunks)
    tell_written(out)
