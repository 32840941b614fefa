"""The nine methods of the paper's tables on one map, in words.

Across: what of a method is Gaussian, from nothing to the whole covariance of the items. Down: what
it takes a rating for. :data:`PLACES` has a line for each; ``docs/systems.md`` and the Results page
show the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from gmc_core.paper.systems import OWN

COLUMNS = (
    ("nothing", "shares, or similarities"),
    ("a prior", "of points that are then estimated"),
    ("factors", "Σ of low rank, drawn by a sampler"),
    ("a process", "Σ = K(X, X) from items’ places"),
    ("the row", "every entry of Σ is learned"),
)
ROWS = (
    ("one of V levels", "each with a probability"),
    ("between two cuts", "on the line of u · v"),
    ("a number", "rounded at the end"),
)


@dataclass(frozen=True)
class Place:
    """Where a method stands.

    method : as in :class:`gmc_core.paper.published.PublishedResult`. column, row : its place in
        ``COLUMNS`` and ``ROWS``. short : what it is, in a few words.
    gaussian : what is Gaussian in it. rating : what it assumes of a rating.
    chosen : which settings are chosen, and how. work : what a fit does.
    """

    method: str
    column: int
    row: int
    short: str
    gaussian: str
    rating: str
    chosen: str
    work: str


PLACES = (
    Place(
        "URP", 0, 0, "a mix of attitudes",
        "Nothing. A person is shares of K attitudes, with a Dirichlet prior.",
        "One of V levels. For each rating the person takes up one attitude, and an attitude has "
        "for each item a probability of every level.",
        "K and how strongly rare levels are smoothed, inside training.",
        "Variational EM: each rating is shared out among the attitudes, over and over.",
    ),
    Place(
        "Attitude", 1, 0, "a softmax of attitudes",
        "The prior of a person’s K attitudes, N(0, Id), and of what items make of them.",
        "One of V levels, by a softmax: every level of every item weighs the attitudes in its own "
        "way.",
        "K and λ, inside training.",
        "One large smooth minimum (L-BFGS); a new person is a small convex one.",
    ),
    Place(
        "MMMF", 1, 1, "margins and thresholds",
        "Nothing by name. But its penalty λ/2 ‖u‖² is what a Gaussian prior of the factors costs.",
        "A level: the number u · v lies between two thresholds of the person’s own, with a margin.",
        "λ, inside training.",
        "One large smooth minimum (L-BFGS) over all factors and thresholds.",
    ),
    Place(
        "IPCF", 0, 2, "near items’ residuals",
        "Nothing. Its adjusted cosine is a correlation, so it looks at Σ one pair at a time.",
        "A number: the item’s mean, and by how much the person’s ratings of near items differ from "
        "theirs.",
        "How many items are near, and how many common raters are enough, inside training.",
        "Sums over the people who rated both of two items; nothing is iterated.",
    ),
    Place(
        "E-MMMF", 1, 1, "the mean of 20 such",
        "As in MMMF.",
        "As in MMMF; the mean of many members’ levels is a finer number than each of them.",
        "λ, inside training, with four members.",
        "Twenty smaller minima from other random starts, each left early.",
    ),
    Place(
        "GPLVM", 3, 2, "items are places",
        "A person’s whole row, N(m, K(X, X) + σ² Id): items that lie close are rated alike.",
        "A number with Gaussian noise.",
        "Nothing; five coordinates and the kernel’s width are given, noise and bias are learned.",
        "Twenty E-steps of the exact Gaussian, each of which moves the places.",
    ),
    Place(
        "M³F", 2, 2, "factors, biases by topic",
        "The factors of people and items, their means and covariances by a Wishart prior, and the "
        "noise.",
        "A number with Gaussian noise: a mean, u · v, and biases that depend on the topic in which "
        "person and item act this time.",
        "Nothing; the numbers of factors and topics are given, all precisions are drawn.",
        "Gibbs sampling: everything is drawn anew 200 times, and predictions are averaged.",
    ),
    Place(
        "NBMC", 2, 2, "a few atoms of many",
        "The atoms, how much of each a person has, and the noise. Which atoms a person has at all "
        "is a coin for each.",
        "A number with Gaussian noise: biases and a sum of the person’s atoms.",
        "Nothing; the ratings turn off the atoms that are too many.",
        "Gibbs sampling, atom by atom and rating by rating.",
    ),
    Place(
        OWN, 4, 2, "μ and all of Σ",
        "A person’s whole row, N(μ, Σ), where every mean and covariance is learned and ε is added "
        "to the variances.",
        "A number, taken without noise.",
        "Nothing; ε and ten iterations are given.",
        "Ten E-steps: for each person one Cholesky factorization of the size of what they rated.",
    ),
)  # fmt: skip
