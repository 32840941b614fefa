"""The two tables of results in the paper, and its settings, as data.

Léger, Yu and Sapiro, "Efficient Matrix Completion with Gaussian Models",
section 3. The numbers are the printed ones; most gaps between the best methods
are smaller than two standard errors of one experiment.
"""

from __future__ import annotations

from dataclasses import dataclass

from gmc_core.protocol.metrics import Scores


@dataclass(frozen=True)
class Reference:
    """Where a published result comes from.

    ``key`` is the paper's citation key. The other fields are ``None`` where the
    paper's text leaves open which publication is meant.
    """

    key: str
    authors: str | None = None
    title: str | None = None
    venue: str | None = None
    year: int | None = None

    def __str__(self) -> str:
        if self.authors is None:
            return f"[{self.key}]"
        if self.title is None:
            return f"{self.authors}, {self.year}"
        return f"{self.authors}, “{self.title}”, {self.venue}, {self.year}"


@dataclass(frozen=True)
class PublishedResult:
    """One line of a table: the NMAE of a method; ``None`` stands for "n/a"."""

    method: str
    reference: Reference
    weak: float | None
    strong: float | None


@dataclass(frozen=True)
class Settings:
    """The data and protocol of a table, as the paper states them.

    Attributes
    ----------
    low, high : the ends of the rating scale, in steps of 1.
    divisor : the NMAE factor as printed.
    raw_users, raw_items : before the filter.
    min_user_ratings, min_item_ratings : the filter.
    users, items : after the filter.
    fill_percent : ratings ÷ (users × items) after the filter, as printed.
    weak_users, strong_users : drawn for either protocol.
    repetitions : experiments averaged.
    """

    low: int
    high: int
    divisor: float
    raw_users: int
    raw_items: int
    users: int
    items: int
    fill_percent: float
    weak_users: int
    strong_users: int
    min_user_ratings: int = 20
    min_item_ratings: int = 2
    repetitions: int = 3


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper: a data set, its settings, and all methods' results."""

    data_set: str
    settings: Settings
    results: tuple[PublishedResult, ...]

    @property
    def best_weak(self) -> float:
        """The smallest weak NMAE of the table."""
        return min(row.weak for row in self.results if row.weak is not None)

    @property
    def best_strong(self) -> float:
        """The smallest strong NMAE of the table."""
        return min(row.strong for row in self.results if row.strong is not None)


@dataclass(frozen=True)
class ComparisonRow:
    """One line of a table for display.

    Attributes
    ----------
    method, reference : what to show; a measured row has the reference "this run".
    weak, strong : NMAE; ``None`` where there is none.
    weak_se, strong_se : standard errors, of a measured row only.
    weak_gap, strong_gap : this row's NMAE minus the measured one, above 0 where
        the measured one is better; ``None`` where either is missing.
    measured : whether this is the product's own result.
    """

    method: str
    reference: str
    weak: float | None
    strong: float | None
    weak_se: float | None = None
    strong_se: float | None = None
    weak_gap: float | None = None
    strong_gap: float | None = None
    measured: bool = False


URP = Reference(
    "marlin2004collaborative",
    "B. Marlin",
    "Collaborative Filtering: A Machine Learning Perspective",
    "MSc thesis, University of Toronto",
    2004,
)
# The paper's text has no bibliography, and its key fits more than one publication.
ATTITUDE = Reference("marlin2004modeling", "B. Marlin", year=2004)
MMMF = Reference(
    "rennie2005fast",
    "J. Rennie and N. Srebro",
    "Fast Maximum Margin Matrix Factorization for Collaborative Prediction",
    "ICML",
    2005,
)
IPCF = Reference(
    "park2007applying",
    "S.-T. Park and D. Pennock",
    "Applying Collaborative Filtering Techniques to Movie Search for Better Ranking and Browsing",
    "KDD",
    2007,
)
E_MMMF = Reference(
    "decoste2006collaborative",
    "D. DeCoste",
    "Collaborative Prediction Using Ensembles of Maximum Margin Matrix Factorizations",
    "ICML",
    2006,
)
GPLVM = Reference(
    "lawrence2009non",
    "N. Lawrence and R. Urtasun",
    "Non-linear Matrix Factorization with Gaussian Processes",
    "ICML",
    2009,
)
M3F = Reference(
    "mackey2010",
    "L. Mackey, D. Weiss and M. Jordan",
    "Mixed Membership Matrix Factorization",
    "ICML",
    2010,
)
NBMC = Reference(
    "zhou10nonparametric",
    "M. Zhou, C. Wang, M. Chen, J. Paisley, D. Dunson and L. Carin",
    "Nonparametric Bayesian Matrix Completion",
    "IEEE SAM",
    2010,
)
GM = Reference(
    "the paper",
    "F. Léger, G. Yu and G. Sapiro",
    "Efficient Matrix Completion with Gaussian Models",
    "ICASSP",
    2011,
)

EACHMOVIE = PublishedTable(
    "EachMovie",
    Settings(
        low=1,
        high=6,
        divisor=1.944,
        raw_users=74_424,
        raw_items=1_648,
        users=36_656,
        items=1_621,
        fill_percent=4.3,
        weak_users=30_000,
        strong_users=5_000,
    ),
    (
        PublishedResult("URP", URP, 0.4422, 0.4557),
        PublishedResult("Attitude", ATTITUDE, 0.4520, 0.4550),
        PublishedResult("MMMF", MMMF, 0.4397, 0.4341),
        PublishedResult("IPCF", IPCF, 0.4382, 0.4365),
        PublishedResult("E-MMMF", E_MMMF, 0.4287, 0.4301),
        PublishedResult("GPLVM", GPLVM, 0.4179, 0.4134),
        PublishedResult("M³F", M3F, 0.4293, None),
        PublishedResult("NBMC", NBMC, 0.4109, 0.4091),
        PublishedResult("GM", GM, 0.4164, 0.4163),
    ),
)

MOVIELENS_1M = PublishedTable(
    "MovieLens 1M",
    Settings(
        low=1,
        high=5,
        divisor=1.6,
        raw_users=6_040,
        raw_items=3_900,
        users=6_040,
        items=3_592,
        fill_percent=4.6,
        weak_users=5_000,
        strong_users=1_000,
    ),
    (
        PublishedResult("URP", URP, 0.4341, 0.4444),
        PublishedResult("Attitude", ATTITUDE, 0.4320, 0.4375),
        PublishedResult("MMMF", MMMF, 0.4156, 0.4203),
        PublishedResult("IPCF", IPCF, 0.4096, 0.4113),
        PublishedResult("E-MMMF", E_MMMF, 0.4029, 0.4071),
        PublishedResult("GPLVM", GPLVM, 0.4026, 0.3994),
        PublishedResult("M³F", M3F, None, None),
        PublishedResult("NBMC", NBMC, 0.3916, 0.3992),
        PublishedResult("GM", GM, 0.3959, 0.3928),
    ),
)

TABLES = {"eachmovie": EACHMOVIE, "ml-1m": MOVIELENS_1M}


def compare(
    table: PublishedTable,
    weak: Scores | float | None = None,
    strong: Scores | float | None = None,
    *,
    method: str = "This product",
) -> list[ComparisonRow]:
    """The table's rows with the product's own result as the last.

    Parameters
    ----------
    table : the published results.
    weak, strong : what was measured, as scores (with a standard error) or a bare
        NMAE; ``None`` where that protocol has not been run.
    method : the name of the measured row. It is left out if nothing was measured.

    Returns
    -------
    The rows in the table's order.
    """
    own_weak, weak_se = _nmae(weak)
    own_strong, strong_se = _nmae(strong)
    rows = [
        ComparisonRow(
            method=row.method,
            reference=str(row.reference),
            weak=row.weak,
            strong=row.strong,
            weak_gap=_gap(row.weak, own_weak),
            strong_gap=_gap(row.strong, own_strong),
        )
        for row in table.results
    ]
    if own_weak is not None or own_strong is not None:
        rows.append(
            ComparisonRow(
                method, "this run", own_weak, own_strong, weak_se, strong_se, measured=True
            )
        )
    return rows


def _nmae(measured: Scores | float | None) -> tuple[float | None, float | None]:
    if isinstance(measured, Scores):
        return measured.nmae, measured.nmae_se
    return measured, None


def _gap(published: float | None, measured: float | None) -> float | None:
    return None if published is None or measured is None else published - measured
