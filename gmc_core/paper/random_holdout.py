"""Published figures under random hold-out, with what each of them may and may not be compared with.

All are RMSE on a random tenth of the ratings, without a filter. A figure alone says little: some
were the best of many on the very ratings that they are reported on, some use the times of ratings.
Both are stated here, as far as the publication or its program tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.paper.published import Reference
from gmc_core.protocol.filter_options import Filter

Chosen = Literal["inside", "test", "untold"]
CHOSEN_WORDS: Mapping[Chosen, str] = {
    "inside": "without the test ratings",
    "test": "on the test ratings",
    "untold": "not known",
}
_ALMOST = 1e-9


@dataclass(frozen=True)
class RandomResult:
    """One published figure.

    method, reference : what, and where it was published.
    rmse : as printed, with ``digits`` behind the point.
    split : the test ratings, in words.
    uses : what is used beside the ratings themselves, such as "times"; "" for nothing.
    chosen : on what settings or the iteration reported were chosen.
    """

    method: str
    reference: Reference
    rmse: float
    split: str
    chosen: Chosen
    uses: str = ""
    digits: int = 3

    @property
    def rmse_text(self) -> str:
        """The figure in the digits in which it was printed."""
        return f"{self.rmse:.{self.digits}f}"


@dataclass(frozen=True)
class RandomTable:
    """The published figures on a data set, and its size without a filter, by which it is known."""

    data_set: str
    users: int
    items: int
    scale: tuple[float, float, float]
    results: tuple[RandomResult, ...]


MYFM = Reference("myFM, its example ml-1m-extended")
GLOCAL_K = Reference(
    "han2021glocal",
    "S. C. Han, T. Lim, S. Long, B. Burgstaller and J. Poon",
    "GLocal-K: Global and Local Kernels for Recommender Systems",
    "CIKM",
    2021,
)
KERNEL_NET = Reference(
    "muller2018kernelized",
    "L. Muller, J. Martel and G. Indiveri",
    "Kernelized Synaptic Weight Matrices",
    "ICML",
    2018,
)
CF_NADE = Reference(
    "zheng2016neural",
    "Y. Zheng, B. Tang, W. Ding and H. Zhou",
    "A Neural Autoregressive Approach to Collaborative Filtering",
    "ICML",
    2016,
)
AUTOREC = Reference(
    "sedhain2015autorec",
    "S. Sedhain, A. K. Menon, S. Sanner and L. Xie",
    "AutoRec: Autoencoders Meet Collaborative Filtering",
    "WWW",
    2015,
)
GC_MC = Reference(
    "berg2017graph",
    "R. van den Berg, T. N. Kipf and M. Welling",
    "Graph Convolutional Matrix Completion",
    "arXiv 1706.02263",
    2017,
)
RENDLE = Reference(
    "rendle2019difficulty",
    "S. Rendle, L. Zhang and Y. Koren",
    "On the Difficulty of Evaluating Baselines",
    "arXiv 1905.01395",
    2019,
)
TENTH = "a random tenth"
SEEN = "implicit feedback"  # who rated what, also where the rating itself is unknown

MOVIELENS_1M = RandomTable(
    "MovieLens 1M",
    6_040,
    3_706,
    (1, 5, 1),
    (
        RandomResult(
            "Ordered probit, timeSVD++ flipped, rank 32",
            MYFM,
            0.8140,
            "one of 10 folds",
            "inside",
            f"times, {SEEN}",
            digits=4,
        ),
        RandomResult("GLocal-K", GLOCAL_K, 0.8227, TENTH, "test", digits=4),
        RandomResult("SparseFC (kernelNet)", KERNEL_NET, 0.824, TENTH, "test"),
        RandomResult("CF-NADE", CF_NADE, 0.829, TENTH, "inside"),
        RandomResult("I-AutoRec", AUTOREC, 0.831, TENTH, "untold"),
        RandomResult("GC-MC", GC_MC, 0.832, TENTH, "untold"),
        RandomResult("LLORMA, as reported with AutoRec", AUTOREC, 0.833, TENTH, "untold"),
        RandomResult(
            "Biased factorisation, as reported with AutoRec", AUTOREC, 0.845, TENTH, "untold"
        ),
    ),
)
MOVIELENS_10M = RandomTable(
    "MovieLens 10M",
    69_878,
    10_677,
    (0.5, 5, 0.5),
    (
        RandomResult(
            "Bayesian timeSVD++ flipped", RENDLE, 0.7485, TENTH, "untold", f"times, {SEEN}", 4
        ),
        RandomResult("Bayesian timeSVD++", RENDLE, 0.7523, TENTH, "untold", f"times, {SEEN}", 4),
        RandomResult("Bayesian SVD++", RENDLE, 0.7563, TENTH, "untold", SEEN, 4),
        RandomResult("Bayesian factorisation", RENDLE, 0.7633, TENTH, "untold", digits=4),
        RandomResult(
            "Factorisation by gradient descent", RENDLE, 0.7720, TENTH, "untold", digits=4
        ),
        RandomResult("GC-MC", GC_MC, 0.777, TENTH, "untold"),
        RandomResult("I-AutoRec", AUTOREC, 0.782, TENTH, "untold"),
        RandomResult("LLORMA, as reported with AutoRec", AUTOREC, 0.782, TENTH, "untold"),
    ),
)
RANDOM_TABLES: Mapping[str, RandomTable] = {"ml-1m": MOVIELENS_1M, "ml-10m": MOVIELENS_10M}


def random_table_for(data: Mapping[str, Any] | None) -> RandomTable | None:
    """The published figures for data, by their description; None if there are none.

    data : of :func:`gmc_core.fitting.preparing.describe`, after the filter.
    """
    if data is None:
        return None
    for table in RANDOM_TABLES.values():
        same = (data["users"], data["items"]) == (table.users, table.items)
        if same and tuple(data["scale"]) == table.scale:
            return table
    return None


def is_random_tenth(config: ExperimentConfig) -> bool:
    """Whether an experiment holds out a random tenth of all ratings, without a filter."""
    share = config.held_out or config.usual_held_out.get("held_out")
    tenth = config.folds == 10 or (share is not None and abs(share - 0.1) < _ALMOST)
    return config.protocol == "random" and config.filter == Filter(0, 0) and tenth


def caution(table: RandomTable) -> str:
    """What a reader must know before comparing with the figures of a table."""
    return (
        f"RMSE on {table.data_set}, {table.users:,} users and {table.items:,} items, no filter, on "
        "a random tenth of the ratings. The splits are each author's own, and chance alone moves "
        "the RMSE of one split by about .002 on 100,000 ratings and .0006 on a million. Figures "
        "chosen on the test ratings are too low by what the choice gained; figures that use times "
        "or implicit feedback know more than the ratings that train."
    )
