"""Chapter 1: two movies, and what one rating says of the other."""

from __future__ import annotations

import streamlit as st

from gmc_core import lesson
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn.parts import ROOM_FOR_CONTROLS, USERS_TWO, head
from gmc_dashboard.shared.components import chart, number_row
from gmc_dashboard.shared.theme import is_dark

SHARE_BOTH = 0.5
PRESS = "A click on a slider and the arrow keys move it in small steps."


def show() -> None:
    """The chapter."""
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        head(
            "An ellipse for the users, a line for one of them",
            r"\begin{gathered}f\sim\mathcal N(\mu,\Sigma)\\"
            r"\tilde f_b=\mu_b+\frac{\Sigma_{ba}}{\Sigma_{aa}+\sigma^2}\,(y_a-\mu_a)\end{gathered}",
            "Each dot is a user: their taste *f* for two movies, *a* and *b*. μ is the middle of "
            "the cloud; Σ is its shape, with the variances $\\Sigma_{aa}$ and $\\Sigma_{bb}$ and "
            "the covariance $\\Sigma_{ba}$. "
            "**Those who like one movie tend to like the other, so the cloud is a tilted "
            "ellipse.** A user who gave *a* the rating *yₐ* and has not rated *b* lies somewhere "
            "on a straight line (with noise, near it); the best guess for *b*, the fill f̃, is "
            "where the cloud is densest on it.",
        )
        rated = st.segmented_control(
            "This user has rated",
            lesson.PAIR,
            default=lesson.PAIR[0],
            required=True,
            key="learn_rated",
            bind="query-params",
        )
        movie = lesson.PAIR.index(rated) if rated in lesson.PAIR else 0
        rating = _slider("and gave it", 1.0, 5.0, 4.5, 0.1, "learn_rating", PRESS)
        correlation = _slider(
            "Correlation ρ of the two movies", -0.9, 0.9, 0.8, 0.1, "learn_correlation",
            "How reliably those who like one like the other; at 0 a rating says nothing.",
        )  # fmt: skip
        noise = _slider(
            "Noise variance σ² of a rating", 0.0, 1.0, 0.0, 0.1, "learn_noise",
            "How much the same person's ratings of the same movie vary. The paper takes 0.",
        )  # fmt: skip
    planted = lesson.two_movies(USERS_TWO, SHARE_BOTH, correlation, noise)
    model = lesson.model_of(planted.truth, planted.names, noise)
    belief = model.posterior([movie], [rating])
    before = model.posterior([], [])
    other = 1 - movie
    mean, sd = float(belief.mean[other]), float(belief.variance[other] ** 0.5)
    prior = float(before.mean[other]), float(before.variance[other] ** 0.5)
    name, own = planted.names[other], planted.names[movie]
    with right:
        number_row(
            [
                ("Fill f̃", f"{mean:.2f}", f"The conditional mean of {name}."),
                (
                    "± standard deviation",
                    f"{sd:.2f}",
                    "Root of the conditional variance.",
                ),
                ("Without the rating", f"{prior[0]:.2f} ± {prior[1]:.2f}"),
                ("Uncertainty left", f"{100 * sd / prior[1]:.0f} %"),
            ]
        )
        figure = figures.cloud_figure(
            planted, planted.truth, movie, rating, mean, sd, dark=is_dark()
        )
        chart(
            figure,
            f"Ratings of {own} and {name}, correlation {correlation:.1f}. A user who gave {own} "
            f"{rating:.1f} is filled in with {mean:.2f} for {name}, standard deviation {sd:.2f}; "
            f"without that rating it would be {prior[0]:.2f} with {prior[1]:.2f}.",
            key="learn_cloud",
        )
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        covariance = lesson.matrix(planted.truth)
        head(
            "Along the line, again a bell",
            r"\operatorname{Var}(f_b\mid y_a)=\Sigma_{bb}-"
            r"\frac{\Sigma_{ba}^2}{\Sigma_{aa}+\sigma^2}",
            "**Cut the hill of users along the line and the profile is a narrower bell.** Its top "
            "is the most probable value, and since a bell is symmetric also its mean: the maximum "
            "a posteriori (MAP) estimate that the paper's E-step computes (chapter 2).",
        )
        bottom = f"{covariance[movie, movie]:.2f}"
        if noise:
            bottom += f"+{noise:.2f}"
        cross = f"{covariance[other, movie]:.2f}"
        centre = f"{rating:.2f}-{planted.truth.mean[movie]:.2f}"
        st.latex(
            rf"{planted.truth.mean[other]:.2f}+\tfrac{{{cross}}}{{{bottom}}}\,({centre})={mean:.2f}"
        )
        st.markdown(
            "The rating moves the fill; the width stays, since the variance does not depend on "
            "*how* the movie was rated, only on *which* movie was. With noise the rating is "
            "trusted less: the fill moves towards μ and the bell widens."
        )
    with right:
        figure = figures.density_figure(prior, (mean, sd), name, dark=is_dark())
        chart(
            figure,
            f"Belief about the rating of {name}: before, mean {prior[0]:.2f} and standard "
            f"deviation {prior[1]:.2f}; along the line, {mean:.2f} and {sd:.2f}.",
            key="learn_density",
        )


def _slider(
    label: str, low: float, high: float, value: float, step: float, key: str, help_text: str
) -> float:
    return float(
        st.slider(
            label, low, high, value, step, key=key, bind="query-params",
            persist_state="session", help=help_text, format="%.1f",
        )
    )  # fmt: skip
