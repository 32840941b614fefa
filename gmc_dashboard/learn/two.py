"""Chapter 1: two movies, and what one rating says of the other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import streamlit as st

from gmc_core import lesson
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.parameters import Gaussian
from gmc_dashboard.learn import figures as figures
from gmc_dashboard.learn import plane, users
from gmc_dashboard.learn.parts import (
    ROOM_FOR_CONTROLS,
    USERS_TWO,
    Stage,
    head,
    number_rows,
    stage,
    title,
    words,
)
from gmc_dashboard.shared.components import chart, guard
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.theme import is_dark

SHARE_BOTH = 0.5
CLOUD = "learn_cloud_users"
PRESS = "A click on a slider and the arrow keys move it in small steps."
LEGEND = (
    ("both", "users who rated both"),
    ("rug a", "at the margin: who rated one"),
    ("ring filled", "half of the users, 95\u00a0%"),
    ("rating", "line of this user"),
    ("posterior", "belief along it"),
    ("diamond", "the fill, 95\u00a0% interval"),
)
FIRST = (
    "Each dot is a user: their taste *f* for two movies, *a* and *b*. **Those who like one movie "
    "tend to like the other, so the cloud is a tilted ellipse.** A user who gave *a* the rating "
    "*yₐ* and has not rated *b* lies somewhere on a straight line (with noise, near it); the best "
    "guess for *b*, the fill f̃, is where the cloud is densest on it."
)
HELP = (
    (
        "hands",
        "Drag the line, a dot, or the ellipse by its round handles and its middle. The ellipse is "
        "that of the dots: they go along with it, and it follows each of them. A click on an empty "
        "place adds a user, one on a dot takes it away.",
    ),
    (
        "keys",
        "Keys: Tab goes from handle to handle, arrows move; on a dot, Page Down goes to the next, "
        "Delete takes it away and + adds one.",
    ),
)


# What was dragged, until the sliders have it: a run of the page that is broken off before it draws
# them would leave them where they were, apart from the users who have moved already.
TAKEN = "learn_cloud_taken"


class Setting(NamedTuple):
    """A slider: its key, ends, first value and step."""

    key: str
    low: float
    high: float
    first: float
    step: float

    @property
    def value(self) -> float:
        """What is chosen now."""
        taken = st.session_state.get(TAKEN, {})
        return float(taken.get(self.key, st.session_state.get(self.key, self.first)))

    def take(self, value: float) -> None:
        """Choose the nearest value that the slider has."""
        step = round(min(max(value, self.low), self.high) / self.step)
        st.session_state.setdefault(TAKEN, {})[self.key] = round(step * self.step, 4)


RATING = Setting("learn_rating", 1.0, 5.0, 4.5, 0.1)
CORRELATION = Setting("learn_correlation", -0.95, 0.95, 0.8, 0.01)
NOISE = Setting("learn_noise", 0.0, 1.0, 0.0, 0.1)
MEANS = tuple(
    Setting(f"learn_mean_{which}", 1.0, 5.0, first, 0.01)
    for which, first in zip("ab", lesson.PAIR_MEAN, strict=True)
)
DEVIATIONS = tuple(Setting(f"learn_sd_{which}", 0.2, 1.6, 1.0, 0.01) for which in "ab")
SHAPE = (*MEANS, *DEVIATIONS, CORRELATION)
# Of the ellipse's axes, when they are dragged; inside the sliders' ends.
AXIS = (0.3, 1.5)


@st.fragment
@guard()
def show() -> None:
    """The chapter."""
    title("An ellipse for the users, a line for one of them")
    if not presenting():
        st.markdown(FIRST)
    place = stage()
    with place.controls:
        movie = _controls()
    _cloud(movie, place)
    with place.words:
        words(
            r"\begin{gathered}f\sim\mathcal N(\mu,\Sigma)\\"
            r"\tilde f_b=\mu_b+\frac{\Sigma_{ba}}{\Sigma_{aa}+\sigma^2}\,(y_a-\mu_a)\end{gathered}",
            "μ is the middle of the cloud; Σ is its shape, with the variances $\\Sigma_{aa}$ and "
            "$\\Sigma_{bb}$ and the covariance $\\Sigma_{ba}$. Grey dashes: the belief without the "
            "rating, and, where each rating of *a* would be filled in, the blue ones.",
        )
    _bell(movie)


def _controls() -> int:
    """The sliders; returns the movie that was rated."""
    for key, value in st.session_state.get(TAKEN, {}).items():
        st.session_state[key] = value
    rated = st.segmented_control(
        "This user has rated",
        lesson.PAIR,
        default=lesson.PAIR[0],
        required=True,
        key="learn_rated",
        bind="query-params",
    )
    _slider(RATING, "and gave it", PRESS)
    left, right = st.columns(2, gap="medium")
    with left:
        _slider(
            CORRELATION,
            "Correlation ρ",
            "How reliably those who like one movie like the other; at 0 a rating says nothing.",
        )
    with right:
        _slider(
            NOISE,
            "Noise variance σ²",
            "How much the same person's ratings of the same movie vary. The paper takes 0.",
        )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover("μ and spread", icon=":material/tune:", key="learn_more"):
            for mean, deviation, name in zip(MEANS, DEVIATIONS, lesson.PAIR, strict=True):
                _slider(mean, f"Mean of {name}")
                _slider(deviation, f"Standard deviation of {name}")
        st.session_state.pop(TAKEN, None)
        users.buttons(
            "learn_cloud",
            CLOUD,
            more=any(setting.value != setting.first for setting in SHAPE),
            also=_first_shape,
        )
    return lesson.PAIR.index(rated) if rated in lesson.PAIR else 0


def _first_shape() -> None:
    for setting in SHAPE:
        setting.take(setting.first)


def _slider(setting: Setting, label: str, help_text: str | None = None) -> None:
    st.slider(
        label, setting.low, setting.high, setting.first, setting.step, key=setting.key,
        bind="query-params", persist_state="session", help=help_text,
        format="%.1f" if setting.step == 0.1 else "%.2f",
    )  # fmt: skip


# The cloud and its ellipse -------------------------------------------------------------------


def planted_gaussian() -> Gaussian:
    """What the sliders stand for."""
    (a, b), (first, second) = DEVIATIONS, MEANS
    return lesson.pair_gaussian(CORRELATION.value, (a.value, b.value), (first.value, second.value))


def as_drawn() -> lesson.Planted:
    """The users before any slider: independent ratings of variance 1."""
    return lesson.two_movies(USERS_TWO, SHARE_BOTH, 0.0, seed=users.seed())


def shape_of(raw: lesson.Planted) -> Gaussian:
    """Mean and covariance of those who rated both."""
    return lesson.gaussian_of(raw.complete[raw.known.all(axis=1)])


def moved(change: plane.Change) -> None:
    """Let sliders and users follow what was moved in the picture."""
    if change.what == "rating":
        RATING.take(change.rating)
    elif change.what == "ellipse":
        _take_gaussian(np.array(change.mean), np.array(change.cov))
    else:
        _change_user(change)


def _take_gaussian(mean: lesson.Floats, covariance: lesson.Floats) -> None:
    deviations = np.sqrt(np.maximum(covariance.diagonal(), DEVIATIONS[0].low ** 2))
    for setting, value in zip((*MEANS, *DEVIATIONS), (*mean, *deviations), strict=True):
        setting.take(float(value))
    CORRELATION.take(float(covariance[0, 1] / deviations.prod()))


def _change_user(change: plane.Change) -> None:
    """The ellipse is that of the dots: where one of them moves, its sliders follow.

    Users are kept as drawn, before the sliders, so that they go with the ellipse as well. The
    others stay where they are seen: both ways are triangular, so the one that the dots went
    by is found again after the change.
    """
    drawn, target = as_drawn(), planted_gaussian()
    if not math.isnan(change.mean[0]):  # what the visitor saw, whatever the sliders tell by now
        target = Gaussian(np.array(change.mean), DenseCovariance(np.array(change.cov)))
    before = shape_of(users.apply(CLOUD, drawn)[0])
    at = None
    if change.what == "user":
        x, y = lesson.carried(np.array([change.at]), target, before)[0]
        at = float(x), float(y)
    if not users.with_change(CLOUD, drawn, change.user, at):
        return
    raw = users.apply(CLOUD, drawn)[0]
    seen = lesson.carried(raw.complete[raw.known.all(axis=1)], before, target)
    followed = lesson.gaussian_of(seen)
    _take_gaussian(followed.mean, lesson.matrix(followed))


class Belief(NamedTuple):
    """Mean and standard deviation of the other movie, and without the rating."""

    mean: float
    sd: float
    before: tuple[float, float]


def belief(movie: int) -> Belief:
    """The core's, by the sliders."""
    model = lesson.model_of(planted_gaussian(), lesson.PAIR, NOISE.value)
    after, before = model.posterior([movie], [RATING.value]), model.posterior([], [])
    (mean, variance), prior = (
        (float(one.mean[1 - movie]), float(one.variance[1 - movie])) for one in (after, before)
    )
    return Belief(mean, math.sqrt(variance), (prior[0], math.sqrt(prior[1])))


def _cloud(movie: int, place: Stage) -> None:
    raw, ids = users.apply(CLOUD, as_drawn())
    target, believed = planted_gaussian(), belief(movie)
    points = lesson.carried(raw.complete, shape_of(raw), target)
    both = raw.known.all(axis=1)
    name, own = lesson.PAIR[1 - movie], lesson.PAIR[movie]
    rating, correlation = RATING.value, CORRELATION.value
    with place.numbers:
        number_rows(
            (
                ("Fill f̃", f"{believed.mean:.2f}", f"The conditional mean of {name}."),
                ("± standard deviation", f"{believed.sd:.2f}", "Root of the conditional variance."),
            ),
            (
                ("Without the rating", "{:.2f} ± {:.2f}".format(*believed.before)),
                ("Uncertainty left", f"{100 * believed.sd / believed.before[1]:.0f} %"),
            ),
        )
    drawn = plane.Plane(
        names=lesson.PAIR,
        users=plane.users_of(np.array(ids)[both].tolist(), points[both], raw.known[both]),
        ellipse=target,
        rings=(plane.Ring(figures.HALF, "filled"), plane.Ring(figures.NEARLY_ALL, "dotted")),
        next=users.next_number(CLOUD, USERS_TWO),
        measured=True,
        rug=[
            (which, float(value))
            for which in (0, 1)
            for value in points[raw.known[:, which] & ~both, which]
        ],
        line=plane.Line(movie, rating, RATING.low, RATING.high, RATING.step),
        noise=NOISE.value,
        handles=plane.Handles(AXIS, (MEANS[0].low, MEANS[0].high)),
        legend=LEGEND,
        help=HELP,
    )
    with place.picture:
        plane.show(
            drawn,
            f"Ratings of {own} and {name}, correlation {correlation:.2f}. A user who gave {own} "
            f"{rating:.1f} is filled in with {believed.mean:.2f} for {name}, standard deviation "
            f"{believed.sd:.2f}; without that rating it would be {believed.before[0]:.2f} with "
            f"{believed.before[1]:.2f}.",
            key="learn_cloud",
            on_change=moved,
        )


def _bell(movie: int) -> None:
    target, believed, rating = planted_gaussian(), belief(movie), RATING.value
    other, name, noise = 1 - movie, lesson.PAIR[1 - movie], NOISE.value
    left, right = st.columns(ROOM_FOR_CONTROLS, gap="medium")
    with left:
        covariance = lesson.matrix(target)
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
        centre = f"{rating:.2f}-{target.mean[movie]:.2f}"
        st.latex(
            rf"{target.mean[other]:.2f}+\tfrac{{{cross}}}{{{bottom}}}\,({centre})"
            rf"={believed.mean:.2f}"
        )
        st.markdown(
            "The rating moves the fill; the width stays, since the variance does not depend on "
            "*how* the movie was rated, only on *which* movie was. With noise the rating is "
            "trusted less: the fill moves towards μ and the bell widens."
        )
    with right:
        after = believed.mean, believed.sd
        chart(
            figures.density_figure(believed.before, after, name, dark=is_dark()),
            f"Belief about the rating of {name}: before, mean {believed.before[0]:.2f} and "
            f"standard deviation {believed.before[1]:.2f}; along the line, "
            f"{believed.mean:.2f} and {believed.sd:.2f}.",
            key="learn_density",
        )
