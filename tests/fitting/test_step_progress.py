"""Which share of a step is done: told as it goes on, and without any effect on the figures."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from making import random_table, ratings_of

from gmc_core.base.errors import NumericalError
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian import factor
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.iterate import iterate
from gmc_core.gaussian.linalg.lapack import factor_whole, invert_factor_whole
from gmc_core.gaussian.linalg.progress import StepProgress, StepShare
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import Split, strong_split, weak_split

RATINGS = ratings_of(*random_table(120, 40, 0.5, 3))
SHORT = {"iterations": 4, "warm": 1}
# What counts the work of both steps, of one of them, or where two algorithms take turns.
SETTINGS = {
    "paper": FitSettings(iterations=3),
    "exact": replace(settings_for("exact"), **SHORT),
    "ordinal": replace(settings_for("ordinal"), **SHORT),
    "factor": replace(settings_for("factor"), rank=7, iterations=3),
    "numbers": replace(settings_for("factor"), rank=7, iterations=3, ordered=False),
    "two-sided": replace(settings_for("two-sided"), user_rank=4, user_start=2, **SHORT),
    "averaged": replace(settings_for("ordinal"), average_rank=5, **SHORT),
    "mixture": replace(settings_for("mixture"), iterations=4),
}


class Recording(StepProgress):
    """Keeps what a listener would have seen at every change."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[StepShare | None] = []

    def begin(self, step: str = "") -> None:
        super().begin(step)
        self.seen.append(self.now())

    def add(self, work: float) -> None:
        super().add(work)
        self.seen.append(self.now())

    @property
    def steps(self) -> list[tuple[str, list[float]]]:
        """The steps one after the other, with the shares of each."""
        found: list[tuple[str, list[float]]] = []
        for at in self.seen:
            if at is None:
                continue
            if at.share is None or not found or found[-1][0] != at.step:
                found.append((at.step, []))
            if at.share is not None:
                found[-1][1].append(at.share)
        return found


def digest(split: Split, settings: FitSettings, progress: StepProgress | None) -> str:
    """Of all that a fit has found."""
    fit = Fit(split, settings, team=ThreadPool(2, progress=progress))
    likelihoods = [record.log_likelihood for record in fit.records()]
    gaussian = fit.state.gaussian
    everything = np.arange(gaussian.dimension)
    arrays = (
        np.array(likelihoods), fit.predictions, fit.state.weights, gaussian.mean,
        gaussian.covariance.submatrix(everything, everything),
    )  # fmt: skip
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_model_tells_its_share_and_finds_the_same(name, monkeypatch):
    monkeypatch.setattr(factor, "BLOCK_BYTES", 1 << 13)  # several blocks of users
    settings, recording = SETTINGS[name], Recording()
    split = weak_split(RATINGS, 0)
    assert digest(split, settings, recording) == digest(split, settings, None)
    assert recording.now() is None
    by_name: dict[str, list[list[float]]] = {}
    for step, shares in recording.steps:
        assert shares == sorted(shares)
        if shares:
            by_name.setdefault(step, []).append(shares)
    assert {step for step, _ in recording.steps} >= {"E-step", "M-step", "predictions"}
    assert len(by_name["E-step"]) == settings.iterations
    for shares in by_name["E-step"]:
        assert len(shares) > 1
        assert shares[-1] == pytest.approx(1.0)
    last = by_name["M-step"][-1][-1]
    assert last == pytest.approx(
        0.85 if name in ("exact", "ordinal", "two-sided", "averaged") else 1
    )
    if name == "averaged":
        # The first one only takes over the prior's directions.
        assert len(by_name["low-rank fit’s M-step"]) == settings.iterations - 1


def test_new_users_are_folded_in_as_predictions():
    recording = Recording()
    digest(strong_split(RATINGS, 0), SETTINGS["ordinal"], recording)
    shares = [shares for step, shares in recording.steps if step == "predictions"]
    assert shares[-1][-1] == pytest.approx(1.0)


def test_the_words():
    assert str(StepShare("E-step", 0.419)) == "41 % of the E-step"
    assert str(StepShare("M-step")) == "M-step"


def test_the_outer_count_holds():
    progress = StepProgress()
    progress.add(1.0)  # of nothing
    assert progress.now() is None
    progress.begin("E-step")
    assert progress.now() == StepShare("E-step")
    with progress.counting(4.0):
        for part in range(4):
            with progress.counting(1.0):
                progress.add(1.0)
            assert progress.now() == StepShare("E-step", (part + 1) / 4)
        progress.add(1.0)
        assert progress.now() == StepShare("E-step", 1.0)  # never more than all
    assert progress.now() == StepShare("E-step")
    with progress.counting(0.0):
        assert progress.now() == StepShare("E-step")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_whole_factorization_has_scipys_figures(dtype):
    rows = np.random.default_rng(0).normal(size=(90, 70)).astype(dtype)
    matrix = rows.T @ rows + np.eye(70, dtype=dtype)
    matrix = (matrix + matrix.T) / 2
    potrf = getattr(scipy.linalg.lapack, f"{'d' if dtype == 'float64' else 's'}potrf")
    expected = potrf(matrix.T, lower=1, clean=0)[0].T
    found = matrix.copy()
    assert factor_whole(found) == 0
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()
    matrix[40, 40] = -1
    assert factor_whole(matrix.copy()) == potrf(matrix.T, lower=1)[1] == 41


@pytest.mark.parametrize("triangle", ["upper", "lower"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_whole_inverse_of_a_factor_has_scipys_figures(dtype, triangle):
    factor = np.tril(np.random.default_rng(1).normal(size=(70, 70)), -1) / 9 + np.eye(70)
    factor = (factor if triangle == "lower" else factor.T).astype(dtype, order="C")
    trtri = getattr(scipy.linalg.lapack, f"{'d' if dtype == 'float64' else 's'}trtri")
    expected = trtri(factor.T, lower=triangle == "upper")[0].T
    found = factor.copy()
    assert invert_factor_whole(found, triangle) == 0
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()
    factor[40, 40] = 0
    assert invert_factor_whole(factor, triangle) == 41


def test_an_iteration_that_fails_is_at_no_step():
    """Or the next fit of a comparison would seem to be at it."""

    class Failing:
        reuses_memory = False

        def resume(self, state):
            return state

        def m_step(self, state, spare):
            raise NumericalError("no")

    progress = StepProgress()
    with pytest.raises(NumericalError, match="Iteration 1"):
        list(iterate(Failing(), SimpleNamespace(iteration=0), 3, progress=progress))
    assert progress.now() is None


def test_a_covariance_in_columns_has_the_same_likelihood():
    rows = np.random.default_rng(2).normal(size=(9, 7))
    matrix = rows.T @ rows
    found = [
        DenseCovariance(each).log_det_and_trace_inverse(ThreadPool(1))
        for each in (matrix, np.asfortranarray(matrix))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] == pytest.approx(
        (np.linalg.slogdet(matrix)[1], np.trace(np.linalg.inv(matrix))), rel=1e-9
    )
