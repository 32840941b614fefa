"""Reading ratings: MovieLens, EachMovie, Jester, and any delimited text.

>>> from gmc_core.data.readers import load
>>> loaded = load("ml-1m.zip")            # doctest: +SKIP
>>> print(loaded.report)                  # doctest: +SKIP
"""

from gmc_core.data.readers.delimited import DelimitedOptions, Preview
from gmc_core.data.readers.loading import FORMATS, detect, load
from gmc_core.data.readers.pairs import Pairs, Triplets, preview, read_pairs, read_triplets
from gmc_core.data.readers.report import POLICIES, DuplicatePolicy, Loaded, LoadReport

__all__ = [
    "FORMATS",
    "POLICIES",
    "DelimitedOptions",
    "DuplicatePolicy",
    "LoadReport",
    "Loaded",
    "Pairs",
    "Preview",
    "Triplets",
    "detect",
    "load",
    "preview",
    "read_pairs",
    "read_triplets",
]
