"""Progress and limits of synth, relate and hierarchy (synthesis.py, comparison.py, base/child_process.py)."""

import json
import os
import signal
import time

import pytest

from plume_py.base.child_process import run_in_child
from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.synth import Scope, synthesize
from plume_py.reasoning.synth.comparison import PartialComparison, hierarchy
from plume_py.reasoning.synth.synthesis import Beyond, Progress, beyond


def test_progress_is_reported_for_each_number_of_transactions():
    news = []
    outcome = synthesize(["UA"], ["NLU"], Scope(4), smaller_first=True, on_progress=news.append)
    assert not outcome.found
    assert [(progress.none, progress.now) for progress in news] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    news.clear()
    assert synthesize(["SI"], ["SER"], Scope(4), smaller_first=True, on_progress=news.append).found
    assert [(progress.now, progress.smaller) for progress in news] == [(1, None), (2, None), (4, 2)]
    news.clear()
    synthesize(["UA"], ["NLU"], Scope(3), up_to=True, on_progress=news.append)
    assert [progress.now for progress in news] == [1, 2, 3]


def test_a_smaller_history_is_reported(tmp_path, isocheck):
    path = tmp_path / "mine.py"
    path.write_text(
        "from plume_py.reasoning.synth import level\n@level(form='history')\n"
        "def Two(h, w):\n    return h.all([]) if len(h.txns) == 2 else h.any([])\n"
    )
    code, out, _ = isocheck("synth", "-a", "Two", "--define", path)
    assert (code, "with 2 there is one: --txns 2, or --up-to" in out) == (1, True)


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (Progress(6, 7), "none up to 6 transactions; 7 undecided"),
        (Progress(6, 24), "none up to 6 transactions; 7 to 24 undecided"),
        (Progress(0, 1), "1 undecided"),
        (Progress(1, 9, 2), "with 2 transactions there is one; 9 undecided"),
    ],
)
def test_progress_as_text(progress, words):
    assert str(progress) == words


def test_a_timeout_reports_the_progress():
    with pytest.raises(LimitError, match="undecided"):
        synthesize(["UA"], ["NLU"], Scope(4), limits=Limits(1e-9))


def test_an_empty_search_names_the_next_scope():
    none = synthesize(["TCC"], ["PC"], Scope(3))
    assert beyond(none, lambda scope: synthesize(["TCC"], ["PC"], scope)) == Beyond(Scope(4, 2, 4), True)
    none = synthesize(["SER"], ["SI"], Scope(2))
    assert beyond(none, lambda scope: synthesize(["SER"], ["SI"], scope)).found is False
    large = synthesize(["SER"], ["SI"], Scope(5))
    assert beyond(large, pytest.fail).found is None
    assert beyond(synthesize(["SI"], ["SER"], Scope(2)), pytest.fail) is None


def test_a_hierarchy_reports_its_decided_comparisons():
    news = []
    hierarchy(["RA", "TCC", "SER"], Scope(2), on_progress=news.append)
    assert all(isinstance(decided, PartialComparison) for decided in news)
    assert news[0].pairs(None) == [(a, b) for a in news[0].names for b in news[0].names if a != b]
    assert news[-1].pairs(None) == []
    assert ("SER", "RA") in news[-1].pairs(True)
    assert any("SER implies RA, TCC" in line for line in news[-1].lines())
    between = news[len(news) // 2]
    assert len(between.plain()["settled"]) + len(between.plain()["undecided"]) == 6


def test_a_child_process_sends_messages_results_and_errors():
    news = []

    def work(tell):
        tell(1)
        tell([2] * 100_000)
        return {"pid": os.getpid()}

    result = run_in_child(work, Limits(), news.append)
    assert result["pid"] != os.getpid()
    assert (news[0], len(news[1])) == (1, 100_000)

    def fails(tell):
        raise IsocheckError("told in one line")

    with pytest.raises(IsocheckError, match="told in one line"):
        run_in_child(fails, Limits(), news.append)

    def dies(tell):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(LimitError, match="ended from outside"):
        run_in_child(dies, Limits(), news.append)


def test_a_child_process_that_ignores_its_limits_is_killed():
    """It holds Python's lock, as a solver does; nothing of it is left afterwards."""
    pids = []

    def deaf(tell):
        tell(os.getpid())
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        while True:
            sum(range(10_000_000))

    with pytest.raises(LimitError, match=r"stopped after 0\.2 s"):
        run_in_child(deaf, Limits(0.2), pids.append)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)

    def greedy(tell):
        kept = b"x" * (300 << 20)
        time.sleep(600)
        return len(kept)

    with pytest.raises(LimitError, match="of memory"):
        run_in_child(greedy, Limits(max_memory=200 << 20), pids.append)


def test_commands_respect_their_limits(isocheck):
    code, out, _ = isocheck("synth", "-a", "UA", "-f", "NLU", "--txns", 24, "--keys", 5, "--values", 5, "--timeout", 1)
    assert code == 3
    assert out.startswith("undecided: stopped after 1 s")
    assert "undecided" in out.partition(";")[2]
    code, out, _ = isocheck("hierarchy", "--txns", 16, "--keys", 5, "--timeout", 1, "--format", "json")
    document = json.loads(out)
    assert (code, document["classes"]) == (3, None)
    assert len(document["settled"]) + len(document["undecided"]) == 110
    code, out, _ = isocheck("relate", "PSI@vis", "PSI", "--txns", 20, "--keys", 9, "--timeout", 1)
    assert (code, "allowed by PSI@vis, forbidden by PSI: " in out) == (3, True)
    code, out, _ = isocheck("synth", "-a", "UA", "-f", "NLU", "--txns", 24, "--keys", 20, "--max-memory", "70M")
    assert (code, "of memory" in out) == (3, True)


def test_a_search_in_a_child_process_prints_the_same(isocheck):
    """The same as without: what was found, how it was judged, and what is wrong with it."""
    told = [isocheck("synth", "-a", "SI", "-f", "SER", "--minimal", "--timeout", limit)[1] for limit in (600, 1e6)]
    plain = isocheck("synth", "-a", "SI", "-f", "SER", "--minimal")[1]
    for out in told:
        assert out.partition("found within")[0] == plain.partition("found within")[0]
