"""How long a fit will take: one estimate for page and command line, by kinds of iterations."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import numpy as np
import pytest
from filelock import FileLock
from made_records import record
from stored_runs import small, stored, stored_sweep, use_folders

from gmc_core.base.errors import NumericalError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting import compiling, duration
from gmc_core.fitting.compiling import compile_for, must_compile
from gmc_core.fitting.duration import Estimate, estimate_of_fit, estimate_seconds
from gmc_core.fitting.fit import Fit
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import Store
from gmc_core.runs.store.waiting import cost_with_estimate, estimate_of, remaining
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_dashboard.fit import cost_view, run_words
from gmc_dashboard.shared import context, warm_up

SIZES = np.concatenate([np.full(400, 60), [300, 900]])


def lasting(iteration: int, seconds: float):
    """A record of an iteration that took so long."""
    return replace(record(iteration, 0.4), e_seconds=seconds, m_seconds=0.0, evaluation_seconds=0.0)


def exact(iterations: int = 10, **changes) -> FitSettings:
    settings = replace(settings_for("ordinal"), iterations=iterations, **changes)
    return settings.resolved(RatingScale(1, 5), 1000)


def test_warm_up_iterations_are_told_from_exact_ones(monkeypatch):
    monkeypatch.setattr(duration, "core_rate", lambda dtype: 2.5e10)
    found = estimate_seconds(exact(), SIZES, 3000)
    assert len(found.iterations) == 10
    warm, first, later = found.iterations[1], found.iterations[3], found.iterations[5]
    # The three warm-up iterations have the paper's M-step, here of far fewer flops.
    assert warm < 0.4 * later
    assert first == pytest.approx(later)
    assert found.iterations[9] < later  # after the last one no inverses are needed
    map_em = FitSettings(dtype="float32").resolved(RatingScale(1, 5), 1000)
    assert estimate_seconds(map_em, SIZES, 3000).iterations[5] < 0.4 * later


def test_the_estimate_follows_rate_precision_and_protocol(monkeypatch):
    monkeypatch.setattr(duration, "core_rate", lambda dtype: 2.5e10)
    slow = estimate_seconds(exact(), SIZES, 3000)
    monkeypatch.setattr(duration, "core_rate", lambda dtype: 5e10)
    fast = estimate_seconds(exact(), SIZES, 3000)
    assert fast.repetition < slow.repetition < 2 * fast.repetition
    strong = estimate_seconds(exact(), SIZES, 3000, query_sizes=SIZES)
    assert strong.repetition > fast.repetition  # novel users are folded in each time
    three = estimate_seconds(exact(), SIZES, 3000, repetitions=3)
    assert three.computing - fast.computing == pytest.approx(2 * fast.repetition)


PLAN = Estimate(2.0, 0.0, 1.0, (1.0, 1.0, 1.0, 10.0, 10.0), 0.5)


def test_what_remains_is_learned_from_iterations_of_the_same_kind():
    assert PLAN.remaining([]) == pytest.approx(PLAN.total - 2.0)
    # Three that took twice as long say little of the exact ones, and all of their own kind.
    warm = [lasting(t, 2.0) for t in (1, 2, 3)]
    assert PLAN.remaining(warm) == pytest.approx(20 * np.sqrt(2) + 0.5)
    assert PLAN.remaining([*warm, lasting(4, 5.0)]) == pytest.approx(5.0 + 0.5)
    assert PLAN.remaining([*warm, lasting(4, 5.0), lasting(5, 5.0)]) == pytest.approx(0.5)


def test_what_remains_counts_the_other_repetitions():
    two = replace(PLAN, repetitions=2)
    one = [lasting(t + 1, seconds) for t, seconds in enumerate(PLAN.iterations)]
    assert two.remaining(one) == pytest.approx(sum(PLAN.iterations) + 1.0 + 0.5)
    assert two.remaining([*one, one[0]]) == pytest.approx(sum(PLAN.iterations[1:]) + 0.5)


def test_an_estimate_goes_round():
    assert Estimate.from_dict(PLAN.as_dict()) == PLAN


@pytest.mark.parametrize("model", ["paper", "ordinal", "mixture"])
@pytest.mark.parametrize("protocol", ["weak", "strong"])
def test_page_and_command_line_estimate_alike(monkeypatch, model, protocol):
    config = small(protocol=protocol, fit=replace(settings_for(model), iterations=4))
    prepared = prepare(config)
    split = make_split(config, prepared, 0)
    shape = {"data": "sample", "min_user": 20, "min_item": 2, "max_items": 60, "seed": 0}
    chosen = context.Selection(**shape, protocol=protocol)
    monkeypatch.setattr(context, "current", lambda: chosen)
    monkeypatch.setattr(context, "split", lambda: split)
    cost_view._shape.clear()
    settings = config.fit.resolved(prepared.ratings.scale, prepared.ratings.n_items)
    assert cost_view.cost_and_time_of(settings, 3)[1] == estimate_of_fit(Fit(split, config.fit), 3)


def test_compiling_is_a_line_of_its_own(monkeypatch, tmp_path):
    settings = FitSettings().resolved(RatingScale(1, 5), 100)
    monkeypatch.setattr(compiling, "_ready", set())
    monkeypatch.setattr(compiling, "_mark", lambda kind: tmp_path / "compiled.mark")
    assert must_compile(settings)
    before = estimate_seconds(settings, SIZES, 1000)
    assert before.compiling > 5
    assert "to compile the numerical code" in cost_view.time_words(before)
    compile_for(settings)  # here it only loads what the other tests have compiled
    assert not must_compile(settings)
    monkeypatch.setattr(compiling, "_ready", set())  # the mark is for other processes
    assert not must_compile(settings)
    after = estimate_seconds(settings, SIZES, 1000)
    assert after.compiling == 0
    assert after.computing == before.computing
    assert "compile" not in cost_view.time_words(after)


def test_changed_sources_are_compiled_again(monkeypatch, tmp_path):
    kind = ("float64", False, False)
    mark = compiling._mark(kind)
    assert mark != compiling._mark(("float64", True, False))
    monkeypatch.setattr(compiling.numba, "__version__", "0.0")
    assert compiling._mark(kind) != mark


def test_a_changed_compiled_source_is_compiled_again(monkeypatch, tmp_path):
    source = tmp_path / "solve.py"
    source.touch()
    monkeypatch.setattr(compiling.solve, "__file__", str(source))
    mark = compiling._mark(("float64", False, False))
    assert mark is not None
    os.utime(source, (1, 1))
    assert compiling._mark(("float64", False, False)) != mark


@pytest.mark.parametrize(
    "settings", [FitSettings(model="mixture", components=8), FitSettings(initial=1e12)]
)
def test_what_breaks_on_the_made_up_table_is_not_the_person_s(monkeypatch, tmp_path, settings):
    monkeypatch.setattr(compiling, "_ready", set())
    monkeypatch.setattr(compiling, "_mark", lambda kind: tmp_path / "compiled.mark")
    settings = settings.resolved(RatingScale(1, 5), 100)
    compile_for(settings)
    assert not must_compile(settings)


def test_compiling_that_fails_leaves_the_fit_to_compile_itself(monkeypatch, tmp_path, caplog):
    def broken(*arguments, **more):
        raise NumericalError("of the made-up table")

    monkeypatch.setattr(compiling, "_ready", set())
    monkeypatch.setattr(compiling, "_mark", lambda kind: tmp_path / "compiled.mark")
    monkeypatch.setattr(compiling, "Fit", broken)
    settings = FitSettings().resolved(RatingScale(1, 5), 100)
    compile_for(settings)
    assert must_compile(settings)
    assert "of the made-up table" in caplog.text


def test_of_two_processes_one_compiles_and_the_other_waits(monkeypatch, tmp_path):
    mark = tmp_path / "compiled.mark"
    monkeypatch.setattr(compiling, "_ready", set())
    monkeypatch.setattr(compiling, "_mark", lambda kind: mark)
    runs = []
    monkeypatch.setattr(compiling, "_run", lambda kind, users: runs.append(kind))
    settings = FitSettings().resolved(RatingScale(1, 5), 100)
    with FileLock(mark.with_suffix(".lock")):
        waiting = threading.Thread(target=compile_for, args=(settings,))
        waiting.start()
        mark.touch()  # the other process has finished
    waiting.join()
    assert not runs


def test_one_that_hangs_is_not_waited_for_for_ever(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "_ready", set())
    monkeypatch.setattr(compiling, "_mark", lambda kind: tmp_path / "compiled.mark")
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.01)
    runs = []
    monkeypatch.setattr(compiling, "_run", lambda kind, users: runs.append(kind))
    with FileLock(tmp_path / "compiled.lock"):
        compile_for(FitSettings().resolved(RatingScale(1, 5), 100))
    assert runs


def test_the_dashboard_compiles_when_it_starts_and_once(monkeypatch):
    started = []

    class Process:
        def __init__(self, command, **options):
            started.append(command)

        def wait(self):
            return 0

    monkeypatch.setenv("GMC_SPARE_TIME", "1")
    monkeypatch.setattr(warm_up.subprocess, "Popen", Process)
    warm_up.begin.clear()
    warm_up.begin()
    warm_up.begin()
    assert started == [warm_up.COMMAND]
    warm_up.begin.clear()
    monkeypatch.setenv("GMC_SPARE_TIME", "0")
    assert warm_up.begin() is None
    warm_up.begin.clear()


# Runs that wait -------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    use_folders(tmp_path, monkeypatch)
    return Store()


def test_a_waiting_run_says_behind_what_and_how_long(store):
    running = stored(store, "running", small(seed=1), done=1)
    cost = cost_with_estimate({}, replace(PLAN, iterations=(1.0,) * 4))
    first = store.submit(small(seed=2), cost=cost)
    second = store.submit(small(seed=3), cost=cost)
    assert [run.id for run in store.waiting(first.id).ahead] == [running.id]
    waiting = store.waiting(second.id)
    assert [run.id for run in waiting.ahead] == [running.id, first.id]
    parts = [store.remaining_seconds(run.id) for run in waiting.ahead]
    assert waiting.seconds == pytest.approx(sum(parts))
    said = run_words.waiting_text(waiting)
    assert "Waiting behind" in said
    assert "1 more run:" in said
    assert "begins in about" in said
    unknown = store.submit(small(seed=4))
    last = store.submit(small(seed=5))
    assert store.waiting(last.id).ahead[-1].id == unknown.id
    assert store.waiting(last.id).seconds is None
    assert "begins" not in run_words.waiting_text(store.waiting(last.id))


def test_a_run_with_nothing_before_it_waits_for_the_worker_only(store):
    run = store.submit(small())
    assert store.waiting(run.id).ahead == ()
    assert "within seconds" in run_words.waiting_text(store.waiting(run.id))


def test_a_sweep_waits_behind_others_but_not_behind_itself(store):
    before = store.submit(small(seed=9))
    sweep = SweepConfig(small(), epsilons=(0.1, 0.3), iterations=(4,), seeds=(0,))
    parent = submit_or_find_sweep(store, sweep, cost=cost_with_estimate({}, PLAN))[0]
    assert [run.id for run in store.waiting(parent.id).ahead] == [before.id]
    children = store.runs(parent=parent.id)
    # Of its own fits only the second one waits behind the first.
    assert len(store.waiting(children[0].id).ahead) == 2


def test_a_sweep_learns_from_its_finished_fits(store):
    sweep = stored_sweep(store, 2, "queued")
    # Two of four are done, in 12 s each by their summaries.
    assert store.remaining_seconds(sweep.id) == pytest.approx(24)


def test_runs_of_before_have_an_estimate_too(store):
    run = stored(store, "running", done=2)
    assert estimate_of(run) is None
    records = [one for _, one in store.records(run.id)]
    each = sum(one.seconds for one in records) / 2
    assert remaining(run, records) == pytest.approx(2 * each)
    damaged = replace(run, cost={"estimate": {"starting": 1}})
    assert estimate_of(damaged) is None
