"""How good predictions are: NMAE as in section 3.1, MAE, RMSE, and differences.

Notation: n test ratings y_k, raw predictions x_k, and P the projection to the
nearest value of the rating scale, the paper's post-processing (section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError, NotFiniteError
from gmc_core.base.quantiles import student_quantile
from gmc_core.data.ratings import RatingScale


@dataclass(frozen=True)
class Scores:
    """The errors of n predictions; 0 is perfect, smaller is better.

    Attributes
    ----------
    n : number of test ratings, 1 or more.
    nmae : Σ |P(x_k) - y_k| / (n · divisor); 1 is random guessing.
    nmae_se : standard error of ``nmae``: the sample standard deviation of
        |P(x_k) - y_k| / (√n · divisor); NaN for n = 1, where it has no value.
    mae : Σ |P(x_k) - y_k| / n, in ratings.
    rmse : √(Σ (clip(x_k) - y_k)² / n), in ratings; predictions are clipped to
        the range of the scale but not rounded, which would only add error.
    nmae_unprojected, mae_unprojected, rmse_unprojected : the same of x_k as it is.
    rmse_projected : √(Σ (P(x_k) - y_k)² / n).
    divisor : E|a - b| for a, b uniform on the scale (`RatingScale.nmae_divisor`).
    n_unseen : test ratings whose user or item has no known rating, as far as the
        caller has said which.
    """

    n: int
    nmae: float
    nmae_se: float
    mae: float
    rmse: float
    nmae_unprojected: float
    mae_unprojected: float
    rmse_unprojected: float
    rmse_projected: float
    divisor: float
    n_unseen: int = 0

    def as_dict(self) -> dict[str, float]:
        """The scores by name."""
        return asdict(self)


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a_k - b_k over the same n cases, with a 95 % interval.

    Attributes
    ----------
    n : number of pairs, 2 or more.
    mean : Σ (a_k - b_k) / n; below 0 where a has the smaller errors.
    se : sample standard deviation of a_k - b_k, divided by √n.
    low, high : mean ∓ t · se, t the 97.5 % point of Student's t with n - 1
        degrees of freedom.
    """

    n: int
    mean: float
    se: float
    low: float
    high: float

    @classmethod
    def around(cls, mean: float, se: float, n: int) -> PairedDifference:
        """A mean with the interval that its standard error gives it."""
        reach = student_quantile(0.975, n - 1) * se
        return cls(n, mean, se, mean - reach, mean + reach)

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves out 0: the data tell which is better."""
        return self.low > 0 or self.high < 0


def score(
    predicted: npt.ArrayLike,
    actual: npt.ArrayLike,
    scale: RatingScale,
    unseen: npt.ArrayLike | None = None,
) -> Scores:
    """All scores of one set of predictions; see :class:`Scores` for the formulas.

    Parameters
    ----------
    predicted : (n,) raw predictions, not clipped or rounded.
    actual : (n,) held-out ratings on the scale.
    scale : the rating scale.
    unseen : (n,) bool, which test ratings have a user or item without known
        ratings; they are scored like the others, and counted.

    Raises
    ------
    DataError
        If there are no test ratings, or one lies outside the scale.
    NumericalError
        If a prediction is NaN or infinite.
    ConfigError
        If the scale has one value only.
    """
    x, y = _checked(predicted, actual, scale)
    mask = np.zeros(len(y), dtype=bool) if unseen is None else np.asarray(unseen, dtype=bool)
    if mask.shape != y.shape:
        raise ValueError(f"unseen has shape {mask.shape}, the test ratings have {y.shape}.")
    divisor = scale.nmae_divisor
    projected = scale.project(x) - y
    clipped = np.clip(x, scale.low, scale.high) - y
    absolute = np.abs(projected)
    mae, mae_raw = float(absolute.mean()), float(np.abs(x - y).mean())
    n = len(y)
    deviation = float(absolute.std(ddof=1)) if n > 1 else float("nan")
    return Scores(
        n=n,
        nmae=mae / divisor,
        nmae_se=deviation / np.sqrt(n).item() / divisor,
        mae=mae,
        rmse=_rms(clipped),
        nmae_unprojected=mae_raw / divisor,
        mae_unprojected=mae_raw,
        rmse_unprojected=_rms(x - y),
        rmse_projected=_rms(projected),
        divisor=divisor,
        n_unseen=int(mask.sum()),
    )


def score_pooled(
    repetitions: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    scale: RatingScale,
    unseen: Sequence[npt.ArrayLike] | None = None,
) -> Scores:
    """Scores of the test ratings of several repetitions taken together.

    With test sets of equal size the NMAE is the average over repetitions, as in
    the paper, and the standard error is that of all n ratings. The repetitions
    share users and training ratings, so this error is a little too small.

    Parameters
    ----------
    repetitions : (predicted, actual) of each repetition, as for :func:`score`.
    scale : the rating scale.
    unseen : the mask of each repetition.

    Raises
    ------
    DataError, NumericalError, ConfigError
        As :func:`score`; each repetition must have test ratings.
    """
    if len(repetitions) == 0:
        raise DataError("There are no repetitions to score. Run at least one split with a test.")
    checked = [_checked(predicted, actual, scale) for predicted, actual in repetitions]
    return score(
        np.concatenate([x for x, _ in checked]),
        np.concatenate([y for _, y in checked]),
        scale,
        None if unseen is None else np.concatenate([np.asarray(mask) for mask in unseen]),
    )


def normalized_errors(
    predicted: npt.ArrayLike, actual: npt.ArrayLike, scale: RatingScale
) -> npt.NDArray[np.float64]:
    """(n,) |P(x_k) - y_k| / divisor, whose mean is the NMAE.

    Two methods on one split are compared by the :func:`paired_difference` of
    these. Raises what :func:`score` raises.
    """
    x, y = _checked(predicted, actual, scale)
    return np.asarray(np.abs(scale.project(x) - y) / scale.nmae_divisor)


def paired_difference(errors_a: npt.ArrayLike, errors_b: npt.ArrayLike) -> PairedDifference:
    """Compare two methods by their errors on the same test ratings.

    What makes a rating hard is common to both methods and cancels, so this
    resolves differences that two separate standard errors cannot.

    Parameters
    ----------
    errors_a, errors_b : (n,) errors in the same order, n ≥ 2.

    Raises
    ------
    DataError
        If the lengths differ or there are fewer than two pairs.
    NumericalError
        If an error is NaN or infinite.
    """
    a, b = np.asarray(errors_a, dtype=np.float64), np.asarray(errors_b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise DataError(
            f"Paired errors need two lists of one length, not of shapes {a.shape} and {b.shape}. "
            "Score both methods on the same split."
        )
    n = len(a)
    if n < 2:
        raise DataError(f"An interval needs at least two test ratings, not {n}. Test more users.")
    difference = a - b
    _require_finite(difference, "errors")
    mean, se = float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(n))
    return PairedDifference.around(mean, se, n)


def mean_with_interval(values: npt.ArrayLike) -> PairedDifference:
    """The mean of (n,) values with its interval: their paired difference to 0.

    Raises what :func:`paired_difference` raises.
    """
    own = np.asarray(values, dtype=np.float64)
    return paired_difference(own, np.zeros_like(own))


def _checked(
    predicted: npt.ArrayLike, actual: npt.ArrayLike, scale: RatingScale
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    if y.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"{x.shape} predictions do not fit {y.shape} test ratings.")
    if len(y) == 0:
        raise DataError(
            "There are no test ratings, so there is no error to compute. Choose a protocol that "
            "holds ratings out."
        )
    # Written so that NaN counts as outside.
    outside = ~((y >= scale.low) & (y <= scale.high))
    if outside.any():
        raise DataError(
            f"{int(outside.sum()):,} of {len(y):,} test ratings lie outside the scale {scale}. "
            "Give the scale that the ratings have.",
            value=float(y[outside][0]),
        )
    _require_finite(x, "predictions")
    return x, y


def _require_finite(values: npt.NDArray[np.float64], what: str) -> None:
    broken = int((~np.isfinite(values)).sum())
    if broken:
        raise NotFiniteError(
            f"{broken:,} of {len(values):,} {what} are not finite, so no error can be computed. "
            "The fit broke down: raise ε or the noise."
        )


def _rms(errors: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(errors**2)))


FEW_RATINGS = 1000
WIDE_ERROR = 0.01
MOST_REPETITIONS = 20


def few_held_out(n: int, nmae_se: float | None) -> bool:
    """Whether the held-out ratings are too few to tell close methods apart.

    They are where the standard error of NMAE exceeds .01, or there are fewer than 1,000:
    most of what is compared here differs by less than .02, and of MovieLens 1M's 5,000 the
    standard error is .006.

    Parameters
    ----------
    n : held-out ratings. nmae_se : standard error of NMAE; None or NaN if it is not known.
    """
    wide = nmae_se is not None and np.isfinite(nmae_se) and nmae_se > WIDE_ERROR
    return 0 < n and (n < FEW_RATINGS or bool(wide))


def few_held_out_words(n: int, of: int | None = None, *, emphasis: str = "") -> str:
    """What it means that the held-out ratings are few, without a full stop.

    Parameters
    ----------
    n : held-out ratings. of : all ratings, where they are to be named.
    emphasis : mark-up on both sides of "few".
    """
    among = "" if of is None else f" (of {of:,})"
    return (
        f"{n:,} held-out ratings{among} are {emphasis}few{emphasis}: they do not tell methods "
        "apart that differ by less than about two standard errors"
    )


def enough_repetitions(repetitions: int, n: int, nmae_se: float | None) -> int:
    """Repetitions with which the held-out ratings would not be few, at most 20; 0 if more
    than there are would not help or are not needed.

    It assumes that a repetition holds out as many ratings as those before, and that the
    standard error falls with the root of their number.
    """
    if not few_held_out(n, nmae_se) or repetitions >= MOST_REPETITIONS:
        return 0
    share = FEW_RATINGS / n
    if nmae_se is not None and np.isfinite(nmae_se):
        share = max(share, (nmae_se / WIDE_ERROR) ** 2)
    return min(max(int(np.ceil(repetitions * share)), repetitions + 1), MOST_REPETITIONS)
