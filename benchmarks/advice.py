"""Is the advice right? Random SQL programs at the levels that allocate and infer give, run by a second opinion.

``python -m benchmarks.advice N [--infer M] [--steps S] [--runs R] [--only PART,…]``: N programs for allocate and M for
infer on a simulator of both engines (``advice_sim``), which S stepped runs compare with real servers; then R runs on
each server at advised levels, in which some connection has to wait for another. Seeds are 0, 1, …; the same again gives
the same. What came of it is in benchmarks/results/advice.md; a program with wrong advice is kept in benchmarks/work.
"""

import argparse
import json
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.advice_sim.ask import STRONGEST, allocated, inferred, open_workload
from benchmarks.advice_sim.generate import keeps_alone, random_app, random_setting
from benchmarks.advice_sim.recipes import careful_app
from benchmarks.advice_sim.schedules import ENGINES, Choices, Serializable, begin, broken_after, follow
from benchmarks.advice_sim.serial import holds
from benchmarks.workloads import WORK

RESULTS = Path(__file__).parent / "results"
STORES = ("postgresql", "mysql")
SECONDS = 20.0  # for all questions of infer about a program


def written(app, name):
    WORK.mkdir(exist_ok=True)
    path = WORK / f"advice-{name}.sql"
    path.write_text(app.sql())
    return path


def told(app, store, levels, setting, order, more):
    """A wrong piece of advice, as it is kept."""
    about = [f"{store} {levels}", f"state {setting.state}", f"calls {setting.calls}", f"order {order}", more]
    return "".join(f"-- {line}\n" for line in about) + app.sql()


def anomaly(rng, app, store, levels, settings, runs, counts):
    """A run at these levels that no serial one explains."""
    for _ in range(settings):
        setting = random_setting(rng, app)
        judge = Serializable(app, setting)
        for _ in range(runs):
            run, choices = begin(app, store, levels, setting), Choices(rng)
            run.drive(choices)
            outcome = run.outcome()
            counts["runs"] += 1
            counts.update(txn.status for txn in run.txns)
            if outcome is not None and not judge.allows(run, *outcome):
                return told(app, store, levels, setting, choices.made, f"read {outcome[1]}, end {run.engine.ends()}")
    return None


def breach(rng, app, store, levels, runs, counts):
    """A run at these levels that breaks an invariant."""
    for _ in range(runs):
        setting = random_setting(rng, app, keeping=True)
        if setting is None:
            return None
        run, choices = begin(app, store, levels, setting), Choices(rng)
        broken = broken_after(app, run, choices)
        counts["runs"] += 1
        counts.update(txn.status for txn in run.txns)
        if broken and run.outcome() is not None:
            return told(app, store, levels, setting, choices.made, f"broken {broken}, end {run.engine.ends()}")
    return None


def weaker(levels, store):
    """Each assignment with one transaction a level lower."""
    order = ENGINES[store].levels
    for name, level in levels.items():
        if level != order[0]:
            yield {**levels, name: order[order.index(level) - 1]}


def attack_allocate(programs, settings=5, runs=12):
    """``programs`` random programs; half of them have some level below SERIALIZABLE on one of the stores."""
    rows = {store: Counter() for store in STORES}
    began = time.process_time()
    for seed in range(programs):
        note("allocate", rows, time.process_time() - began, seed)
        rng = random.Random(seed)
        while True:
            app = random_app(rng, nulls=rng.random() < 0.7) if rng.random() < 0.7 else careful_app(rng)
            path = written(app, "allocate")
            workload = open_workload(str(path))
            advice = {store: allocated(path, store, workload) for store in STORES}
            if seed % 2 or any({*levels.values()} != {STRONGEST} for levels in advice.values()):
                break
        for store, levels in advice.items():
            counts = rows[store]
            counts["programs"] += 1
            counts["some below SERIALIZABLE"] += {*levels.values()} != {STRONGEST}
            counts.update(f"at {level}" for level in levels.values())
            # SERIALIZABLE alone says more about the simulator than about the advice
            tried = settings if {*levels.values()} != {STRONGEST} else 1
            found = anomaly(rng, app, store, levels, tried, runs, counts)
            if found is not None:
                counts["wrong"] += 1
                (WORK / f"wrong-allocate-{store}-{seed}.sql").write_text(found)
                print(f"wrong: allocate, {store}, seed {seed}", flush=True)
            if seed % 20 == 0:
                for lower in weaker(levels, store):
                    counts["one step down"] += 1
                    counts["one step down, refuted"] += (
                        anomaly(rng, app, store, lower, settings, runs, Counter()) is not None
                    )
    return rows, time.process_time() - began


def attack_infer(programs, runs=150):
    """Programs that keep an invariant when they run alone; half of them break it at the weakest levels."""
    rows = {store: Counter() for store in STORES}
    began = time.process_time()
    for seed in range(programs):
        note("infer", rows, time.process_time() - began, seed)
        rng = random.Random(10_000_000 + seed)
        app = invariant_app(rng, dangerous=seed % 2 == 0)
        path = written(app, "infer")
        for store in STORES:
            counts = rows[store]
            counts["programs"] += 1
            start = time.process_time()
            answer = inferred(path, store, SECONDS)
            counts["seconds of infer"] += time.process_time() - start
            if not answer.vectors:
                counts["no answer"] += 1
                counts[f"no answer: {answer.open[:60]}"] += 1
            for claim, levels in answer.vectors.items():
                counts[f"answers {claim}"] += 1
                counts[f"{claim}, some below SERIALIZABLE"] += {*levels.values()} != {STRONGEST}
                found = breach(rng, app, store, levels, runs, counts)
                if found is not None:
                    counts[f"wrong {claim}"] += 1
                    name = claim.replace(" ", "").replace("-", "")
                    (WORK / f"wrong-infer-{name}-{store}-{seed}.sql").write_text(found)
                    print(f"wrong: infer {claim}, {store}, seed {seed}", flush=True)
    return rows, time.process_time() - began


def invariant_app(rng, dangerous):
    """One that each of its transactions keeps; ``dangerous``: together they can break it at READ COMMITTED."""
    while True:
        app = careful_app(rng) if rng.random() < 0.75 else random_app(rng)
        if not keeps_alone(rng, app):
            continue
        if not dangerous:
            return app
        for store in STORES:
            if breach(rng, app, store, {txn.name: "RC" for txn in app.transactions}, 60, Counter()):
                return app


def note(part, rows, seconds, done, every=20):
    """Write down how far a part has come."""
    if done % every:
        return
    RESULTS.mkdir(exist_ok=True)
    known = {name: dict(counts) for name, counts in rows.items()}
    told_so_far = {"seconds": round(seconds), "rows": known}
    (WORK / f"advice-{part.replace(' ', '-')}.json").write_text(json.dumps(told_so_far, indent=1, sort_keys=True))


def compare(store, steps, server):
    """Random programs at random levels, stepped in a random order: here and there. ``elsewhere``: what the server did
    is what the simulator does in another order, since the server locks more gaps, or ends another one of a deadlock."""
    counts, began = Counter(), time.monotonic()
    for seed in range(steps):
        note(f"stepped {store}", {store: counts}, time.monotonic() - began, seed)
        rng = random.Random(20_000_000 + seed)
        app = random_app(rng, nulls=rng.random() < 0.5) if rng.random() < 0.6 else careful_app(rng)
        offered = [level for level in ENGINES[store].levels if (store, level) != ("postgresql", STRONGEST)]
        levels = {txn.name: rng.choice(offered) for txn in app.transactions}
        setting, order = conflicting(rng, app, store, levels)
        real = run_for_real(server, app, levels, setting, order)
        counts["stepped runs"] += 1
        counts["with a wait"] += real.waits > 0
        shown = (tuple((call.status, tuple(call.log)) for call in real.calls), real.ends())
        counts.update(call.status for call in real.calls)
        if any(shown == simulated(app, store, levels, setting, order, victim) for victim in (0, 1)):
            counts["the same"] += 1
        elif is_possible(app, store, levels, setting, shown, rng):
            counts["elsewhere"] += 1
        else:
            counts["outside"] += 1
            here = simulated(app, store, levels, setting, order, 0)
            text = told(app, store, levels, setting, order, f"server {shown}\n-- here {here}")
            (WORK / f"outside-{store}-{seed}.sql").write_text(text)
            print(f"outside: {store}, seed {seed}", flush=True)
    return counts, time.monotonic() - began


def conflicting(rng, app, store, levels, keeping=False):
    """Calls and an order in which somebody has to wait, if one is found soon."""
    for _ in range(60):
        setting = random_setting(rng, app, keeping=keeping)
        if setting is None:
            return None
        order = [rng.randrange(len(setting.calls)) for _ in range(16)]
        if follow(begin(app, store, levels, setting, fine=False), order):
            break
    return setting, order


def simulated(app, store, levels, setting, order, victim):
    run = begin(app, store, levels, setting, fine=False)
    follow(run, order, victim)
    return tuple((txn.status, tuple(txn.log)) for txn in run.txns), run.engine.ends()


def is_possible(app, store, levels, setting, shown, rng, tries=3000):
    """Does the simulator get there in some order? Whoever was rolled back has done nothing, and may be left out."""
    if any(outcome_of(app, store, levels, setting, rng) == kept(shown) for _ in range(tries)):
        return True
    calls = [(call, seen) for call, seen in zip(setting.calls, shown[0], strict=True) if seen[0] != "aborted"]
    less = replace(setting, calls=tuple(call for call, _ in calls))
    without = kept((tuple(seen for _, seen in calls), shown[1]))
    return any(outcome_of(app, store, levels, less, rng) == without for _ in range(tries))


def kept(shown):
    """What those that committed have read, and the end."""
    calls, end = shown
    return tuple(log if status == "committed" else None for status, log in calls), end


def outcome_of(app, store, levels, setting, rng):
    run = begin(app, store, levels, setting)
    run.drive(Choices(rng))
    return kept((tuple((txn.status, tuple(txn.log)) for txn in run.txns), run.engine.ends()))


def run_for_real(server, app, levels, setting, order):
    from benchmarks.advice_sim.servers import RealRun

    run = RealRun(server, app, levels, setting)
    run.drive(order)
    return run


def real_runs(store, runs, server, per_program=60):
    """Programs at advised levels: for allocate a serial run must explain each, for infer the invariant must hold."""
    counts, began, seed = Counter(), time.monotonic(), 0
    while counts["runs with a wait"] < runs:
        note(f"real {store}", {store: counts}, time.monotonic() - began, seed)
        rng = random.Random(30_000_000 + seed)
        seed += 1
        command = "infer" if seed % 4 == 0 else "allocate"
        app = invariant_app(rng, dangerous=True) if command == "infer" else random_app(rng, nulls=True)
        path = written(app, f"real-{store}")
        if command == "allocate":
            levels = allocated(path, store)
            if {*levels.values()} == {STRONGEST} and seed % 12:
                continue
        else:
            vectors = inferred(path, store, SECONDS).vectors
            if not vectors:
                continue
            levels = rng.choice(list(vectors.values()))
        counts[f"programs, {command}"] += 1
        for _ in range(per_program):
            made = conflicting(rng, app, store, levels, keeping=command == "infer")
            if made is None:
                break
            if counts["runs with a wait"] >= runs:
                break
            wrong = one_real_run(server, app, store, levels, *made, command, counts)
            if wrong:
                counts["broken"] += 1
                (WORK / f"broken-{command}-{store}-{seed}.sql").write_text(wrong)
                print(f"broken: {command}, {store}, seed {seed}", flush=True)
    return counts, time.monotonic() - began


def one_real_run(server, app, store, levels, setting, order, command, counts):
    run = run_for_real(server, app, levels, setting, order)
    counts["runs"] += 1
    counts["runs with a wait"] += run.waits > 0
    counts.update(call.status for call in run.calls)
    counts["deadlocks"] += sum("eadlock" in call.said for call in run.calls)
    counts["serialization failures"] += sum("serialize access" in call.said for call in run.calls)
    done, logs = run.outcome()
    if command == "infer":
        broken = holds(app, server.contents(app))
        return told(app, store, levels, setting, order, f"broken {broken}, end {run.ends()}") if broken else ""
    if (logs, run.ends()) in Serializable(app, setting).outcomes(tuple(call.number for call in done)):
        return ""
    return told(app, store, levels, setting, order, f"read {logs} by {[c.number for c in done]}, end {run.ends()}")


PARTS = ("allocate", "infer", "stepped postgresql", "stepped mysql", "real postgresql", "real mysql", "cases")


def run_part(part, options):
    """Run one part; what it counted is written down as it goes on."""
    kind, _, store = part.partition(" ")
    if kind == "allocate":
        rows, seconds = attack_allocate(options.programs)
    elif kind == "infer":
        rows, seconds = attack_infer(options.infer)
    elif kind == "cases":
        from benchmarks.advice_sim.report import judged_cases

        rows, seconds = judged_cases(options.cases)
    else:
        from benchmarks.advice_sim.servers import served

        with served(store) as server:
            done = (
                compare(store, options.steps, server) if kind == "stepped" else real_runs(store, options.runs, server)
            )
        rows, seconds = {store: done[0]}, done[1]
    note(part, rows, seconds, 0)


def main() -> None:
    """Run the parts that are asked for, and write the page from all that are known."""
    from benchmarks.advice_sim.report import page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=int, nargs="?", default=3000)
    parser.add_argument("--infer", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--cases", type=Path, help="a folder of SQL files, each of which is asked about on both stores")
    parser.add_argument("--only", default=",".join(PARTS[:-1]), help="none: only write the page")
    options = parser.parse_args()
    for part in PARTS:
        if part in options.only.split(",") or (part == "cases" and options.cases):
            run_part(part, options)
    text = page({part: WORK / f"advice-{part.replace(' ', '-')}.json" for part in PARTS})
    (RESULTS / "advice.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
