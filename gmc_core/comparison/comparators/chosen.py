"""Models whose settings are chosen inside the training set of every split anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gmc_core import former
from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.comparison.comparators.gaussian import fit_and_predict
from gmc_core.data.ratings import Ratings
from gmc_core.fitting.auto import SECONDS, choose
from gmc_core.fitting.config import MODEL_VERSIONS
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import Split
from gmc_core.protocol.validation import hold_out

VERSION = 1
# Raised whenever the automatic choice would try or choose otherwise.
AUTO_VERSION = 3


@dataclass(frozen=True)
class TunedMapEm:
    """The paper's MAP-EM with ε and L of least NMAE on ratings held out of training.

    factors : what the scale's default ε is multiplied with.
    iterations : the largest L; every smaller one is looked at too.
    seed : of the ratings held out, one of each training user.
    """

    factors: tuple[float, ...] = (1 / 3, 1.0, 3.0, 10.0, 30.0)
    iterations: int = 10
    seed: int = 0
    name: str = "paper-tuned"
    label: str = "Gaussian: the paper's MAP-EM, ε and L tuned"

    def __post_init__(self) -> None:
        if not self.factors or self.iterations < 1:
            raise ConfigError("Tuning needs at least one ε and one iteration.")

    @property
    def settings(self) -> FitSettings:
        """Of each fit that is tried, but for ε."""
        return FitSettings(iterations=self.iterations)

    @property
    def identity(self) -> str:
        """What is tried, and the model's version."""
        return f"{VERSION} {MODEL_VERSIONS['paper']} {self.factors} {self.iterations} {self.seed}"

    def choose(self, train: Ratings, team: ThreadPool) -> FitSettings:
        """The settings of least NMAE; it never sees a split's held-out ratings.

        Raises
        ------
        DataError
            If nothing can be held out of training.
        NumericalError
            If the fit breaks down with every ε.
        """
        inner, _ = hold_out(train, self.seed, most=1)
        base = self.settings.resolved(train.scale)
        assert base.epsilon is not None
        tried: list[tuple[float, FitSettings]] = []
        for factor in self.factors:
            settings = replace(base, epsilon=base.epsilon * factor)
            try:
                for record in Fit(inner, settings, team=team).records():
                    assert record.nmae is not None
                    tried.append((record.nmae, replace(settings, iterations=record.iteration)))
            except NumericalError:
                continue  # the iterations before the breakdown count
        if not tried:
            raise NumericalError("MAP-EM broke down with every ε tried. Raise ε.")
        return min(tried, key=lambda entry: entry[0])[1]

    def predict(self, split: Split, team: ThreadPool) -> npt.NDArray[np.float64]:
        """(n_test,) predictions after a fit to all training ratings; tuning is included."""
        return fit_and_predict(split, self.choose(split.train, team), team)


@dataclass(frozen=True)
class AutoModel:
    """Model and settings of :func:`gmc_core.fitting.auto.choose`, for every split anew.

    seconds : wall time to choose in; a faster machine tries more.
    seed : of the ratings held out of training.
    """

    seconds: float = SECONDS
    seed: int = 0
    name: str = "auto"
    label: str = "Gaussian: chosen automatically"

    @property
    def identity(self) -> str:
        """Time, seed and the latest version of the models that it tries."""
        latest = max(MODEL_VERSIONS.values())
        return f"{AUTO_VERSION} {latest} {self.seconds!r} {self.seed}"

    def predict(self, split: Split, team: ThreadPool) -> npt.NDArray[np.float64]:
        """(n_test,) predictions after a fit to all training ratings; choosing is included."""
        choice = choose(split.train, seconds=self.seconds, seed=self.seed, team=team)
        return fit_and_predict(split, choice.settings, team)


__getattr__ = former.renamed(__name__, TunedRecipe="TunedMapEm")
