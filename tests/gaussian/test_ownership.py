"""Whose Σ is whose: what somebody holds is never written over, and memory is used again."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from making import random_table, ratings_of, signals_of

import gmc_core
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.em import initial_state, map_em
from gmc_core.gaussian.iterate import Spares
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import no_split, weak_split

# More users than items, so that Σ is dense.
VALUES, KNOWN = random_table(160, 60, 0.3, seed=3)
MODELS = {
    "paper": FitSettings(iterations=6),
    "float32": FitSettings(iterations=6, dtype="float32"),
    "exact": FitSettings(iterations=6, model="exact", noise=0.5, warm=2),
    "ordinal": FitSettings(iterations=6, model="ordinal", noise=0.5, warm=2),
    "mixture": FitSettings(iterations=5, model="mixture", components=2),
    "columns": FitSettings(iterations=4, signals="columns"),
}


def fingerprint(gaussian) -> str:
    """Hash of (μ, Σ)."""
    everything = np.arange(len(gaussian.mean))
    matrix = gaussian.covariance.submatrix(everything, everything)
    return hashlib.sha256(gaussian.mean.tobytes() + matrix.tobytes()).hexdigest()


def array_of(gaussian) -> np.ndarray:
    """The numbers that Σ is held as."""
    covariance = gaussian.covariance
    return covariance.matrix if hasattr(covariance, "matrix") else covariance.factor


@pytest.mark.parametrize("settings", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("held", ["state", "model", "view"])
def test_what_was_taken_from_a_fit_stays_as_it_was(settings, held):
    fit = Fit(weak_split(ratings_of(VALUES, KNOWN), 0), settings, team=ThreadPool(1))
    kept = []
    for record in fit.records():
        gaussian = (fit.state if held == "state" else fit.model()).gaussian
        seen = fingerprint(gaussian)
        if held == "view":  # a part of a bare array, and nothing else of the state
            gaussian = array_of(gaussian)[:3]
            seen = gaussian.tobytes()
        kept.append((gaussian, seen))
        assert record.iteration == len(kept)
    for own, seen in kept:
        assert (own.tobytes() if held == "view" else fingerprint(own)) == seen


def test_one_state_that_is_kept_is_enough_to_be_kept():
    """The others are written over, that one is not, wherever it stands."""
    for wanted in range(1, 6):
        fit = Fit(weak_split(ratings_of(VALUES, KNOWN), 0), MODELS["paper"], team=ThreadPool(1))
        for record in fit.records():
            if record.iteration == wanted:
                matrix = fit.state.gaussian.covariance.matrix
                seen = matrix.copy()
        np.testing.assert_array_equal(matrix, seen)


def test_a_start_that_was_given_stays_as_it_was():
    split = weak_split(ratings_of(VALUES, KNOWN), 0)
    first = Fit(split, FitSettings(iterations=2), team=ThreadPool(1))
    list(first.records())
    start = first.state
    seen = fingerprint(start.gaussian)
    list(Fit(split, MODELS["paper"], team=ThreadPool(1), start=start).records())
    assert fingerprint(start.gaussian) == seen


def steps_of(iterations, spares=None):
    signals = signals_of(VALUES, KNOWN)
    return map_em(
        signals,
        initial_state(signals, 3.0, "float64"),
        epsilon=0.3,
        iterations=iterations,
        noise=Noise.of(0.0, signals.dimension),
        team=ThreadPool(1),
        spares=spares,
    )


def test_steps_of_the_loop_stay_as_they_were():
    kept = [(step.state.gaussian, fingerprint(step.state.gaussian)) for step in steps_of(6)]
    assert all(fingerprint(gaussian) == seen for gaussian, seen in kept)


def test_what_is_given_up_is_used_again_with_the_same_result():
    plain = [fingerprint(step.state.gaussian) for step in steps_of(6)]
    spares, found, places, before = Spares(), [], set(), None
    for step in steps_of(6, spares):
        gaussian = step.state.gaussian
        found.append(fingerprint(gaussian))
        places.add(gaussian.covariance.matrix.ctypes.data)
        if before is not None:
            spares.put(before)
        before = gaussian
    assert found == plain
    assert len(places) == 2


def test_a_spare_of_another_kind_is_not_taken():
    spares = Spares()
    states = [
        initial_state(signals_of(VALUES, KNOWN), 3.0, "float64"),
        *(step.state for step in steps_of(1)),
    ]
    spares.put(states[0].gaussian)  # a factor, no matrix
    assert spares.take(states[1].gaussian) is None
    spares.put(states[1].gaussian)
    narrower = initial_state(signals_of(VALUES[:, 1:], KNOWN[:, 1:]), 3.0, "float64")
    assert spares.take(narrower.gaussian) is None
    spares.put(states[1].gaussian)
    shorter = initial_state(signals_of(VALUES, KNOWN), 3.0, "float32")
    assert spares.take(shorter.gaussian) is None
    spares.put(states[1].gaussian)
    assert spares.take(states[1].gaussian) is states[1].gaussian.covariance.matrix
    assert spares.take(states[1].gaussian) is None  # once


def test_a_fit_that_nobody_looks_into_needs_the_memory_of_two_covariances_and_a_step():
    values, known = random_table(1200, 400, 0.05, seed=4)
    split = no_split(ratings_of(values, known))
    list(Fit(split, FitSettings(iterations=2), team=ThreadPool(1)).records())  # what is made once
    tracemalloc.start()
    try:
        fit = Fit(split, FitSettings(iterations=6), team=ThreadPool(1))
        places = [fit.look(lambda gaussian: id(gaussian.covariance)) for _ in fit.records()]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(places) == 6
    assert peak < 3.9 * 400**2 * 8  # it is 3.6, and one Σ more would be 4.6


def test_no_reference_is_counted():
    """The count means something else where the interpreter borrows references."""
    for path in Path(gmc_core.__file__).parent.rglob("*.py"):
        assert "getrefcount" not in path.read_text(encoding="utf-8"), path
