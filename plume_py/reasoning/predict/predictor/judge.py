"""The second opinion on a prediction: the ordinary checker, and the rules of the boundary."""

from collections.abc import Mapping

from plume_py.base.limits import Limits
from plume_py.checking.check import check
from plume_py.checking.declared import DECLARED
from plume_py.levels import WEAKEST
from plume_py.reasoning.predict.predictor.observed_run import Observed
from plume_py.reasoning.predict.predictor.outcome import PredictionResult
from plume_py.reasoning.predict.predictor.prediction import Prediction, Run, changes, history_of
from plume_py.reasoning.predict.predictor.recheck import recheck


def judge(
    observed: Observed, run: Run, outcome: PredictionResult, levels: Mapping[int, str], limits: Limits | None = None
) -> tuple[Prediction, list[str]]:
    """The prediction, and what speaks against it; ``levels`` of transactions where they are declared."""
    declared = levels if outcome.level == DECLARED else None
    # Transactions that neither read nor write anything have no level.
    assume = WEAKEST if outcome.level == DECLARED else None
    history = history_of(observed, run, declared)
    committed = history_of(observed, run, declared, committed=True)
    kept = check(committed, outcome.level, assume=assume, max_examples=0, limits=limits).levels[outcome.level]
    result = check(history, outcome.target, name="prediction", limits=limits)
    problems = recheck(observed.history, run)
    if not kept.ok:
        problems.append(f"it does not keep {outcome.level}: {', '.join(kept.taps) or kept.reason}")
    if result.ok is not False:
        problems.append(f"it does not break {outcome.target}")
    return Prediction(run, changes(observed, run), history, result), problems
