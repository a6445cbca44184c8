"""``isocheck simulate``: run a workload on a simulated protocol with a level per transaction."""

from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, LimitError, combined, exit_code
from plume_py.base.text import one_line
from plume_py.cli.common_options import limits_of, tell_written, timeout_option, write_history

if TYPE_CHECKING:
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
def command(ctx: click.Context, /, source: str, out: str | None, **params: Any) -> None:
    """Run a workload on a simulated protocol and check what came of it at the declared levels.

    Exit code: 0 every run keeps its levels (and is serializable, except with --allocation random), 1 some run does not,
    2 wrong usage, 3 the time was up before all runs and none had broken them, 4 WORKLOAD could not be read.

    \b
    Examples:
      isocheck simulate smallbank --runs 20
      isocheck simulate tpcc --allocation random --out run.json
      isocheck simulate smallbank --allocation ser --costs data=replicated,nodes=10,validation=each
    """
    from plume_py.report.text import render

    done, stopped = _run(source, params)
    if not done:
        click.echo(one_line(f"undecided: {stopped}"))
        ctx.exit(ExitCode.UNDECIDED)
    _print_summary(source, done, stopped, params)
    bad = [trial for trial in done if trial.result.ok is False]
    if bad:
        click.echo("")
        click.echo(render(bad[0].result))
    if out is not None:
        write_history(out, (bad or done[-1:])[0].outcome.history)
        tell_written(out)
    codes = [exit_code(trial.result.ok, None) for trial in done]
    ctx.exit(combined([*codes, ExitCode.UNDECIDED] if stopped else codes))


def _run(source: str, params: dict[str, Any]) -> "tuple[list[Trial], str]":
    """Return the runs that the time limit allows, and the reason if some are missing."""
    from plume_py.reasoning.allocate.driver import Drawing, open_space, open_workload
    from plume_py.reasoning.allocate.simulate import parse_cost_model
    from plume_py.reasoning.allocate.trial import in_sessions, trials

    done: list[Trial] = []
    costs, seed = parse_cost_model(params["costs"]), params["seed"]
    limits = limits_of(params["timeout"])
    try:
        with limits.enforced():
            opened = open_workload(source)
            drawing = Drawing(None if opened.instances else params["instances"], params["largest"], seed)
            workload = in_sessions(open_space(opened, "instance", True, drawing)[2], params["sessions"], seed)
            how = {"seed": seed, "bug": params["bug"], "costs": costs, "limits": limits}
            for trial in trials(workload, params["protocol"], params["allocation"], params["runs"], **how):
                done.append(trial)
    except LimitError as error:
        return done, str(error)
    return done, ""


def _print_summary(source: str, done: "list[Trial]", stopped: str, params: dict[str, Any]) -> None:
    from plume_py.reasoning.allocate.trial import summarize

    total, bug = summarize(done), f" with the bug {params['bug']}" if params["bug"] else ""
    click.echo(f"{source} on {params['protocol']}{bug}, allocation {params['allocation']}")
    click.echo(f"  {total.runs} runs of {len(done[0].levels)} transactions in {params['sessions']} sessions")
    if params["costs"]:
        click.echo(one_line(f"  costs {params['costs']}"))
    click.echo(f"  median {total.throughput:.1f} transactions/s, latency {total.latency * 1000:.0f} ms (simulated)")
    click.echo(f"  median {total.aborted:.0f} attempts aborted")
    for level, count in total.broken.items():
        click.echo(f"  {level} violated in {count} of {total.runs} runs")
    if total.undecided:
        click.echo(f"  undecided in {total.undecided} of {total.runs} runs")
    if stopped:
        click.echo(one_line(f"  {stopped}, before all {params['runs']} runs"))
