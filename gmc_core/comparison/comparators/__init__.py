"""Methods to compare the Gaussian with, on the same splits and by the same metrics.

``method``          the protocol of a method, and the means and biases under it
``item_knn``        item-based k nearest neighbours
``factorisation``   biased matrix factorisation
``gaussian``        this package's own models under the same protocol
``chosen``          the same with settings chosen inside the training set
``external``        external baselines: other packages, each in a process and environment of its own
``names``           all of them by name
"""

from gmc_core import former
from gmc_core.comparison.comparators.chosen import AutoModel, TunedMapEm
from gmc_core.comparison.comparators.external import EXTERNAL_LABELS, ExternalBaseline
from gmc_core.comparison.comparators.factorisation import MatrixFactorisation
from gmc_core.comparison.comparators.gaussian import GaussianMethod
from gmc_core.comparison.comparators.item_knn import ItemKnn
from gmc_core.comparison.comparators.method import BASELINES, Baseline, Method
from gmc_core.comparison.comparators.registry import available, method_named

__all__ = [
    "BASELINES",
    "EXTERNAL_LABELS",
    "AutoModel",
    "Baseline",
    "ExternalBaseline",
    "GaussianMethod",
    "ItemKnn",
    "MatrixFactorisation",
    "Method",
    "TunedMapEm",
    "available",
    "method_named",
]

__getattr__ = former.renamed(
    __name__,
    ItemProximity="ItemKnn",
    PEER_LABELS="EXTERNAL_LABELS",
    PeerMethod="ExternalBaseline",
    TunedRecipe="TunedMapEm",
)
