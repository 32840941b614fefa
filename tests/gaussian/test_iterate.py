"""The one loop: what holds for every algorithm that goes through it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pytest
from making import random_table, ratings_of, signals_of

from gmc_core.base.errors import NotPositiveDefiniteError, NumericalError
from gmc_core.fitting import fit as fitting
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian import em, exact, mixture
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.em import MapEm, initial_state, map_em
from gmc_core.gaussian.exact import ExactEm, ExactOptions, exact_em
from gmc_core.gaussian.iterate import EmState, Figures, Spares, iterate
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.mixture import MixtureEm, initial_mixture, mixture_em
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import LatentResponses, OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import no_split

SIGNALS = signals_of(*random_table(40, 9, 0.5, 1))
ITERATIONS = 6
ALGORITHMS = {"paper": MapEm, "exact": ExactEm, "ordinal": ExactEm, "mixture": MixtureEm}


def steps_of(model, iterations=ITERATIONS, *, pool=None, start=None):
    """The steps of one model on the same signals."""
    pool = pool or ThreadPool(1)
    settings = {"epsilon": 0.1, "iterations": iterations, "noise": Noise.of(0.3, 9), "team": pool}
    if model == "mixture":
        groups = np.arange(SIGNALS.count) % 2
        start = start or initial_mixture(SIGNALS, 3.0, "float64")
        return mixture_em(SIGNALS, start, groups=groups, warm=2, **settings)
    start = start or initial_state(SIGNALS, 3.0, "float64")
    if model == "paper":
        return map_em(SIGNALS, start, objective=True, **settings)
    latent = None
    if model == "ordinal":
        latent = LatentResponses(OrdinalScale.of(SIGNALS.values), SIGNALS.values)
    options = ExactOptions(warm=2, latent=latent, learn_noise=True)
    return exact_em(SIGNALS, start, options=options, **settings)


def collect(steps, states: list[EmState]) -> None:
    """Add the state of each step, as far as the steps get."""
    for step in steps:
        states.append(step.state)


def fingerprint(state: EmState) -> str:
    """Hash of all arrays of a state."""
    everything = np.arange(9)
    arrays = [state.weights, state.gaussian.mean, np.zeros(0)]
    arrays += [state.gaussian.covariance.submatrix(everything, everything)]
    if state.values is not None:
        arrays.append(state.values)
    if isinstance(state, mixture.MixtureState):
        arrays += [state.responsibilities, state.mixture.proportions]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


@pytest.mark.parametrize("model", ALGORITHMS)
def test_every_model_goes_through_the_loop(model, monkeypatch):
    seen = []

    def watched(algorithm, *arguments, **more):
        seen.append(type(algorithm))
        return iterate(algorithm, *arguments, **more)

    for module in (em, exact, mixture, fitting):
        monkeypatch.setattr(module, "iterate", watched)
    list(steps_of(model, 1))
    settings = FitSettings(iterations=1, model=model, noise=0.3)
    list(Fit(no_split(ratings_of(*random_table(40, 9, 0.5, 1))), settings).records())
    assert seen == 2 * [ALGORITHMS[model]]


@pytest.mark.parametrize("model", ALGORITHMS)
def test_no_iterations_are_legal(model):
    assert list(steps_of(model, 0)) == []
    *_, last = steps_of(model, 3)
    assert list(steps_of(model, 3, start=last.state)) == []


@pytest.mark.parametrize("model", ALGORITHMS)
@pytest.mark.parametrize("step", ["m_step", "e_step", "figures"])
def test_an_error_names_its_iteration_and_leaves_the_steps_before_valid(model, step, monkeypatch):
    whole = [fingerprint(one.state) for one in steps_of(model)]
    original, calls = getattr(ALGORITHMS[model], step), []

    def broken(self, state, *rest):
        calls.append(step)
        if len(calls) == 4:
            raise NotPositiveDefiniteError("Broken on purpose.")
        return original(self, state, *rest)

    monkeypatch.setattr(ALGORITHMS[model], step, broken)
    kept = []
    with pytest.raises(NumericalError, match=r"^Iteration 4: Broken on purpose\.") as caught:
        collect(steps_of(model), kept)
    assert caught.value.iteration == 4
    assert [state.iteration for state in kept] == [1, 2, 3]
    assert [fingerprint(state) for state in kept] == whole[:3]
    monkeypatch.undo()
    rest = [fingerprint(one.state) for one in steps_of(model, start=kept[-1])]
    assert rest == whole[3:]


@pytest.mark.parametrize("model", ALGORITHMS)
def test_a_cancelled_step_leaves_the_steps_before_valid(model):
    whole = [fingerprint(one.state) for one in steps_of(model)]
    asked = []
    list(steps_of(model, pool=ThreadPool(1, lambda: bool(asked.append(1)))))
    for allowed in range(0, len(asked), 5):
        left = iter(range(allowed))
        pool = ThreadPool(1, lambda left=left: next(left, None) is None)
        kept = []
        with pytest.raises(Cancelled):
            collect(steps_of(model, pool=pool), kept)
        assert [fingerprint(state) for state in kept] == whole[: len(kept)]
        if kept:
            rest = [fingerprint(one.state) for one in steps_of(model, start=kept[-1])]
            assert rest == whole[len(kept) :]


@pytest.mark.parametrize("model", ALGORITHMS)
def test_a_step_changes_no_earlier_one(model):
    kept = [(one.state, fingerprint(one.state)) for one in steps_of(model)]
    assert [fingerprint(state) for state, _ in kept] == [seen for _, seen in kept]


# The loop itself, with an algorithm that has nothing to compute -----------------------


@dataclass
class Counting:
    """Notes what the loop calls, and what matrix it hands over."""

    reuses_memory: bool
    calls: list[str]
    spares: list[np.ndarray | None]

    def resume(self, state):
        self.calls.append("resume")
        return state

    def m_step(self, state, spare):
        self.calls.append("m")
        self.spares.append(spare)
        gaussian = Gaussian(np.zeros(2), DenseCovariance(np.eye(2)))
        return replace(state, iteration=state.iteration + 1, gaussian=gaussian), 0.5

    def e_step(self, state, last):
        self.calls.append("last e" if last else "e")
        return state, -float(state.iteration)

    def figures(self, state, expected):
        return Figures(expected, map_objective=2 * expected)


def start() -> EmState:
    return EmState(0, Gaussian(np.zeros(2), DenseCovariance(np.eye(2))), np.zeros(0))


def test_the_loop_resumes_once_and_knows_the_last_step():
    algorithm = Counting(False, [], [])
    between = algorithm.calls
    steps = list(iterate(algorithm, start(), 3, after_m_step=lambda: between.append("between")))
    assert algorithm.calls == [
        "resume", "m", "between", "e", "m", "between", "e", "m", "between", "last e",
    ]  # fmt: skip
    assert [step.log_likelihood for step in steps] == [-1.0, -2.0, -3.0]
    assert [step.map_objective for step in steps] == [-2.0, -4.0, -6.0]
    assert all(step.penalised_objective is None for step in steps)
    assert all(step.covariance_change == 0.5 for step in steps)
    assert all(step.e_seconds >= 0 and step.m_seconds >= 0 for step in steps)


@pytest.mark.parametrize("reuses", [True, False])
def test_only_an_algorithm_that_can_gets_memory_of_before(reuses):
    algorithm, spares = Counting(reuses, [], []), Spares()
    given = []
    for step in iterate(algorithm, start(), 3, spares=spares):
        given.append(step.state.gaussian.covariance.matrix)
        spares.put(step.state.gaussian)
    expected = [None, *given[:2]] if reuses else [None] * 3
    assert all(one is other for one, other in zip(algorithm.spares, expected, strict=True))
