"""All claims: what the paper says and where, how it is measured, and who judges.

Statements are in our own words; sections are those of Léger, Yu and Sapiro.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import PAPER_ITERATIONS
from gmc_core.paper.claims import accuracy, algorithm, tables
from gmc_core.paper.claims.results import NotMeasured, Results
from gmc_core.paper.claims.subject import BLOCKS, COMPONENTS, Subject
from gmc_core.paper.claims.verdict import Verdict


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    name : short, for links and JSON. title : for lists.
    statement, section : what the paper says, and where.
    measure : how it is measured here and what decides, in a sentence.
    needs : the names of its experiments on a subject, of :meth:`Subject.experiments`.
    rule : what makes the verdict; raises :class:`NotMeasured` where there is none.
    """

    name: str
    title: str
    statement: str
    section: str
    measure: str
    rule: Callable[[Results], Verdict]
    needs: Callable[[Subject], tuple[str, ...]]

    @property
    def place(self) -> str:
        """The section in a sentence: "section 3.2", or "Abstract, sections 1 and 4"."""
        if self.section[0].isdigit():
            return f"section {self.section}"
        return self.section.replace(", ", ", sections ")

    def experiments(self, subject: Subject) -> dict[str, ExperimentConfig]:
        """What has to be computed for it."""
        known = subject.experiments()
        return {name: known[name] for name in self.needs(subject)}

    def judge(self, results: Results) -> Verdict:
        """The verdict; "not measured" with the reason where there is none."""
        try:
            return self.rule(results)
        except NotMeasured as reason:
            found = results.ids(*self.needs(results.subject))
            return Verdict("not measured", str(reason), unit="", runs=found)


def judge(results: Results) -> dict[str, Verdict]:
    """The verdicts of all claims by name."""
    return {claim.name: claim.judge(results) for claim in CLAIMS}


def _only(*names: str) -> Callable[[Subject], tuple[str, ...]]:
    return lambda subject: names


def _with_paper(
    values: Callable[[Subject], Mapping[str, float]],
) -> Callable[[Subject], tuple[str, ...]]:
    return lambda subject: ("paper", *values(subject))


def _if_table(*names: str) -> Callable[[Subject], tuple[str, ...]]:
    return lambda subject: () if subject.table is None else names


def _signals(subject: Subject) -> tuple[str, ...]:
    return ("paper", "columns", *(f"blocks {side}" for side in BLOCKS))


def _mixtures(subject: Subject) -> tuple[str, ...]:
    return ("paper", *(f"mixture {count}" for count in COMPONENTS))


def _all_with_singular(subject: Subject) -> tuple[str, ...]:
    return ("paper", "singular")


_L = PAPER_ITERATIONS

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "table-weak",
        "The tables' figures: weak generalization",
        "On MovieLens 1M the method has a weak NMAE of .3959, on EachMovie .4164.",
        "3.3, tables 1 and 2",
        "Mean NMAE of the paper's settings over many weak splits minus the printed figure; holds "
        "if its 95 % interval lies within ± .005.",
        tables.weak_table,
        _if_table("paper"),
    ),
    Claim(
        "table-strong",
        "The tables' figures: strong generalization",
        "On MovieLens 1M the method has a strong NMAE of .3928, on EachMovie .4163.",
        "3.3, tables 1 and 2",
        "The same for users who were absent from training.",
        tables.strong_table,
        _if_table("strong"),
    ),
    Claim(
        "gap",
        "Within about .005 of the best published method",
        "The NMAE differs from the best methods' by less than about .005.",
        "3.3",
        "Measured NMAE minus that of the best other method of the table, weak and strong: as "
        "measured on the same held-out ratings where the store has it, otherwise as printed; holds "
        "if both 95 % intervals end below .005.",
        tables.gap,
        _if_table("paper", "strong"),
    ),
    Claim(
        "ballpark",
        "As good as the best methods, at lower cost",
        "The results are in the same ballpark as the state of the art's at a significantly lower "
        "computational cost.",
        "Abstract, 1 and 4",
        "Against the most accurate of the other methods measured on the same splits: holds if the "
        "paired difference of NMAE ends below .005 and the CPU time is lower.",
        tables.ballpark,
        _only(),
    ),
    Claim(
        "convergence",
        "Converges within 10 iterations",
        "In the experiments the algorithm converges within 10 iterations.",
        "2.2.2 and 3.2",
        f"Paired difference of NMAE between {2 * _L} and {_L} iterations; holds if its 95 % "
        "interval lies within ± .005.",
        accuracy.convergence,
        _only("paper", "longer"),
    ),
    Claim(
        "objective",
        "The MAP objective rises at every iteration",
        "As E- and M-step alternate, the posterior probability of the estimated signals increases.",
        "2.2.2",
        f"The objective after each of {_L} iterations in float64; holds if it never falls by more "
        "than rounding.",
        algorithm.objective,
        _only("objective"),
    ),
    Claim(
        "epsilon",
        "Insensitive to ε around .3",
        "The results are insensitive to the value of ε, set to .3.",
        "3.2",
        "Paired differences of NMAE with half and double the ε; holds if both 95 % intervals lie "
        "within ± .005.",
        accuracy.epsilon,
        _with_paper(lambda subject: subject.epsilons()),
    ),
    Claim(
        "initial",
        "Insensitive to the initial value",
        "The result is insensitive to the initialization; unknown entries start at 3.",
        "2.2.3",
        "Paired differences of NMAE with the initial values 2 and 4 (on other scales than stars a "
        "quarter of the range from the middle); holds if both 95 % intervals lie within ± .005.",
        accuracy.initial_value,
        _with_paper(lambda subject: subject.initials()),
    ),
    Claim(
        "signals",
        "Rows slightly better than columns and blocks",
        "Rows as signals give slightly better results than columns or 2-D sub-matrices.",
        "3.2",
        "Paired differences of NMAE, columns and square blocks of two sizes minus rows; holds if "
        "all 95 % intervals lie above 0.",
        accuracy.signals,
        _signals,
    ),
    Claim(
        "noise",
        "Neglecting the noise is harmless",
        "The noise is taken as 0: the ratings mainly lack data, and their noise is negligible.",
        "3.2",
        "Paired differences of NMAE, no noise minus a noise variance of .1 and of .5 (on 5 stars); "
        "holds if both 95 % intervals end below .005.",
        accuracy.noise,
        _with_paper(lambda subject: subject.noises()),
    ),
    Claim(
        "projection",
        "The projection to integers helps NMAE",
        "Estimates are projected to an integer of the rating range, as in earlier work (that it "
        "helps is implied).",
        "3.2",
        "Paired difference of the normalised errors after and before projection; holds if its "
        "95 % interval lies below 0.",
        accuracy.projection,
        _only("paper"),
    ),
    Claim(
        "mixtures",
        "Mixtures bring no significant gain",
        "No significant improvement by mixtures over one Gaussian has been observed for ratings.",
        "4",
        f"Paired differences of NMAE, one Gaussian minus {' and '.join(map(str, COMPONENTS))}; "
        "holds if the 95 % intervals end below .005.",
        accuracy.mixtures,
        _mixtures,
    ),
    Claim(
        "optimal",
        "The E-step minimises MSE and MAE",
        "The MAP estimate is the mapping of the observations with the smallest mean square and "
        "mean absolute error.",
        "2.2.1",
        "Whether a straight line through the predictions, fitted on other splits by least squares "
        "or least absolute deviations, lowers RMSE or MAE (both ÷ the NMAE divisor); holds if both "
        "95 % intervals of the gain end below .005.",
        accuracy.optimality,
        _only("paper"),
    ),
    Claim(
        "full-rank",
        "ε makes Σ full rank",
        "The regularization guarantees a covariance of full rank, so that the E-step is always "
        "well defined.",
        "2.2.2",
        "Fits with ε > 0, here in float32, that broke down, in whatever way; holds if "
        "none did; a fit with ε = 0 shows what it is there for.",
        algorithm.full_rank,
        _all_with_singular,
    ),
    Claim(
        "cost",
        "The cost formula",
        "Most users have about N/C ratings, so the E-step takes about M N³/(3C³) flops, C ≈ 25.",
        "2.2.1 and 2.2.4",
        "Σ N_i³/3, what the Cholesky factorizations take, ÷ M N³/(3C³), counted on all filtered "
        "ratings; holds within a factor of two.",
        algorithm.flops,
        _only(),
    ),
    Claim(
        "m-step",
        "The M-step is negligible",
        "The M-step's M N² flops are negligible beside the E-step.",
        "2.2.2",
        "The M-step's share of the time of an iteration, mean over the iterations of all splits; "
        "holds if its 95 % interval ends below 10 %.",
        algorithm.m_step,
        _only("paper"),
    ),
    Claim(
        "memory",
        "Memory is N²",
        "The memory requirement is dominated by the N² numbers of the covariance.",
        "2.2.4",
        "Peak memory of a fit beyond the ratings (mean over the splits of the comparison) ÷ the "
        "memory of one N × N matrix; holds if its 95 % interval, or the range of two splits, ends "
        "below four.",
        algorithm.memory,
        _only(),
    ),
    Claim(
        "filled",
        "4.3 % and 4.6 % of the entries are known",
        "After the filter 4.3 % of the entries of EachMovie and 4.6 % of MovieLens 1M are known.",
        "3.1",
        "Ratings ÷ (users × items) after the paper's filter; holds if it rounds to the printed "
        "figure.",
        tables.filled,
        _only(),
    ),
)
