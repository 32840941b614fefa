"""A scikit-learn imputer over the same core: a table with NaN in, a completed one out.

scikit-learn is optional; this module alone needs it, and says so where it is absent.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, MissingPackageError
from gmc_core.base.extras import remedy
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.settings import Precision
from gmc_core.tables.bounds import Bounds, draw_within
from gmc_core.tables.table_model import (
    Method,
    TableModel,
    check_settings,
    choose_epsilon,
    fit_table,
)

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingPackageError(
        f"The imputer needs scikit-learn 1.6 or newer, which is not installed. {remedy('sklearn')}"
    ) from error

__all__ = ["GaussianImputer", "MissingPackageError", "ParameterError"]

# For tables with too few entries to hide any of them. See docs/imputer.md.
DEFAULT_EPSILON = 0.1
DEFAULT_ITERATIONS = 20

Random = np.random.RandomState | int | None
Table = npt.NDArray[np.floating]


class ParameterError(ConfigError, ValueError):
    """A parameter without a meaning; a ValueError too, as scikit-learn expects."""


class GaussianImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill the blanks of a table with their conditional means under one Gaussian.

    Columns are standardised inside and may have any units. Rows are drawn from
    N(μ, Σ); a blank becomes its expectation given the entries of its row, and has a
    posterior standard deviation (:meth:`transform_sd`).

    Parameters
    ----------
    method : {"exact", "paper"}
        EM with the posterior covariance in the M-step, or the paper's MAP-EM.
    epsilon : "auto" or float ≥ 0
        ε added to Σ's diagonal, as a share of each column's variance. "auto" takes the
        one that predicts hidden entries of the training table best.
    iterations : int, 0 to 1000
        L, at most; 0 fills with the columns' means.
    tol : float ≥ 0
        End earlier, once an iteration changes Σ by at most this share (Frobenius).
    noise : float ≥ 0
        Variance of an entry's noise, as a share of its column's variance.
    keep_empty_features : bool
        A column without any training entry keeps its place and is filled with 0, as
        scikit-learn's imputers do if asked to; nothing is known of it, and its
        standard deviation is NaN. False leaves it out.
    dtype : {"float64", "float32"}
        Working precision. The result has the precision of the table.
    random_state : int, RandomState or None
        For the entries hidden by ``epsilon="auto"``, and for the samples: one draw
        after another goes on in the same stream, which a fit begins anew.
    missing_values : number, text, None or NaN, or a list of them
        What stands for a missing entry, such as -99 or "?"; NaN and None always do.
    min_value, max_value : float or (n_features,)
        Limits of what is filled in, in the table's units, as IterativeImputer has
        them. A filled mean beyond one is moved to it; draws are from the Gaussian cut
        off there. Given entries stay, and standard deviations are of the Gaussian
        without limits.

    Attributes
    ----------
    mean_ : (n_features,), covariance_ : (n_features, n_features)
        μ and Σ in the table's units; NaN for a column without entries.
    epsilon_ : float
        The ε of the fit. epsilons_, epsilon_errors_ : what "auto" tried, and the root
        mean squared error of hidden entries, in standard deviations; empty otherwise.
    log_likelihoods_ : (n_iter_,)
        Of the standardised given entries, after every iteration.
    n_iter_, n_features_in_, feature_names_in_ : as in scikit-learn.

    Raises
    ------
    ParameterError
        On fitting, for parameters without a meaning; a GmcError and a ValueError.
    NumericalError, ResourceError
        On fitting, if ε is too small for the table, or Σ too large for the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from gmc_core.tables.imputer import GaussianImputer
    >>> table = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, np.nan], [4.0, 8.0]])
    >>> imputer = GaussianImputer(epsilon=1e-3).fit(table)
    >>> float(imputer.transform(table)[2, 1].round(1))
    6.0
    """

    def __init__(
        self,
        *,
        method: Method = "exact",
        epsilon: float | str = "auto",
        iterations: int = DEFAULT_ITERATIONS,
        tol: float = 1e-3,
        noise: float = 0.0,
        keep_empty_features: bool = True,
        dtype: Precision = "float64",
        random_state: Random = 0,
        missing_values: Any = np.nan,
        min_value: npt.ArrayLike = -np.inf,
        max_value: npt.ArrayLike = np.inf,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.iterations = iterations
        self.tol = tol
        self.noise = noise
        self.keep_empty_features = keep_empty_features
        self.dtype = dtype
        self.random_state = random_state
        self.missing_values = missing_values
        self.min_value = min_value
        self.max_value = max_value

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn μ and Σ from a table (n_samples, n_features) with NaN where blank."""
        table = self._validated(X, reset=True).astype(np.float64)
        epsilon = self._checked_epsilon()
        self.bounds_ = self._checked_bounds(table.shape[1])
        team = ThreadPool()
        common: dict[str, Any] = {
            "noise": self.noise, "method": self.method, "dtype": self.dtype, "team": team,
        }  # fmt: skip
        self.epsilons_, self.epsilon_errors_ = np.empty(0), np.empty(0)
        if epsilon is None:
            rng = self._rng()
            choice = choose_epsilon(table, rng, default=DEFAULT_EPSILON, **common)
            epsilon = choice.epsilon
            self.epsilons_ = np.array(choice.tried)
            self.epsilon_errors_ = np.array(choice.errors)
        model = fit_table(
            table, epsilon=epsilon, iterations=int(self.iterations), tol=self.tol, **common
        )
        self.model_: TableModel = model
        # Of a RandomState, the owner's stream is used instead.
        seeded = self.random_state is None or not hasattr(self.random_state, "randint")
        self.stream_ = self._rng() if seeded else None
        self.epsilon_ = float(epsilon)
        self.log_likelihoods_ = np.array(model.log_likelihoods)
        self.n_iter_ = len(model.log_likelihoods)
        empty = np.flatnonzero(model.standards.empty)
        if len(empty):
            done = "filled with 0" if self.keep_empty_features else "left out"
            names = getattr(self, "feature_names_in_", np.arange(table.shape[1]))[empty]
            warnings.warn(
                f"Columns without any entry are {done}: {', '.join(map(str, names[:5]))}"
                f"{', …' if len(names) > 5 else ''}.",
                stacklevel=2,
            )
        return self

    def transform(self, X: npt.ArrayLike) -> Table:
        """The completed table, (n_samples, n_features_out); given entries stay as they are.

        X : (n_samples, n_features) with the columns of the fit; NaN where a value is missing.

        Raises
        ------
        ValueError
            If X has other columns, or infinite values.
        """
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        values, _ = self.model_.fill(table.astype(np.float64), sd=False, team=ThreadPool())
        return self._finished(self._known_bounds().clip(values, ~np.isnan(table))[0], table)

    def transform_sd(self, X: npt.ArrayLike) -> Table:
        """Posterior standard deviation of each entry, in its column's units.

        0 for a given entry and in a constant column; NaN in a column of which nothing
        is known.
        """
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        _, deviations = self.model_.fill(table.astype(np.float64), sd=True, team=ThreadPool())
        assert deviations is not None
        return deviations[:, self._kept()].astype(table.dtype)

    def sample(self, n_samples: int = 1, *, random_state: Random = None) -> Table:
        """New rows (n_samples, n_features_out) drawn from the fitted Gaussian.

        Between the limits, where there are any. Columns of which nothing is known are
        0, as in :meth:`transform`. ``random_state`` as for :meth:`sample_blanks`.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ParameterError(f"At least one row can be drawn, not {n_samples}.")
        if self._known_bounds().limited.any():
            nothing = np.full((n_samples, self.n_features_in_), np.nan)
            return self._finished(self._drawn(nothing, random_state), nothing)
        drawn = self.model_.sample(n_samples, self._draws(random_state))
        return np.where(self.model_.standards.empty, 0.0, drawn)[:, self._kept()]

    def sample_blanks(self, X: npt.ArrayLike, *, random_state: Random = None) -> Table:
        """The completed table with each row's blanks drawn from their joint posterior.

        Several calls are multiple imputations: each goes on in the stream that the
        fit began, so that all differ, and a program that runs again draws the same.

        random_state : a seed of this call, which then always draws the same. Copies of
            an imputer (in other processes, say) need one each.
        """
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        drawn = self._drawn(table.astype(np.float64), random_state)
        return self._finished(drawn, table)

    def _drawn(
        self, table: npt.NDArray[np.float64], random_state: Random
    ) -> npt.NDArray[np.float64]:
        """A table with its blanks drawn, between the limits where there are any."""
        rng, bounds = self._draws(random_state), self._known_bounds()
        if bounds.limited.any():
            return draw_within(self.model_, table, bounds, rng, ThreadPool())
        return self.model_.sample_blanks(table, rng, ThreadPool())

    def score_samples(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(n_samples,) log density of each row's given entries, in the table's units.

        Entries of constant and of empty columns have no density and are left out.
        """
        check_is_fitted(self)
        table = self._validated(X, reset=False).astype(np.float64)
        return self.model_.row_log_likelihoods(table, ThreadPool())

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Mean observed-data log-likelihood of the rows of X, (n_samples, n_features), in nats.

        Higher is better; ``y`` is ignored.
        """
        return float(self.score_samples(X).mean())

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """(n_features_out,) names of the completed table's columns."""
        return super().get_feature_names_out(input_features)[self._kept()]

    @property
    def mean_(self) -> npt.NDArray[np.float64]:
        """μ (n_features,) in the table's units."""
        check_is_fitted(self, "model_")
        return self.model_.mean_and_covariance()[0]

    @property
    def covariance_(self) -> npt.NDArray[np.float64]:
        """Σ (n_features, n_features) in the table's units."""
        check_is_fitted(self, "model_")
        return self.model_.mean_and_covariance()[1]

    def __sklearn_tags__(self) -> Any:
        """NaN is what this is for; float32 in gives float32 out."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validated(self, X: npt.ArrayLike, *, reset: bool) -> Table:
        """The table as floating-point numbers, by scikit-learn's rules."""
        marked = _without_codes(X, self.missing_values)
        return validate_data(
            self, marked, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )

    def _checked_epsilon(self) -> float | None:
        """ε, None for "auto"; raises ParameterError for any parameter without a meaning."""
        auto = isinstance(self.epsilon, str)
        if auto and self.epsilon != "auto":
            raise ParameterError(f"ε is 'auto' or a number of at least 0, not {self.epsilon!r}.")
        try:
            epsilon = None if auto else float(self.epsilon)
            if not self.tol >= 0:
                raise ParameterError(f"The tolerance is at least 0, not {self.tol}.")
            iterations = self.iterations
            if isinstance(iterations, np.integer):
                iterations = int(iterations)
            check_settings(
                DEFAULT_EPSILON if epsilon is None else epsilon,
                iterations, float(self.noise), self.method, self.dtype,
            )  # fmt: skip
        except ConfigError as error:
            raise ParameterError(str(error)) from None
        except (TypeError, ValueError):
            raise ParameterError("ε, tol and noise are numbers of at least 0.") from None
        return epsilon

    def _checked_bounds(self, columns: int) -> Bounds:
        """The limits, one of each kind a column; raises ParameterError."""
        ends = []
        for name in ("min_value", "max_value"):
            try:
                end = np.asarray(getattr(self, name), np.float64)
                ends.append(np.broadcast_to(end, (columns,)).copy())
            except (TypeError, ValueError):
                raise ParameterError(
                    f"{name} is a number, or one for each of the {columns} columns."
                ) from None
        try:
            return Bounds(*ends)
        except ConfigError as error:
            raise ParameterError(str(error)) from None

    def _known_bounds(self) -> Bounds:
        """The limits; none in an imputer stored before there were any."""
        none = np.full(self.n_features_in_, np.inf)
        return getattr(self, "bounds_", Bounds(-none, none))

    def _draws(self, random_state: Random) -> np.random.Generator:
        """Random numbers for one call: of its own seed, or those that follow in the stream."""
        if random_state is not None:
            return self._rng(random_state)
        stream = getattr(self, "stream_", None)
        return self._rng() if stream is None else stream

    def _rng(self, random_state: Random = None) -> np.random.Generator:
        """Random numbers of ``random_state``, by scikit-learn's rules for it."""
        state = check_random_state(self.random_state if random_state is None else random_state)
        return np.random.default_rng(state.randint(2**31, size=4))

    def _kept(self) -> npt.NDArray[np.int64]:
        """Positions of the columns that the completed table has."""
        check_is_fitted(self, "model_")
        empty = self.model_.standards.empty
        return np.flatnonzero(~empty | self.keep_empty_features)

    def _finished(self, values: npt.NDArray[np.float64], table: Table) -> Table:
        """The kept columns in the table's precision; 0 where nothing is known."""
        unknown = np.isnan(values)
        bounds = self._known_bounds()
        nothing = np.clip(0.0, bounds.low, bounds.high)
        values = np.where(unknown & self.model_.standards.empty, nothing, values)
        return values[:, self._kept()].astype(table.dtype)


def _without_codes(X: Any, codes: Any) -> Any:
    """The same with NaN where an entry equals one of the codes for a missing one."""
    several = isinstance(codes, Sequence | set | frozenset | np.ndarray) and not isinstance(
        codes, str | bytes
    )
    wanted = [code for code in (codes if several else [codes]) if code is not None and code == code]
    if not wanted:
        return X
    if hasattr(X, "isin") and hasattr(X, "mask"):
        return X.mask(X.isin(wanted))
    table = np.asarray(X)
    numbers = [code for code in wanted if not isinstance(code, str)]
    if table.dtype.kind in "biuf":
        kind = table.dtype if table.dtype.kind == "f" else np.float64
        found = np.isin(table, np.asarray(numbers, kind)) if numbers else False
        return np.where(found, np.nan, table).astype(kind)
    table = table.astype(object)
    for code in wanted:
        table[table == code] = np.nan
    return table
