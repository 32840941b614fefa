"""From the posterior to what is shown: the only conversion from the Gaussian to ratings.

A model believes of every item a Gaussian, whose centre and variance are in ratings, or
for ordered ratings in latent responses. What is shown, scored and written is in ratings, and all
of it comes from here: held-out predictions of a fit, predictions of pairs, completed
tables, recommendations and their explanations.

For numbers the prediction is the centre. For ordered ratings it is what the cuts decide,
see :meth:`gmc_core.gaussian.ordinal.OrdinalScale.point_prediction`: with cuts 1.5, 2.3, 3.3, 4.5
a latent response of 2.4 is a 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.priors import latent_variance
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.calibration import USUAL_FACTOR

Floats = npt.NDArray[np.float64]

# What the parts of an explanation add up to.
SUM_OF_NUMBERS = "The mean of all users and all shares add up to the prediction, exactly."
SUM_OF_LATENT = (
    "The mean of all users and all shares are latent responses and add up to latent, exactly; the "
    "cuts between the ratings make the prediction from it."
)


@dataclass(frozen=True, eq=False)
class Answers:
    """What is shown of some predictions. All arrays have one shape.

    prediction : in ratings, not rounded to the scale, of which it may lie a little outside.
    latent : the centre of the belief, which explanations add up to and lists are ranked
        by: the prediction itself, or for ordered ratings the latent response.
    sd : standard deviation of a new rating, or of a new latent response; None where unknown.
    scale, ordinal : of the model.
    factor : half the width of its intervals in standard deviations, as calibrated where it is.
    """

    prediction: Floats
    latent: Floats
    sd: Floats | None
    scale: RatingScale
    ordinal: OrdinalScale | None
    factor: float = USUAL_FACTOR

    @property
    def rating(self) -> Floats:
        """The prediction projected to the scale, in its shape, as before errors are measured."""
        return np.asarray(self.scale.project(self.prediction), dtype=np.float64)

    def interval(self, factor: float | None = None) -> tuple[Floats, Floats]:
        """Lowest and highest rating within ``factor`` standard deviations, by default the own.

        For numbers the prediction ± factor · sd, clipped to the scale. For ordered ratings
        the values into which the ends of the interval of latent responses fall; both ends belong to
        it, and ``rating`` lies between them.

        Raises
        ------
        ValueError
            If the standard deviations are unknown.
        """
        if self.sd is None:
            raise ValueError("There is no interval without standard deviations.")
        reach = (self.factor if factor is None else factor) * self.sd
        ends = self.latent - reach, self.latent + reach
        if self.ordinal is None:
            low, high = (np.clip(end, self.scale.low, self.scale.high) for end in ends)
        else:
            low, high = (self.ordinal.rating_of(end) for end in ends)
        return low, high


def answers(
    latent: npt.ArrayLike,
    sd: npt.ArrayLike | None = None,
    *,
    scale: RatingScale,
    ordinal: OrdinalScale | None,
    noise: Noise,
    settings: FitSettings,
    factor: float = USUAL_FACTOR,
) -> Answers:
    """What is shown of beliefs with these centres and standard deviations.

    Parameters
    ----------
    latent : centres, of any shape; NaN stays NaN. sd : of a new observation, the same
        shape, or None.
    scale, ordinal, noise, settings : of the model; ``ordinal`` is None where the Gaussian
        describes the ratings themselves.
    factor : see :class:`Answers`.
    """
    centre = np.asarray(latent, dtype=np.float64)
    prediction = centre
    if ordinal is not None:
        variance = latent_variance(noise, settings)
        prediction = ordinal.point_prediction(centre.ravel(), variance).reshape(centre.shape)
    return Answers(
        prediction=prediction,
        latent=centre,
        sd=None if sd is None else np.asarray(sd, dtype=np.float64),
        scale=scale,
        ordinal=ordinal,
        factor=factor,
    )


def explained(ordinal: OrdinalScale | None) -> str:
    """What explanations of a model add up to, in a sentence."""
    return SUM_OF_NUMBERS if ordinal is None else SUM_OF_LATENT
