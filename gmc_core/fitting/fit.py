"""One fit on one split: a model's iterations, with held-out evaluation after each.

fit = Fit(split, FitSettings(epsilon=0.3))
for record in fit.records():      # the caller owns progress and stopping
    print(record.iteration, record.nmae)
model = fit.model()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gmc_core import former
from gmc_core.base.errors import NumericalError
from gmc_core.fitting.algorithms import algorithm
from gmc_core.fitting.checks import StateError as StateError
from gmc_core.fitting.cost import has_large_weights
from gmc_core.fitting.inputs import FitInputs, OfInputs
from gmc_core.fitting.notebook_view import fit_html
from gmc_core.fitting.records import IterationRecord as IterationRecord
from gmc_core.gaussian.covariance import low_rank_of
from gmc_core.gaussian.em import MapEm, initial_state
from gmc_core.gaussian.estep import e_step, predict_pairs
from gmc_core.gaussian.factor import SharedBeliefs
from gmc_core.gaussian.folding import fold_in
from gmc_core.gaussian.iterate import EmAlgorithm, EmState, EmStep, Spares, iterate
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import (
    Memberships,
    MixtureState,
    initial_mixture,
    mixture_e_step,
    predict_mixture,
)
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Signals
from gmc_core.gaussian.user_folding import UserFolding
from gmc_core.model.answers import answers
from gmc_core.model.factor_model import FactorModel
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.mixture_model import MixtureModel
from gmc_core.model.two_sided_model import TwoSidedModel
from gmc_core.protocol.metrics import Scores
from gmc_core.protocol.splits import Split

Found = TypeVar("Found")


class Fit(OfInputs):
    """A fit in progress: inputs that never change, and the state of the last iteration.

    A new Σ is written into the memory of one that is no longer needed, which saves an N × N
    matrix and the time for fresh memory. What has been handed out (:attr:`state`,
    :meth:`model`) counts as lent and is never written over.

    Parameters
    ----------
    split : what to learn from and what to predict.
    settings : defaults are filled in from the rating scale.
    team : the threads, and the way to cancel; see :class:`ThreadPool`.
    start : the state of an interrupted fit with the same inputs.
    memory_limit : bytes; default see :func:`gmc_core.fitting.cost.memory_limit`.

    Raises
    ------
    ConfigError
        If settings and protocol have no meaning together, or all ratings are equal and
        the default ε, a share of their range, would be 0.
    StateError
        If ``start`` has other dimensions than these ratings, or is of another model.
    ResourceError
        If the fit would need more memory than allowed.

    Attributes
    ----------
    inputs : what it was given, made ready; most of it is a property of its own.
    predictions : (n_test,) of ``state``, unprojected.
    history : the records so far, of this object: a resumed fit begins with none.
    """

    def __init__(
        self,
        split: Split,
        settings: FitSettings | None = None,
        *,
        team: ThreadPool | None = None,
        start: EmState | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self._begin(FitInputs.of(split, settings, team, memory_limit), start, None)

    @classmethod
    def of(
        cls,
        inputs: FitInputs,
        *,
        start: EmState | None = None,
        shared: SharedBeliefs | None = None,
    ) -> Fit:
        """A fit with inputs that are ready.

        shared : who does the E-step of a low-rank model, if not this process.

        Raises
        ------
        StateError
            As for ``start``.
        """
        found = cls.__new__(cls)
        found._begin(inputs, start, shared)
        return found

    def _begin(
        self, inputs: FitInputs, start: EmState | None, shared: SharedBeliefs | None
    ) -> None:
        self.inputs, self._shared = inputs, shared
        if start is not None:
            inputs.check_state(start)
        self._state = start or self._initial_state()
        self._lent = start is not None  # whether somebody else may hold the state's Σ
        self.predictions = self._predict()
        self.history: list[IterationRecord] = []

    def _repr_html_(self) -> str:
        train = self.split.train
        sizes = f"{train.n_users:,} × {train.n_items:,}, {len(train):,} ratings"
        return fit_html(train.name, self.history, self.settings.as_dict(), sizes)

    @property
    def state(self) -> EmState:
        """The last finished iteration; stays usable after a cancel or an error.

        Its arrays belong to the caller: the fit never writes over this Σ, whatever follows.

        MAP-EM with large weights (:func:`gmc_core.fitting.cost.has_large_weights`) keeps those
        of one iteration only. Where it was stopped in the next E-step, reading this does the
        work of the last finished one again.
        """
        self._lent = True
        return self._whole_state()

    def look(self, at: Callable[[Gaussian], Found]) -> Found:
        """What ``at`` computes from (μ, Σ) of the last finished iteration.

        It must not keep a reference to them: unlike after :attr:`state` and :meth:`model`,
        the memory of this Σ is used again for a later one.
        """
        return at(self._state.gaussian)

    def _whole_state(self) -> EmState:
        """The state with its weights."""
        if self._state.weights.size:
            return self._state
        if self.iteration == 0:
            self._state = self._initial_state()
        else:
            team = ThreadPool(self.team.size)  # the fit's own may have been told to stop
            found = e_step(self.signals, self._state.gaussian, self.inputs.noise, team)
            self._state = replace(self._state, weights=found.weights)
        return self._state

    @property
    def iteration(self) -> int:
        """Of the last finished iteration; 0 before the first."""
        return self._state.iteration

    def _drop_weights(self) -> None:
        """Forget the weights of ``state`` if they are large; see :attr:`state`."""
        if has_large_weights(len(self.signals.values), self.signals.dimension):
            self._state = replace(self._state, weights=np.zeros(0))

    def _initial_state(self) -> EmState:
        assert self.settings.initial is not None
        signals = self.signals
        if self.ordinal is not None:
            guess = self.ordinal.first_guess(signals.values)
            signals = replace(signals, values=guess)
        if self.inputs.clusters is not None:
            return initial_mixture(signals, self.settings.initial, self.settings.dtype)
        return initial_state(signals, self.settings.initial, self.settings.dtype)

    @property
    def noise(self) -> Noise:
        """Σ_w of ``state``: as given, or as learned so far."""
        variance = self._state.noise
        if variance is None:
            return self.inputs.noise
        return Noise.of(variance, self.signals.dimension, self.inputs.session)

    def records(self) -> Iterator[IterationRecord]:
        """Run the remaining iterations, one record each.

        Raises
        ------
        NumericalError, Cancelled
            See :func:`gmc_core.gaussian.iterate.iterate`; ``state`` is the last finished iteration.
        """
        steps, spares = self._algorithm(), Spares()
        for step in iterate(
            steps,
            self._whole_state(),
            self.settings.iterations,
            spares=spares,
            after_m_step=self._drop_weights if isinstance(steps, MapEm) else None,
            progress=self.team.progress,
        ):
            began = time.perf_counter()
            self.team.progress.begin("predictions")
            old_state, old_predictions, old_lent = self._state, self.predictions, self._lent
            self._state, self._lent = step.state, False
            try:
                self.predictions = self._predict()
                record = self._record(step, old_predictions, began)
            except BaseException as error:
                # Stopped while predicting: the state stays that of the last record.
                self._state, self.predictions, self._lent = old_state, old_predictions, old_lent
                if isinstance(error, NumericalError):
                    at = step.state.iteration
                    raise error.during(f"Predictions of iteration {at}", at) from error
                raise
            finally:
                self.team.progress.begin()
            if steps.reuses_memory and not old_lent:
                spares.put(old_state.gaussian)
            self.history.append(record)
            del old_state, step  # or the old weights would stay in memory for one more iteration
            yield record

    def _algorithm(self) -> EmAlgorithm[Any, Any]:
        return algorithm(
            self.settings, self.split.train, self.signals, self.inputs.noise, self.team,
            ordinal=self.ordinal, clusters=self.inputs.clusters, users=self.inputs.users,
            start=self._initial_state, shared=self._shared,
        )  # fmt: skip

    def seen(self) -> tuple[Signals, Gaussian]:
        """The query set and the Gaussian of ``state``, with all that moves the users' means."""
        return self.inputs.users.seen(self.query_signals, self._state, self.team, self.ordinal)

    def user_folding(self) -> UserFolding | None:
        """What finds the loadings of new users in ``state``; None without a users' side."""
        return self.inputs.users.folding(self._state, self.team)

    def scores(self) -> Scores | None:
        """Scores of the current predictions, None without hold-out."""
        return self.inputs.scores(self.predictions)

    def model(self) -> GaussianModel:
        """The model of the current state, with the training ratings; see :attr:`state`."""
        self._lent = True
        described: dict[str, Any] = dict(
            gaussian=self._state.gaussian,
            noise=self.noise,
            ordinal=self.ordinal,
            groups=None if self._state.gaussian.coefficients is None else self.groups,
            layout=self.signals.layout,
            items=self.split.train.items,
            item_info=self.split.train.item_info,
            scale=self.split.train.scale,
            ratings=self.split.train,
            settings=self.settings,
            iteration=self.iteration,
            data_name=self.split.train.name,
            data_sha256=self.split.train.sha256,
            licence=self.split.train.licence,
            citation=self.split.train.citation,
        )
        if isinstance(self._state, MixtureState):
            return MixtureModel(**described, mixture=self._state.mixture)
        if users := self.inputs.users.of_model(self._state, ThreadPool(self.team.size)):
            return TwoSidedModel(**{**described, **users})
        if low_rank_of(self._state.gaussian.covariance):
            return FactorModel(**described)
        return GaussianModel(**described)

    def _predict(self) -> npt.NDArray[np.float64]:
        """Held-out predictions of the current state."""
        if not self.split.n_test:
            return np.zeros(0)
        state = self._whole_state()
        if isinstance(state, MixtureState):
            return self._predict_mixture(state)
        weights, (query, gaussian) = state.weights, self.seen()
        if self.query_signals is not self.signals:
            weights = fold_in(query, gaussian, self.noise, self.team, self.ordinal)
        latent = predict_pairs(
            query, weights, gaussian, *self.pairs, self.team,
            session=self.inputs.session, pair_times=self.pair_times,
        )  # fmt: skip
        return self._in_ratings(latent)

    def _in_ratings(self, latent: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Predictions in ratings from the posterior means."""
        return answers(
            latent,
            scale=self.split.train.scale,
            ordinal=self.ordinal,
            noise=self.noise,
            settings=self.settings,
        ).prediction

    def _predict_mixture(self, state: MixtureState) -> npt.NDArray[np.float64]:
        query, found = self.query_signals, self.memberships(state)
        latent = predict_mixture(
            query,
            found.weights,
            found.responsibilities,
            state.mixture,
            *self.pairs,
            self.team,
        )
        return self._in_ratings(latent)

    def memberships(self, state: MixtureState) -> MixtureState | Memberships:
        """Weights and responsibilities of ``query_signals`` under a mixture."""
        if self.query_signals is self.signals:
            return state
        return mixture_e_step(self.query_signals, state.mixture, self.noise, self.team)

    def _record(
        self, step: EmStep, before: npt.NDArray[np.float64], began: float
    ) -> IterationRecord:
        scores = self.scores()
        change = float(np.abs(self.predictions - before).max()) if len(before) else None
        return IterationRecord(
            iteration=step.state.iteration,
            nmae=None if scores is None else scores.nmae,
            nmae_se=None if scores is None else scores.nmae_se,
            mae=None if scores is None else scores.mae,
            rmse=None if scores is None else scores.rmse,
            nmae_unprojected=None if scores is None else scores.nmae_unprojected,
            log_likelihood=step.log_likelihood,
            map_objective=step.map_objective,
            penalised_objective=step.penalised_objective,
            covariance_change=step.covariance_change,
            prediction_change=change,
            noise=float(self.noise.variances(np.arange(self.noise.dimension)).mean()),
            e_seconds=step.e_seconds,
            m_seconds=step.m_seconds,
            evaluation_seconds=time.perf_counter() - began,
        )


def run_fit(
    split: Split,
    settings: FitSettings | None = None,
    *,
    on_iteration: Callable[[IterationRecord], object] | None = None,
    team: ThreadPool | None = None,
) -> Fit:
    """Run a whole :class:`Fit`; returns it at its last iteration, and raises what it raises.

    on_iteration : called with the record of every iteration; where it returns a true value the
        fit stops after that iteration.
    """
    running = Fit(split, settings, team=team)
    for record in running.records():
        if on_iteration is not None and on_iteration(record):
            break
    return running


__getattr__ = former.renamed(__name__, fit="run_fit")
