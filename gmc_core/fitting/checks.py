"""What a fit refuses: ratings that are all equal, a stored state of another fit."""

from __future__ import annotations

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.users_side import UsersSide
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.iterate import EmState
from gmc_core.gaussian.mixture import MixtureState
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Signals


class StateError(ConfigError):
    """A stored state that is not of these ratings and settings."""


def check_range(settings: FitSettings, scale: RatingScale) -> None:
    """Refuse ratings that are all equal, unless the settings make up for a default ε of 0."""
    given = settings.epsilon is not None or settings.noise or not settings.iterations
    if scale.high == scale.low and not given:
        raise ConfigError(
            f"All ratings equal {scale.low:g}, so there is nothing to predict, and the default ε, "
            "a share of their range, would be 0. Use data with at least two rating values, or "
            "give ε."
        )


def check_state(
    state: EmState,
    signals: Signals,
    settings: FitSettings,
    *,
    groups: int,
    components: int,
    users: UsersSide,
) -> None:
    """Refuse a state whose arrays have other sizes: compiled code would read past their ends.

    groups : of users, which B has a column of each. components : of a mixture, 0 for one
        Gaussian. users : the users' side of a two-sided model.

    Raises
    ------
    StateError
        If the state is not one of a fit to these signals with these settings.
    """
    ratings, size = len(signals.values), signals.dimension
    gaussians, weights = [state.gaussian], [state.weights]
    right = isinstance(state, MixtureState) == (components > 0)
    if isinstance(state, MixtureState):
        gaussians, weights = [*gaussians, *state.mixture.components], [*state.weights]
        count = len(state.mixture.components)
        right &= count in (1, components) and len(weights) == count
        right &= state.responsibilities.shape == (signals.count, count)
    right &= users.fits(state)
    for gaussian in gaussians:
        own = gaussian.covariance
        right &= gaussian.mean.shape == (size,) and own.dimension == size
        right &= own.dtype == settings.dtype
        B = gaussian.coefficients
        right &= B is None or (groups > 0 and B.shape == (size, groups))
        right &= not isinstance(own, DenseCovariance) or own.matrix.shape == (size, size)
    right &= all(own.shape == (ratings,) for own in weights)
    right &= state.values is None or state.values.shape == (ratings,)
    right &= state.noise is None or (settings.learn_noise and state.noise > 0)
    if not right:
        raise StateError(
            f"The stored state of iteration {state.iteration} is not one of a fit with these "
            f"settings to {ratings:,} ratings of {size:,} coordinates. Begin without it."
        )
