"""Chapter 2: EM in half-steps, what the paper's M-step loses, and what ε repairs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gmc_core import lesson
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn.parts import ROOM_FOR_CONTROLS, USERS_TWO, epsilon_slider, head
from gmc_dashboard.shared.components import chart, escape, number_row
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
WHY = """
#### What ε does, and why the paper needs it

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
3. **The repair.** ε is added to all variances in every M-step, so that **no direction of Σ is ever
   thinner than ε**: Σ has full rank, the E-step can always be computed, and the thinning stops. It
   also makes the model more careful: Σₐₐ stands below the fraction bar of chapter 1, so a larger
   one draws the fills towards the mean.
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


@st.cache_resource(max_entries=64, show_spinner=False)
def story(both: float, noise: float, method: Any, epsilon: float) -> lesson.Story:
    """The half-steps of one method on the cloud."""
    return lesson.tell(cloud(both, noise), method, epsilon, ITERATIONS)


def cloud(both: float, noise: float) -> lesson.Planted:
    """The users of this chapter."""
    return lesson.two_movies(USERS_TWO, both, CORRELATION, noise)


def show() -> None:
    """The chapter."""
    st.markdown(LOOP)
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        _buttons()  # above the words, whose height differs from step to step
        words = st.container()
        chosen = st.segmented_control(
            "M-step",
            list(METHODS),
            default="The paper's M-step",
            required=True,
            key="learn_method",
            bind="query-params",
        )
        method = METHODS.get(chosen or "", "paper")
        epsilon = epsilon_slider("learn_epsilon", 0.0)
        both = st.slider(
            "Per cent of users who rated both", 0, 100, 15, 5,
            key="learn_both", bind="query-params", persist_state="session",
        ) / 100  # fmt: skip
        noise = st.slider(
            "Noise variance σ² (in the ratings, and known to the model)", 0.0, 0.5, 0.0, 0.1,
            key="learn_known_noise", bind="query-params", persist_state="session",
            format="%.1f",
        )  # fmt: skip
        st.caption(TRY)
    planted, told = cloud(both, noise), story(both, noise, method, epsilon)
    step = min(int(st.session_state["learn_step"]), len(told.frames) - 1)
    frame = told.frames[step]
    with words:
        _words(frame, method)
    truth = lesson.eigenvalues(planted.truth)
    thin = None if frame.gaussian is None else float(lesson.eigenvalues(frame.gaussian)[0])
    error = planted.error(frame.estimates)
    with right:
        learned = (
            "no ellipse is learned yet"
            if thin is None
            else f"the learned ellipse has smallest variance {thin:.3f}, the planted {truth[0]:.3f}"
        )
        chart(
            figures.step_figure(planted, frame, dark=is_dark()),
            f"Step {step}: {learned}.",
            key="learn_steps",
        )
        number_row(
            [
                (
                    "Smallest variance",
                    "none yet" if thin is None else f"{thin:.3f}",
                    f"Across the learned ellipse; planted {truth[0]:.3f}.",
                ),
                ("Planted", f"{truth[0]:.3f}"),
                (
                    "Error of the fills",
                    "nothing to fill" if error != error else f"{error:.2f}",
                    "RMSE against what the users would have rated, which only we know.",
                ),
            ]
        )
    if told.problem:
        st.warning(escape(f"The run ended early. {told.problem}"), icon=":material/warning:")
    _thickness(both, noise, epsilon, float(truth[0]), frame.iteration)
    with st.container(border=True):
        st.markdown(WHY)
    st.markdown(NOISE)


def _move(by: int) -> None:
    place = int(st.session_state.get("learn_step", 0)) + by
    st.session_state["learn_step"] = min(max(place, 0), 2 * ITERATIONS)


def _buttons() -> None:
    st.slider(
        "Step", 0, 2 * ITERATIONS, key="learn_step", bind="query-params",
        persist_state="session", format="%d",
        help="0 is the start; then M, E, M, E … Arrow keys work too.",
    )  # fmt: skip
    at = int(st.session_state["learn_step"])
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Back", key="learn_back", icon=":material/skip_previous:",
            on_click=_move, args=(-1,), disabled=at == 0,
        )  # fmt: skip
        st.button(
            "Forward", key="learn_forward", icon=":material/skip_next:", type="primary",
            on_click=_move, args=(1,), disabled=at == 2 * ITERATIONS,
        )  # fmt: skip
        st.button("To the start", key="learn_reset", on_click=_move, args=(-2 * ITERATIONS,))


def _words(frame: lesson.Frame, method: lesson.Method) -> None:
    """Formula and sentence of the half-step shown."""
    if frame.kind == "start":
        head(
            "Start: every gap holds a 3",
            START,
            "**Nothing is learned yet.** The unknown rating of every user is set to the initial "
            "value 3, so those who rated one movie stand in two lines, a cross. Press *Forward*.",
        )
    elif frame.kind == "E":
        head(
            f"E-step {frame.iteration}: fill in with the ellipse",
            E_STEP,
            "**Each user's gap moves to the densest place on their line**, as in chapter 1. All "
            "who rated the same movie now stand exactly on one line: the fills show the pattern, "
            "but none of the scatter around it.",
        )
    elif method == "paper" or frame.iteration == 1:
        head(
            f"M-step {frame.iteration}: measure the ellipse",
            PAPER_M,
            "**Mean and covariance of the filled-in table, fills taken for ratings.** They have no "
            "scatter, so the ellipse is too thin; ε makes it wider in all directions alike."
            + ("" if method == "paper" else " (Exact EM begins with this step too.)"),
        )
    else:
        head(
            f"M-step {frame.iteration}: measure the ellipse",
            EXACT_M,
            "**The same, plus *Cᵢ*, the scatter that the fills of user i lack**: the conditional "
            "covariance, in chapter 1 $\\operatorname{Var}(f_b\\mid y_a)$; zero where the user has "
            "rated (without noise).",
        )


def _thickness(both: float, noise: float, epsilon: float, truth: float, current: int) -> None:
    methods: dict[str, tuple[lesson.Method, float]] = {"the paper's, ε = 0": ("paper", 0.0)}
    methods[f"the paper's, ε = {epsilon or 0.1:g}"] = ("paper", epsilon or 0.1)
    methods["exact EM, ε = 0"] = ("exact", 0.0)
    curves = {
        name: [float(lesson.eigenvalues(g)[0]) for g in story(both, noise, method, value).gaussians]
        for name, (method, value) in methods.items()
    }
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        head(
            "How thick the ellipse stays",
            r"\lambda_{\min}(\Sigma)\ \ge\ \varepsilon",
            "**Without ε the paper's ellipse gets thinner and thinner; with ε it cannot get "
            "thinner than ε.** Exact EM moves towards the planted thickness without ε, as near as "
            "so few ratings allow. Drawn is the smallest variance of Σ in any direction, λₘᵢₙ.",
        )
        if both == 0:
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
