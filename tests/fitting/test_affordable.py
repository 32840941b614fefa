"""The shape of a fit before its split, and what is refused because of it, whoever asks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from commands import refused, run, write_ratings
from store_workers import small

from gmc_core.base.errors import ResourceError
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting import affordable
from gmc_core.fitting.affordable import TooLongError, Wanted, check_expected, cost_and_time
from gmc_core.fitting.auto import choose
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import describe, make_split, prepare
from gmc_core.fitting.shape import Expected, Shape
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store
from gmc_core.runs.store.run import LONG_KEY
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_core.runs.worker import work


@pytest.fixture
def short(monkeypatch):
    """As if any fit took longer than anybody waits."""
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-6)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    return write_ratings(tmp_path / "ratings.csv")


PROTOCOLS = [
    {"protocol": "weak"},
    {"protocol": "weak", "weak_users": 600},
    {"protocol": "strong"},
    {"protocol": "random"},
    {"protocol": "random", "folds": 5},
    {"protocol": "latest"},
    {"protocol": "latest", "held_out": 0.3},
    {"protocol": "none"},
]


@pytest.mark.parametrize("signals", ["rows", "columns"])
@pytest.mark.parametrize("given", PROTOCOLS, ids=str)
def test_what_is_expected_is_about_what_comes(given, signals):
    """Of ratings before filter and split, and, from below, of what is remembered of them."""
    if given["protocol"] == "strong" and signals == "columns":
        return
    config = ExperimentConfig(filter=Filter(max_items=400), **given)
    seen = []
    prepared = prepare(config, on_ratings=seen.append)
    assert len(seen[0]) == 100_004  # before the filter
    settings = FitSettings(signals=signals).resolved(prepared.ratings.scale)
    actual = Shape.of(make_split(config, prepared, 0), settings)
    expected = Expected.of_ratings(seen[0], config).shape(settings)
    assert expected.dimension == actual.dimension
    assert len(expected.sizes) == len(actual.sizes)
    assert expected.sizes.sum() == pytest.approx(actual.sizes.sum(), rel=0.05)
    cubes = [float((shape.sizes.astype(float) ** 3).sum()) for shape in (expected, actual)]
    assert cubes[0] == pytest.approx(cubes[1], rel=0.35)
    assert (expected.query_sizes is None) == (actual.query_sizes is None)
    least = Expected.of_description(describe(prepared), config).shape(settings)
    assert (least.dimension, len(least.sizes)) == (actual.dimension, len(actual.sizes))
    own, known = cost_and_time(settings, least), cost_and_time(settings, actual)
    assert own[0].memory_bytes <= known[0].memory_bytes * 1.01
    assert own[1].computing <= known[1].computing * 1.01


def test_a_large_dense_fit_is_refused_by_its_counts_and_a_low_rank_one_is_not():
    """The shape of MovieLens 32M after the paper's filter, of which nothing is read."""
    known = {"users": 200_948, "items": 81_487, "ratings": 31_995_649, "users_to_draw": 200_948}
    config = ExperimentConfig(data="ml-32m", protocol="random")
    expected = Expected.of_description(known, config)
    scale = prepare(ExperimentConfig()).ratings.scale

    def check(fit, **how):
        check_expected([Wanted(fit, "The one with everything")], expected, scale, **how)

    with pytest.raises(ResourceError, match="The one with everything needs about .*--model fact"):
        check(FitSettings(), memory_limit=10**10)
    with pytest.raises(TooLongError, match="The one with everything would take .*--max-items"):
        check(FitSettings(), memory_limit=10**13)
    check(FitSettings(), memory_limit=10**13, however_long=True)
    low_rank = replace(settings_for("factor"), dtype="float32")
    check(low_rank, memory_limit=10**11)


def test_blocks_are_never_in_the_way():
    config = ExperimentConfig(fit=FitSettings(signals="blocks", block=(8, 8)))
    ratings = prepare(config).ratings
    expected = Expected.of_ratings(ratings, config)
    check_expected([Wanted(config.fit)], expected, ratings.scale, memory_limit=1)


# Commands ------------------------------------------------------------------------------

EVERYTHING = ["--min-user-ratings", "2"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["fit"], "This fit"),
        (["fit", "--detach"], "This fit"),
        (
            ["sweep", "--epsilon", "0.1,1", "--iterations", "2"],
            "Each of 2 fits (eps",
        ),
        (["sweep", "--epsilon", "0.1,1", "--detach"], "Each of 2 fits (epsilon 0.1"),
        (["compare", "--methods", "bias,exact"], "(exact)"),
        (["compare", "--methods", "bias,paper", "--dask", "local"], "(paper)"),
        (["claims"], "The experiment “paper”"),
        (["auto", "--seconds", "1"], "A fit of the model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_refuse_before_anything_is_queued_or_split(capsys, data, short, command, named):
    line = refused(capsys, command[0], "--data", data, *EVERYTHING, *command[1:])
    assert named in line and "would take about" in line and "--max-items" in line
    assert line.endswith("--long starts it all the same.")
    with Store() as store:
        assert store.runs() == []


def test_reproduce_refuses_too(capsys, data, short):
    for table in (["2"], ["random"]):
        line = refused(capsys, "reproduce", "--table", *table, "--data", data, "--dtype", "float32")
        assert "would take about" in line and "--long starts it" in line


def test_what_is_asked_for_is_computed(capsys, data, short, monkeypatch):
    monkeypatch.setattr("gmc_core.runs.worker.ensure_worker", lambda store: False)
    small_fit = [*EVERYTHING, "--max-items", "12", "--long"]
    code, out, _ = run(capsys, "compare", "--data", data, *small_fit, "--methods", "paper,bias")
    assert code == 0 and "Gaussian" in out
    sweep = ["sweep", "--data", data, *small_fit, "--epsilon", "1", "--iterations", "2"]
    code, out, _ = run(capsys, *sweep, "--detach")
    assert code == 0
    with Store() as store:
        children = store.runs(parent=out.strip())
        assert [child.however_long for child in children] == [True]
        store.cancel(out.strip())


def test_a_second_start_goes_by_what_the_store_remembers(capsys, data, short, monkeypatch):
    config = ExperimentConfig(data=data, filter=Filter(2))
    with Store() as store:
        run_ = store.submit(config, data=describe(prepare(config)))
        store.cancel(run_.id)
    monkeypatch.setattr("gmc_core.cli.data.prepare_telling", None)  # nothing is read
    line = refused(capsys, "fit", "--data", data, *EVERYTHING, "--detach")
    assert "would take about" in line


# Auto ----------------------------------------------------------------------------------


def test_auto_leaves_out_what_would_be_refused_later(monkeypatch):
    ratings = prepare(small()).ratings
    real = affordable.cost_and_time

    def dear(settings, shape, repetitions=1):
        cost, estimate = real(settings, shape, repetitions)
        return cost, replace(estimate, preparing=0.0 if settings.model == "factor" else 1e5)

    monkeypatch.setattr("gmc_core.fitting.auto.cost_and_time", dear)
    choice = choose(ratings, seconds=0.5)
    assert {trial.settings.model for trial in choice.trials} == {"factor"}
    assert any("Not tried: A fit of the model paper would take" in one for one in choice.notes)
    assert choice.report is None


# The worker ----------------------------------------------------------------------------


def test_the_worker_says_so_instead_of_computing(tmp_path, short):
    store = Store(tmp_path)
    plan = ComparisonPlan(("bias", "paper"), ("Bias", "The paper's"), "bias")
    wanted = store.submit(small(), cost={LONG_KEY: True})
    alone = store.submit(small(epsilon=0.4))
    parent, _ = submit_or_find_sweep(store, SweepConfig(small(), (0.5,), (3,)))
    compared, _ = store.submit_comparison(small(), plan)
    allowed, _ = store.submit_comparison(
        replace(small(), weak_users=50), plan, cost={LONG_KEY: True}
    )
    work(store, idle_seconds=0, polite=False)
    states = [store.run(run.id).state for run in (wanted, alone, parent, compared, allowed)]
    assert states == ["finished", "failed", "failed", "failed", "finished"]
    for run_, name in ((alone, "This fit"), (compared, "A fit of")):
        message = store.run(run_.id).message
        assert message.startswith(name) and "--model factor" in message
        assert f"gmc runs resume {run_.id} --long starts it all the same." in message
    (child,) = store.runs(parent=parent.id)
    assert f"gmc runs resume {parent.id} --long" in child.message
    assert store.run(wanted.id).however_long  # the worker's own estimate keeps it
    store.resume(parent.id, however_long=True)
    work(store, idle_seconds=0, polite=False)
    assert store.run(parent.id).state == "finished"


def test_what_was_begun_before_goes_on(tmp_path, monkeypatch):
    store = Store(tmp_path)
    run_ = store.submit(small())
    work(store, idle_seconds=0, polite=False)
    with store.writing() as database:  # as if it had been interrupted
        database.execute("UPDATE runs SET state = 'interrupted' WHERE id = ?", (run_.id,))
        database.execute("DELETE FROM records WHERE run = ? AND iteration > 2", (run_.id,))
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-6)
    store.resume(run_.id)
    work(store, idle_seconds=0, polite=False)
    assert store.run(run_.id).state == "finished"
    assert np.isfinite(store.run(run_.id).summary["nmae"])
