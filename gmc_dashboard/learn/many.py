"""Chapter 3: twenty movies, three tastes, few ratings."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from gmc_core import lesson
from gmc_core.gaussian.parameters import Gaussian
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn import users
from gmc_dashboard.learn.parts import beside, epsilon_slider, head, title, words
from gmc_dashboard.shared import playing
from gmc_dashboard.shared.components import chart, escape, guard, number_row
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.theme import is_dark

ITERATIONS = 10
# For both matrices, whose squares are of one size though the first has names and the second a bar
# of colours, and for the controls.
ROOM, ROOM_ON_PROJECTOR = (11, 10, 9), (10, 10, 11)
HEIGHT, HEIGHT_ON_PROJECTOR = 375, 340  # px
WIDEST = 450  # px: more would leave the squares as they are, and part them from names and bar
FILLS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
LIMIT = 1.0  # of the colours: the largest covariance between two titles is about 0.8


FILM = playing.Film(
    "learn_many",
    at="learn_iteration",
    first=1,
    last=ITERATIONS,
    rest=ITERATIONS,
    help=("An iteration a second, from the first.", "One iteration on.", "The last iteration."),
)


@st.cache_resource(max_entries=64, show_spinner=False)
def told(users: int, fill: float, epsilon: float, seed: int) -> tuple[lesson.Planted, lesson.Story]:
    """The planted table and the paper's ten iterations on it."""
    planted = lesson.twenty_movies(users, fill, seed)
    return planted, lesson.tell(planted, "paper", epsilon, ITERATIONS)


@st.cache_resource(max_entries=64, show_spinner=False)
def errors(users: int, epsilon: float, seed: int) -> list[lesson.FillPoint]:
    """The curve of errors for these users."""
    return lesson.error_by_fill(users, FILLS, epsilon, seed)


class Chosen(NamedTuple):
    """What the controls stand for."""

    fill: float
    users: int
    epsilon: float
    seed: int


def show() -> None:
    """The chapter; it repeats by itself while it is played."""
    moves = playing.is_playing(FILM)
    st.fragment(_chapter, run_every=playing.SECONDS if moves else None)(moves)


@guard()
def _chapter(moves: bool) -> None:
    if playing.advance(FILM) or playing.is_playing(FILM) != moves:
        st.rerun(scope="app")
    users.keep_seed()
    title("From an ellipse to a table of covariances")
    numbers = st.container()
    *pictures, side = st.columns(ROOM_ON_PROJECTOR if presenting() else ROOM, gap="medium")
    with side:
        chosen = _controls()
    planted, story = told(chosen.users, chosen.fill, chosen.epsilon, chosen.seed)
    step = min(2 * int(st.session_state[FILM.at]), len(story.frames) - 1)
    frame = story.frames[step]
    learned = frame.gaussian
    with numbers:
        if story.problem:
            st.warning(
                escape(
                    f"The paper's algorithm broke down. {story.problem} Shown is the last Σ before "
                    "that."
                ),
                icon=":material/warning:",
            )
        _numbers(planted, story, frame)
    large = presenting()
    names = lesson.taste_middles() if large else True
    for column, gaussian, name in zip(
        pictures, (learned, planted.truth), ("Learned Σ", "Planted Σ"), strict=True
    ):
        with column, st.container(width=WIDEST):
            if gaussian is None:
                st.info("No iteration could be finished with these settings.")
                continue
            chart(
                figures.matrix_figure(
                    lesson.matrix(gaussian), planted.names, LIMIT, title=name,
                    labels=names if gaussian is learned else False,
                    bar=gaussian is not learned, dark=is_dark(),
                    height=HEIGHT_ON_PROJECTOR if large else HEIGHT,
                ),
                _blocks(gaussian, name),
                key=f"learn_{name[:7].lower()}",
            )  # fmt: skip
    words(
        r"\Sigma\in\mathbb R^{20\times20},\qquad \Sigma_{jk}=\operatorname{Cov}(f_j,f_k)",
        "**Twenty invented movies in three tastes: space, love, crime.** Each square says how "
        "the ratings of two movies go together. The blocks of one taste are planted; the "
        "method sees only some of the ratings and has to find them. Press *Play* to see them "
        "come, iteration by iteration.",
    )
    _spectrum(planted, learned, chosen.epsilon, chosen.users)
    _fills(chosen)


def _controls() -> Chosen:
    buttons = st.container()
    st.slider(
        "Iteration", FILM.first, FILM.last, FILM.last, key=FILM.at, bind="query-params",
        persist_state="session",
    )  # fmt: skip
    with buttons:  # after the slider, which takes its place from the link
        playing.controls(FILM, "learn_many_play")
    left, right = st.columns(2, gap="medium")
    fill = left.slider(
        "Per cent filled", 5, 90, 30, 5,
        key="learn_fill", bind="query-params", persist_state="session",
    ) / 100  # fmt: skip
    count = right.slider(
        "Users M", 10, 300, 200, 10,
        key="learn_users", bind="query-params", persist_state="session",
    )  # fmt: skip
    epsilon = epsilon_slider("learn_many_epsilon")
    with st.container(horizontal=True, gap="small"):
        users.buttons("learn_many")
    return Chosen(fill, count, epsilon, users.seed())


def _blocks(gaussian: Gaussian, title: str) -> str:
    """Text alternative of a heatmap: mean covariance in and between the tastes."""
    inside, between = lesson.taste_contrast(gaussian)
    return (
        f"{title} of 20 movies: mean covariance {inside:.2f} between movies of one taste, "
        f"{between:.2f} between movies of different tastes."
    )


def _numbers(planted: lesson.Planted, story: lesson.Story, frame: lesson.Frame) -> None:
    learned = frame.gaussian
    broke = story.problem and frame is story.last
    best = planted.error(lesson.fills(planted, planted.truth))
    means = planted.error(lesson.item_means(planted))
    off = None if learned is None else lesson.relative_error(learned, planted.truth)
    number_row(
        [
            (
                "Σ is off by",
                "–" if off is None else f"{100 * off:.0f} %",
                "‖learned − planted‖ / ‖planted‖ (Frobenius).",
            ),
            (
                "Error of the fills",
                "broke down" if broke else f"{planted.error(frame.estimates):.2f}",
                "RMSE.",
            ),
            ("with the planted Σ", f"{best:.2f}", "No method does better on average."),
            ("with the items' means", f"{means:.2f}", "What needs no Σ at all."),
        ]
    )  # fmt: skip


def _spectrum(
    planted: lesson.Planted, learned: Gaussian | None, epsilon: float, count: int
) -> None:
    left, right = beside()
    truth = lesson.eigenvalues(planted.truth)
    values = None if learned is None else lesson.eigenvalues(learned)
    with left:
        head(
            "Which directions ε keeps open",
            r"\Sigma=\underbrace{\tfrac1M\textstyle\sum_i(\tilde f_i-\mu)(\tilde f_i-\mu)^{\!\top}}"
            r"_{\text{rank}\ \le\ M-1}+\varepsilon I",
            "**Adding ε lifts the variance in every direction, so none is below it.** A direction "
            "(an axis of Σ) is a mixture of titles. Set ε to 0: the narrow "
            "directions fall towards nothing, the model takes accidents of the few ratings for "
            "laws, and the error of the fills rises.",
        )
        if count <= len(truth):
            st.markdown(
                f"With {count} users, at most {count - 1} of the {len(truth)} directions can have "
                "any variance without ε: the rest is exactly 0 and some users' equations cannot be "
                "solved."
            )
    with right:
        said = "none learned" if values is None else f"learned {values[0]:.3g} to {values[-1]:.3g}"
        chart(
            figures.spectrum_figure(values, truth, epsilon, dark=is_dark()),
            f"Variances along the 20 axes of Σ: {said}, planted {truth[0]:.3g} to {truth[-1]:.3g}, "
            f"floor ε = {epsilon:g}.",
            key="learn_spectrum",
        )


def _fills(chosen: Chosen) -> None:
    points = errors(chosen.users, chosen.epsilon, chosen.seed)
    left, right = beside()
    with left:
        head(
            "How much must be known",
            r"\mathrm{RMSE}=\sqrt{\operatorname{mean}_{(i,j)\ \text{unknown}}"
            r"(\tilde f_{ij}-f_{ij})^2}",
            "**More ratings help twice: each user is known better, and Σ is learned better.** The "
            "first is why even the planted Σ, the truth, does better with more; the second is why "
            "the learned one comes near it. Real data fill 2 to 5 per cent, but "
            "that is more than a hundred titles for the average user, and there are many users.",
        )
    with right:
        said = ", ".join(
            f"{100 * p.fill:.0f} %: "
            + ("broke down" if p.learned != p.learned else f"{p.learned:.2f}")
            for p in points
        )
        chart(
            figures.fill_figure(points, chosen.fill, dark=is_dark()),
            f"Error of the fills by fill ratio with {chosen.users} users and "
            f"ε = {chosen.epsilon:g}. {said}.",
            key="learn_fills",
        )
        if any(p.learned != p.learned for p in points):
            st.caption("The learned curve has no point where the algorithm broke down.")
