"""All methods by name, as the command line and the dashboard offer them."""

from __future__ import annotations

from collections.abc import Mapping

from gmc_core.comparators.factorisation import MatrixFactorisation
from gmc_core.comparators.gaussian import GaussianMethod
from gmc_core.comparators.method import BASELINES, Method
from gmc_core.comparators.peers import ENVIRONMENT, PEER_LABELS, PeerMethod
from gmc_core.comparators.proximity import ItemProximity
from gmc_core.errors import ConfigError
from gmc_core.ratings import RatingScale
from gmc_core.settings import FitSettings

COMPARATORS: dict[str, Method] = {
    **BASELINES,
    **{method.name: method for method in (ItemProximity(), MatrixFactorisation())},
}
PAPER = "paper"
MODELS = {PAPER: "Gaussian, the paper's recipe"}


def available(peers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Names of all methods that can run → their labels, models first, packages last.

    peers : of :func:`gmc_core.comparators.peers.installed_peers`.
    """
    return {
        **MODELS,
        **{name: method.label for name, method in COMPARATORS.items()},
        **{name: PEER_LABELS[name] for name in peers or {}},
    }


def method_named(name: str, scale: RatingScale, peers: Mapping[str, str] | None = None) -> Method:
    """A method by its name.

    Parameters
    ----------
    scale : of the ratings; some settings depend on it.
    peers : name → interpreter, of :func:`gmc_core.comparators.peers.installed_peers`.

    Raises
    ------
    ConfigError
        If there is no such method, or it is a package's that is not installed.
    """
    if name in COMPARATORS:
        return COMPARATORS[name]
    if name in MODELS:
        return GaussianMethod(name, FitSettings(), MODELS[name])
    if name in (peers or {}):
        assert peers is not None
        return PeerMethod(name, peers[name])
    if name in PEER_LABELS:
        raise ConfigError(
            f"{PEER_LABELS[name]} is not installed in any Python that was named. Give one that "
            f"has it with --peer-python, or in {ENVIRONMENT}."
        )
    raise ConfigError(
        f"There is no method {name!r}; there are {', '.join(available())}, and with other "
        f"packages {', '.join(PEER_LABELS)}."
    )
