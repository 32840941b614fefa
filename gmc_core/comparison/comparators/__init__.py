"""Methods to compare the Gaussian with, on the same splits and by the same metrics.

``method``          the protocol of a method, and the means and biases under it
``proximity``       item proximity (k nearest neighbours)
``factorisation``   biased matrix factorisation
``gaussian``        this package's own models under the same protocol
``chosen``          the same with settings chosen inside the training set
``peers``           other packages, each in a process and an environment of its own
``names``           all of them by name
"""

from gmc_core.comparison.comparators.chosen import AutoModel, TunedRecipe
from gmc_core.comparison.comparators.factorisation import MatrixFactorisation
from gmc_core.comparison.comparators.gaussian import GaussianMethod
from gmc_core.comparison.comparators.method import BASELINES, Baseline, Method
from gmc_core.comparison.comparators.names import available, method_named
from gmc_core.comparison.comparators.peers import PEER_LABELS, PeerMethod
from gmc_core.comparison.comparators.proximity import ItemProximity

__all__ = [
    "BASELINES",
    "AutoModel",
    "PEER_LABELS",
    "Baseline",
    "GaussianMethod",
    "ItemProximity",
    "MatrixFactorisation",
    "Method",
    "PeerMethod",
    "TunedRecipe",
    "available",
    "method_named",
]
