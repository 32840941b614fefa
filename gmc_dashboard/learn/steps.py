"""Chapter 2: EM in half-steps, what the paper's M-step loses, and what ε repairs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import streamlit as st

from gmc_core import lesson
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn import plane, users
from gmc_dashboard.learn.parts import (
    USERS_TWO,
    beside,
    epsilon_slider,
    head,
    stage,
    title,
    words,
)
from gmc_dashboard.shared import link_state, playing
from gmc_dashboard.shared.components import chart, escape, guard, number_row
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.theme import is_dark

ITERATIONS = 10
CORRELATION = 0.8
METHODS: dict[str, lesson.Method] = {"The paper's M-step": "paper", "Exact EM": "exact"}
PAPER_M = r"\Sigma=\frac1M\sum_i(\tilde f_i-\mu)(\tilde f_i-\mu)^{\!\top}+\varepsilon I"
EXACT_M = (
    r"\Sigma=\frac1M\sum_i\bigl[(\tilde f_i-\mu)(\tilde f_i-\mu)^{\!\top}+C_i\bigr]+\varepsilon I"
)
START = r"\tilde f_i=y_i\ \text{where known},\quad 3\ \text{elsewhere}"
E_STEP = r"\tilde f_i=\mu+\Sigma_{\cdot o}\,(\Sigma_{oo}+\Sigma_w)^{-1}(y_i-\mu_o)"
LOOP = (
    "EM (expectation, maximisation) repeats two steps: the **E-step** fills every gap by the "
    "present ellipse, the **M-step** measures the ellipse anew on the filled-in table. *Planted* "
    "is the ellipse that the users were drawn from: the truth that the method has to find."
)
WHY_TITLE = "What ε does, and why the paper needs it"
WHY = """
1. **The problem.** The M-step measures the spread of the filled-in table as if every entry had
   been rated. But a fill is a conditional mean, and the true ratings scatter around it. In
   chapter 1 a movie's ratings have variance 1; the fills for it have only .8² = .64, and what they
   lack is the conditional variance *Cᵢ* = .36 = .60². So Σ comes out too thin.
2. **It feeds itself.** With a thinner Σ the next fills follow the pattern even more closely, and
   the next Σ is thinner still: **in the paper's M-step nothing puts back the variance that an
   iteration has lost.** Only users who rated all movies show the real scatter; here they are few,
   and in a real table, where nearly every entry is a fill, there are none. The model grows sure of
   patterns that it has made up. In the extreme Σ is flat: some Σₒₒ, the covariance of what a user
   rated, cannot be inverted, and the next E-step is impossible. With fewer users than movies it is
   flat from the start, because M users span at most M − 1 directions.
3. **What ε does against it.** It is added to all variances in every M-step, so that **no
   direction of Σ is ever thinner than ε**: Σ has full rank, the E-step can always be computed, and
   the thinning stops. It also makes the model more careful: Σₐₐ stands below the fraction bar of
   chapter 1, so a larger one draws the fills towards the mean.
4. **The price.** ε widens all directions alike, needed or not. Too small and the model stays too
   sure; too large and it believes in no pattern any more and fills in means. Here .3 is more than
   was lost, and the learned ellipse gets fatter than the planted one; on ratings one tries which ε
   predicts best (the Sensitivity page). Exact EM adds what was really lost, the *Cᵢ* of each user's
   missing ratings, and needs no ε for that. It costs the inverse of every Σₒₒ, which makes the
   E-step about three times as dear. And what is already flat it cannot open, since there *Cᵢ* is
   flat too: with fewer users than movies it also needs ε, or a prior.
"""

NOISE = """
**And noise?** ε says that the *ellipse* is too thin, the noise variance σ² that a *rating* is
inexact. With $\\Sigma_w=\\sigma^2I$ the E-step solves $K=\\Sigma_{oo}+\\Sigma_w$ in place of
$\\Sigma_{oo}$. Then even a rated entry is drawn towards the mean, so the dots leave their ratings;
with ε alone they stay there. K can be inverted as soon as σ² is above 0, but Σ still gets thinner,
and faster: now the rated entries lose scatter as well. Exact EM adds that back too. The paper sets
σ² = 0, so that ε alone makes the model careful. Move the noise slider and compare the two M-steps.
"""
TRY = (
    "Try: go to step 20 with ε = 0 and watch the ellipse thin; then ε = 0.3, still at step 20; "
    "then exact EM with ε = 0."
)


FILM = playing.Film(
    "learn_steps",
    at="learn_step",
    first=0,
    last=2 * ITERATIONS,
    rest=0,
    help=(
        "A half-step a second: M, E, M, E …",
        "One half-step on.",
        "To the start, where nothing is learned yet.",
    ),
)
CLOUD = "learn_steps_users"
LEGEND = (
    ("both", "users who rated both"),
    ("a", "only {}, rest filled in"),
    ("b", "only {}, rest filled in"),
    ("ring truth", "planted truth"),
    ("ring filled", "learned (95\u00a0%)"),
)
HELP = (
    (
        "hands",
        "Drag a dot: who rated one movie moves along that rating, the fill follows. A click on an "
        "empty place adds a user, one on a dot takes it away.",
    ),
    (
        "keys",
        "Keys: arrows move a dot, Page Down goes to the next, Delete takes it away and + adds one.",
    ),
)


@st.cache_resource(max_entries=64, show_spinner=False)
def story(
    _planted: lesson.Planted, data: tuple[Any, ...], method: Any, epsilon: float
) -> lesson.Story:
    """The half-steps of one method. data : what the users depend on, which tells them apart."""
    return lesson.tell(_planted, method, epsilon, ITERATIONS)


def cloud(both: float, noise: float, seed: int = users.FIRST_SEED) -> lesson.Planted:
    """The users of this chapter, as drawn."""
    return lesson.two_movies(USERS_TWO, both, CORRELATION, noise, seed)


def show() -> None:
    """The chapter; it repeats by itself while it is played."""
    moves = playing.is_playing(FILM)
    st.fragment(_chapter, run_every=playing.SECONDS if moves else None)(moves)


@guard()
def _chapter(moves: bool) -> None:
    if playing.advance(FILM) or playing.is_playing(FILM) != moves:
        st.rerun(scope="app")
    if not presenting():
        st.markdown(LOOP)
    heading, place = st.container(), stage()
    with place.controls:
        chosen = _controls()
    planted, ids = users.apply(CLOUD, chosen.planted, least=0)
    told = story(planted, chosen.data, chosen.method, chosen.epsilon)
    step = min(int(st.session_state["learn_step"]), len(told.frames) - 1)
    frame = told.frames[step]
    with heading:
        title(_heading(frame))
    with place.words:
        _words(frame, chosen.method)
        if not presenting():
            st.caption(TRY)
    with place.picture:
        _cloud(planted, ids, told, step)
        if told.problem:
            st.warning(escape(f"The run ended early. {told.problem}"), icon=":material/warning:")
    with place.numbers:
        _numbers(planted, frame)
    truth = lesson.eigenvalues(planted.truth)[0]
    _thickness(planted, chosen, float(truth), frame.iteration)
    # Much to read: on a projector only for who asks for it.
    if presenting():
        st.expander(WHY_TITLE).markdown(f"{WHY}\n\n{NOISE}")
    else:
        st.container(border=True).markdown(f"#### {WHY_TITLE}\n{WHY}")
        st.markdown(NOISE)


class Chosen(NamedTuple):
    """What the controls stand for.

    planted : the users as drawn. data : what they and the changes to them depend on.
    """

    planted: lesson.Planted
    data: tuple[Any, ...]
    method: lesson.Method
    epsilon: float


def _controls() -> Chosen:
    buttons = st.container()
    st.slider(
        "Step", FILM.first, FILM.last, key=FILM.at, bind="query-params",
        persist_state="session", format="%d",
        help="0 is the start; then M, E, M, E … Arrow keys work too.",
    )  # fmt: skip
    with buttons:  # after the slider, which takes its place from the link
        playing.controls(FILM, "learn_play", back=True)
    name = st.segmented_control(
        "M-step",
        list(METHODS),
        default="The paper's M-step",
        required=True,
        key="learn_method",
        bind="query-params",
        label_visibility="collapsed",
    )
    left, right = st.columns(2, gap="medium")
    with left:
        epsilon = epsilon_slider("learn_epsilon", 0.0)
        noise = _noise()
    with right:
        both = _both()
        users.buttons("learn_steps", CLOUD)
    seed = users.seed()
    # The changes as the link has them: NaN, for a rating that stays, equals no other NaN.
    data = both, noise, seed, link_state.recall(CLOUD)
    return Chosen(cloud(both, noise, seed), data, METHODS.get(name or "", "paper"), epsilon)


def _both() -> float:
    """Share of users who rated both."""
    return st.slider(
        "Per cent who rated both", 0, 100, 15, 5,
        key="learn_both", bind="query-params", persist_state="session",
    ) / 100  # fmt: skip


def _noise() -> float:
    return float(
        st.slider(
            "Noise variance σ²", 0.0, 0.5, 0.0, 0.1,
            key="learn_known_noise", bind="query-params", persist_state="session",
            format="%.1f", help="In the ratings, and known to the model.",
        )
    )  # fmt: skip


def _cloud(planted: lesson.Planted, ids: tuple[int, ...], told: lesson.Story, step: int) -> None:
    frame = told.frames[step]
    names = planted.names
    drawn = plane.Plane(
        names=names,
        users=plane.users_of(ids, frame.estimates, planted.known),
        ellipse=frame.gaussian,
        rings=(plane.Ring(figures.NEARLY_ALL, "filled"),),
        next=users.next_number(CLOUD, USERS_TWO),
        truth=planted.truth,
        truth_radius=float(figures.NEARLY_ALL),
        slopes=_slopes(told, step, planted.noise),
        legend=[(look, said.format(names[look == "b"])) for look, said in LEGEND],
        help=HELP,
    )
    thin = None if frame.gaussian is None else float(lesson.eigenvalues(frame.gaussian)[0])
    truth = lesson.eigenvalues(planted.truth)[0]
    learned = (
        "no ellipse is learned yet"
        if thin is None
        else f"the learned ellipse has smallest variance {thin:.3f}, the planted {truth:.3f}"
    )
    plane.show(drawn, f"Step {step}: {learned}.", key="learn_steps", on_change=_moved)


def _slopes(told: lesson.Story, step: int, noise: float) -> tuple[float, float]:
    """How far the fill of b moves with the rating of a, and that of a with b.

    By the ellipse that the fills are of: the M-step shows those of the E-step before it.
    """
    filled = told.frames[step - (told.frames[step].kind == "M")].gaussian
    if filled is None:
        return 0.0, 0.0
    sigma = lesson.matrix(filled)
    return float(sigma[0, 1] / (sigma[0, 0] + noise)), float(sigma[0, 1] / (sigma[1, 1] + noise))


def _moved(change: plane.Change) -> None:
    """Keep a moved, added or taken user; of who rated one movie only that rating."""
    both = st.session_state.get("learn_both", 15) / 100
    noise = st.session_state.get("learn_known_noise", 0.0)
    drawn = cloud(both, noise, users.seed())
    at = None
    if change.what == "user":
        known = drawn.known[change.user] if change.user < len(drawn.known) else (True, True)
        x, y = (value if there else math.nan for value, there in zip(change.at, known, strict=True))
        at = x, y
    if change.what in ("user", "taken"):
        users.with_change(CLOUD, drawn, change.user, at, least=0)


def _numbers(planted: lesson.Planted, frame: lesson.Frame) -> None:
    truth = lesson.eigenvalues(planted.truth)[0]
    thin = None if frame.gaussian is None else float(lesson.eigenvalues(frame.gaussian)[0])
    error = planted.error(frame.estimates)
    number_row(
        [
            (
                "Smallest variance",
                "none yet" if thin is None else f"{thin:.3f}",
                f"Across the learned ellipse; planted {truth:.3f}.",
            ),
            ("Planted", f"{truth:.3f}"),
            (
                "Error of the fills",
                "nothing to fill" if error != error else f"{error:.2f}",
                "RMSE against what the users would have rated, which only we know.",
            ),
        ]
    )


def _heading(frame: lesson.Frame) -> str:
    """What the half-step shown is."""
    if frame.kind == "start":
        return "Start: every gap holds a 3"
    if frame.kind == "E":
        return f"E-step {frame.iteration}: fill in with the ellipse"
    return f"M-step {frame.iteration}: measure the ellipse"


def _words(frame: lesson.Frame, method: lesson.Method) -> None:
    """Formula and sentence of the half-step shown."""
    if frame.kind == "start":
        words(
            START,
            "**Nothing is learned yet.** The unknown rating of every user is set to the initial "
            "value 3, so those who rated one movie stand in two lines, a cross. Press *Play* or "
            "*Step*.",
        )
    elif frame.kind == "E":
        words(
            E_STEP,
            "**Each user's gap moves to the densest place on their line**, as in chapter 1. All "
            "who rated the same movie now stand exactly on one line: the fills show the pattern, "
            "but none of the scatter around it.",
        )
    elif method == "paper" or frame.iteration == 1:
        words(
            PAPER_M,
            "**Mean and covariance of the filled-in table, fills taken for ratings.** They have no "
            "scatter, so the ellipse is too thin; ε makes it wider in all directions alike."
            + ("" if method == "paper" else " (Exact EM begins with this step too.)"),
        )
    else:
        words(
            EXACT_M,
            "**The same, plus *Cᵢ*, the scatter that the fills of user i lack**: the conditional "
            "covariance, in chapter 1 $\\operatorname{Var}(f_b\\mid y_a)$; zero where the user has "
            "rated (without noise).",
        )


def _thickness(planted: lesson.Planted, chosen: Chosen, truth: float, current: int) -> None:
    other = chosen.epsilon or 0.1
    methods: dict[str, tuple[lesson.Method, float]] = {
        "the paper's, ε = 0": ("paper", 0.0),
        f"the paper's, ε = {other:g}": ("paper", other),
        "exact EM, ε = 0": ("exact", 0.0),
    }
    stories = {
        name: story(planted, chosen.data, method, value)
        for name, (method, value) in methods.items()
    }
    curves = {
        name: [float(lesson.eigenvalues(g)[0]) for g in told.gaussians]
        for name, told in stories.items()
    }
    left, right = beside()
    with left:
        head(
            "How thick the ellipse stays",
            r"\lambda_{\min}(\Sigma)\ \ge\ \varepsilon",
            "**Without ε the paper's ellipse gets thinner and thinner; with ε it cannot get "
            "thinner than ε.** Exact EM moves towards the planted thickness without ε, as near as "
            "so few ratings allow. Drawn is the smallest variance of Σ in any direction, λₘᵢₙ.",
        )
        if not planted.known.all(axis=1).any():
            st.info(
                "Nobody has rated both movies, so nothing in the data says how they go together: "
                "the tilt of the ellipse is made up by whatever method."
            )
    with right:
        ends = "; ".join(f"{name}: {values[-1]:.3f}" for name, values in curves.items() if values)
        chart(
            figures.thickness_figure(curves, truth, current, dark=is_dark()),
            f"Smallest variance of Σ after the last iteration. {ends}. Planted: {truth:.3f}.",
            key="learn_thickness",
        )
