"""Whether this machine has what the product needs, as data: each check with its remedy.

``gmc doctor`` prints it. Nothing is changed: no folder is made, no run is touched.
"""

from gmc_core.doctor.check import Check, Status, worst
from gmc_core.doctor.examine import examine

__all__ = ["Check", "Status", "examine", "worst"]
