"""Matrix completion with one Gaussian: MAP-EM, its protocols, and what goes beyond them."""

import os

# OpenBLAS's threads wait busily for 2^26 processor cycles (20 ms or more) after a product of many
# threads, and take the cores from the solves that follow it: a quarter of the sample's E-step.
# 2^20 are enough to go from one product to the next. OpenBLAS reads this when it is loaded, so
# it has no effect, and does no harm, where NumPy was imported first.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from gmc_core import former

former.install()
