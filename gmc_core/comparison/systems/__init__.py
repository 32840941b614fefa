"""The systems of the paper's tables, as methods of the comparison.

``system``     what they share: the choice of settings inside training, tables by user and item
``ipcf``       item proximity by adjusted cosine
``nbmc``       nonparametric Bayesian matrix completion
``urp``        user rating profiles
``attitude``   softmax of attitudes
``mmmf``       maximum margin matrix factorisation
``ensemble``   of these
``gplvm``      a Gaussian process over items
``m3f``        mixed membership matrix factorisation

``SYSTEMS`` lists them, one line each.
"""

from gmc_core.comparison.systems.attitude import Attitude
from gmc_core.comparison.systems.ensemble import EnsembleMmmf
from gmc_core.comparison.systems.gplvm import Gplvm
from gmc_core.comparison.systems.ipcf import Ipcf
from gmc_core.comparison.systems.m3f import MixedMembership
from gmc_core.comparison.systems.mmmf import Mmmf
from gmc_core.comparison.systems.nbmc import Nbmc
from gmc_core.comparison.systems.system import System
from gmc_core.comparison.systems.urp import Urp

SYSTEMS: tuple[System, ...] = (
    Urp(),
    Attitude(),
    Mmmf(),
    Ipcf(),
    EnsembleMmmf(),
    Gplvm(),
    MixedMembership(),
    Nbmc(),
)

__all__ = ["SYSTEMS", "System"]
