"""Chapter 4: what an iteration costs, on the selected data and on MovieLens 1M."""

from __future__ import annotations

import streamlit as st

from gmc_core import lesson
from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.fitting.cost import Cost, estimate
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn.parts import ROOM_FOR_CONTROLS, beside, head, stage, title, words
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import chart, escape, number_row
from gmc_dashboard.shared.theme import is_dark
from gmc_dashboard.shared.units import bytes_text, flops_text

# MovieLens 1M as docs/performance.md records it: weak generalization, float64.
ML1M_SIZE = (6_040, 3_592)
ML1M_MEMORY = 306e6
ML1M_TEXT = (
    "**MovieLens 1M, measured:** 6,040 users and 3,592 movies. The E-step takes 86 GFLOP, where "
    "the paper's formula with the mean user gives 9; the heaviest user has rated 2,308 movies, the "
    "median user 96. The M-step takes 85 GFLOP (7 for AΣ, 78 for the product with itself): it is "
    "not negligible. A fit needs 306 MB beside the ratings, 3.0 N² numbers."
)
LIMIT = 1.0


def show() -> None:
    """The chapter."""
    _cholesky()
    try:
        ratings, _ = context.filtered()
    except DataError as error:
        st.info(
            escape(f"{error} So here are the figures of MovieLens 1M only."),
            icon=":material/info:",
        )
        st.markdown(ML1M_TEXT)
        return
    name = sources.title(context.current().data)
    cost = estimate(ratings.user_counts, ratings.n_items)
    _work(ratings, cost, name)
    _m_step(cost)
    _memory(cost, name)


def _cholesky() -> None:
    truth = lesson.taste_gaussian()
    title("One user: one Cholesky factorization")
    place = stage()
    with place.controls:
        count = st.slider(
            "Movies that the user rated", 2, 20, 8,
            key="learn_rated_count", bind="query-params", persist_state="session",
        )  # fmt: skip
        st.markdown(
            f"{count}³/3 ≈ **{count**3 / 3:,.0f} flops**; twice as many ratings would take eight "
            f"times as long: {(2 * count) ** 3 / 3:,.0f}. If K had a direction without variance, a "
            "diagonal entry of L would be zero and the solve would divide by it: ε prevents that."
        )
    with place.words:
        words(
            r"\begin{gathered}K=\Sigma_{oo}=LL^{\!\top},\quad a=L^{-\top}L^{-1}(y-\mu_o)\\"
            r"\tfrac13N_i^3\ \text{flops}\end{gathered}",
            "**To fill in for a user, the covariance of what they rated is split into a triangle "
            "times its mirror image.** Two easy triangular solves then do what the formula's "
            "inverse does; it is faster and loses fewer digits. (Exact EM does need K⁻¹: that "
            "takes twice as much again.)",
        )
    kernel, factor = lesson.cholesky_of(truth, count)
    names = [str(number) for number in range(1, count + 1)]
    for column, values, name in zip(
        place.picture.columns(2), (kernel, factor), ("K, of the rated movies", "L, its triangle"),
        strict=True,
    ):  # fmt: skip
        with column:
            chart(
                figures.matrix_figure(
                    values, names, LIMIT, title=name, labels=False, height=330, dark=is_dark()
                ),
                f"{name}: {count} × {count}, diagonal from {values.diagonal().min():.2f} to "
                f"{values.diagonal().max():.2f}.",
                key=f"learn_triangle_{name[0]}",
            )


def _work(ratings: Ratings, cost: Cost, name: str) -> None:
    sizes = ratings.user_counts
    users, work = lesson.work_shares(sizes)
    tenth = float(work[round(0.1 * (len(work) - 1))])
    left, right = beside()
    with left:
        head(
            "All users: a few do most of the work",
            r"\tfrac13\sum_iN_i^3\ \gg\ \tfrac13M\bar N^3",
            f"**A few users have rated very much, and the cube makes them count.** In "
            f"{escape(name)}, the heaviest tenth of the users takes {100 * tenth:.0f} % of the "
            "flops. The paper's formula puts the mean user in place of each and misses this tail.",
        )
    with right:
        chart(
            figures.work_figure(users, work, name, dark=is_dark()),
            f"Share of the E-step's flops in {name}: the heaviest 10 % of users take "
            f"{100 * tenth:.0f} %.",
            key="learn_work",
        )
    number_row(
        [
            ("Users M × items N", f"{cost.signals:,} × {cost.dimension:,}"),
            ("Ratings of the mean user", f"{sizes.mean():,.0f}"),
            ("of the heaviest", f"{sizes.max():,}"),
            ("Σ Nᵢ³/3", flops_text(cost.solve_flops), "What the factorizations take."),
            (
                "The paper's formula",
                flops_text(cost.paper_flops, like=cost.solve_flops),
                "M N³/(3 C³), C the inverse of the fill ratio: the mean user M times.",
            ),
        ]
    )


FORMS = {
    "product": (r"F=A\Sigma,\ F^{\!\top}F:\quad 2\,\mathrm{nnz}\,N+MN^2", "the table is filled in"),
    "congruence": (r"\Sigma(A^{\!\top}A)\Sigma:\quad \textstyle\sum_iN_i^2+3N^3", "Σ is kept"),
    "factor": (
        r"\Sigma=XX^{\!\top}+\varepsilon I:\quad 2\,\mathrm{nnz}\,M+3M^2N",
        "there are fewer users than items, and Σ is never multiplied out",
    ),
}


def _m_step(cost: Cost) -> None:
    formula, words = FORMS[cost.form]
    head(
        "The M-step: not negligible either",
        formula,
        f"**Three ways give exactly the same Σ; here {words}, which is the cheapest: "
        f"{flops_text(cost.m_flops)}, beside {flops_text(cost.e_flops)} for an E-step that goes "
        f"with it.** The paper calls the M-step negligible; here it is "
        f"{100 * cost.m_flops / cost.flops:.0f} % of an iteration. A is the sparse table of the "
        "weights *a*, nnz the number of ratings"
        + (
            ", *X* the filled-in table less its mean, turned on its side, over √M."
            if cost.form == "factor"
            else "."
        ),
    )
    st.markdown(ML1M_TEXT)


def _memory(cost: Cost, name: str) -> None:
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        head(
            "Memory: why N²",
            r"\Sigma\in\mathbb R^{N\times N}:\quad 8N^2\ \text{bytes}",
            "**Σ has a number for every pair of items, so twice the items need four times the "
            "memory.** With many users their number hardly matters: of each only the weights *a* "
            "are kept, one number for each rating.",
        )
        own = 8 * cost.dimension**2
        text = (
            f"{escape(name)}: Σ alone would be {bytes_text(own)}; the whole fit is estimated at "
            f"{bytes_text(cost.memory_bytes)}."
        )
        if cost.form == "factor":
            text += (
                " That is less since Σ is kept as a factor of M × N numbers, which pays where "
                "there are fewer users than items."
            )
        st.markdown(text)
    with right:
        points = [
            (f"{name},<br>estimated", cost.dimension, float(cost.memory_bytes)),
            ("MovieLens 1M, measured", ML1M_SIZE[1], ML1M_MEMORY),
        ]
        largest = round(1.15 * max(cost.dimension, ML1M_SIZE[1]))
        chart(
            figures.memory_figure(points, largest=largest, dark=is_dark()),
            f"Memory against the number of items: 8 N² bytes for Σ; {name} "
            f"{bytes_text(cost.memory_bytes)}, MovieLens 1M {bytes_text(ML1M_MEMORY)}.",
            key="learn_memory",
        )
