"""The settings of a fit as controls, each beside the formula that it belongs to.

Fit draws all of them; Sensitivity draws what a sweep keeps constant. Which controls there are,
in which card and with which words, is declared in :class:`gmc_core.gaussian.settings.FitSettings`,
which checks the values again; here are the cards, and the few controls that are more than their
kind. Every control is bound to the URL, so that a link reproduces the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.data.rating_times import are_days
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.time_notes import DAYS
from gmc_core.gaussian.attributes import LEAST_USERS, UserGroups
from gmc_core.gaussian.declaration import EITHER, FitSetting
from gmc_core.gaussian.models import PRESETS
from gmc_core.gaussian.settings import (
    PAPER_EPSILON,
    PAPER_ITERATIONS,
    FitSettings,
    ModelKind,
    settings_of_a_fit,
)
from gmc_core.gaussian.settings import paper_epsilon as unrounded_epsilon
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.model_choice import M_STEPS, model_choice
from gmc_dashboard.shared.setting_controls import control

E_STEP = (
    r"\tilde f_i=\mu+\Sigma U_i^{\top}\bigl(U_i\Sigma U_i^{\top}+\Sigma_w\bigr)^{-1}"
    r"(y_i-U_i\mu)"
)
START = r"\tilde f_i=y_i\ \text{where known, the initial value elsewhere}"

_MANTISSAS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
SETTINGS = settings_of_a_fit()
CARDS = ("model", "m_step", "e_step", "start", "arithmetic")
# By the keys of the controls; the block's size has a meaning only with blocks.
PAPER: dict[str, Any] = {
    setting.key: setting.default
    for setting in SETTINGS.values()
    if "paper" in setting.models and setting.needs is None
} | {"repetitions": 3}
QUICK: dict[str, Any] = {**PAPER, "iterations": 5, "precision": "float32", "repetitions": 1}

# What the presets of the core set, by their names.
_OF_PRESETS = {
    "fast": ("model", "iterations", "rank", "prior_strength", "noise", "dtype"),
    "best": ("model", "iterations", "average_rank", "noise", "dtype"),
}


@dataclass(frozen=True)
class Choice:
    """What the controls say."""

    settings: FitSettings
    repetitions: int

    @property
    def config(self) -> ExperimentConfig:
        """The experiment: the selected data, filter, protocol and seed with these settings."""
        return context.current_config(fit=self.settings, repetitions=self.repetitions)


def epsilon_grid(scale: RatingScale) -> list[float]:
    """The slider's values of ε, .001 … 10, with the paper's for this scale among them."""
    values = {float(f"{m * 10.0**e:.3g}") for e in range(-3, 1) for m in _MANTISSAS}
    return sorted(values | {10.0, paper_epsilon(scale)})


def paper_epsilon(scale: RatingScale) -> float:
    """The paper's ε on this scale, in four digits for a slider."""
    return float(f"{unrounded_epsilon(scale):.4g}")


def epsilon_text(value: float, paper: float) -> str:
    """An ε for the slider; the paper's is named."""
    if value != paper:
        return f"{value:g}"
    return f"{value:g} (paper)" if paper == PAPER_EPSILON else f"{value:g} (the paper's, scaled)"


def presets(scale: RatingScale) -> None:
    """Buttons that set all controls at once."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.caption("Presets", width="content")
        _preset_button(
            "paper",
            ":material/article:",
            f"ε = {PAPER_EPSILON:g}, L = {PAPER_ITERATIONS}, no noise, rows as signals, "
            "float64, 3 repetitions",
            {**PAPER, "epsilon": paper_epsilon(scale)},
        )
        _preset_button(
            "quick",
            ":material/bolt:",
            "L = 5, float32, 1 repetition; otherwise the paper's settings",
            {**QUICK, "epsilon": paper_epsilon(scale)},
        )
        _preset_button(
            "fast",
            ":material/speed:",
            "Low rank: Σ = W Wᵀ + γ Id of rank 31, L = 5, float32, 1 repetition. The best "
            "figures for the shortest wait.",
            _preset("fast", scale),
        )
        _preset_button(
            "best",
            ":material/trophy:",
            "Two-sided, averaged with a low-rank fit, float32, 1 repetition: the lowest error "
            "that was measured, and twice the wait of ordered ratings.",
            _preset("best", scale),
        )


def _preset_button(name: str, icon: str, about: str, values: dict[str, Any]) -> None:
    st.button(
        name.capitalize(),
        key=f"preset_{name}",
        icon=icon,
        help=about,
        on_click=_set,
        args=(values,),
    )


def _preset(name: str, scale: RatingScale) -> dict[str, Any]:
    """A preset of the core as values of the controls."""
    chosen, of = PRESETS[name].resolved(scale), _OF_PRESETS[name]
    return {SETTINGS[one].key: getattr(chosen, one) for one in of} | {"repetitions": 1}


def _set(values: dict[str, Any]) -> None:
    for name, value in values.items():
        st.session_state[name] = value


def fit_controls(ratings: Ratings, protocol: str) -> Choice:
    """All controls of a fit, in two columns of cards."""
    with st.container(border=True):
        kind = model_choice(ratings.scale)
        form = _Form(kind, ratings, protocol)
        form.draw("model")
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch"):
        _card("M-step: learn the model", *M_STEPS[kind])
        form.draw("m_step")
    with right.container(border=True, height="stretch"):
        _card(
            "E-step: estimate the signals",
            E_STEP,
            "The most probable values of each signal, given its known ratings y; U picks "
            "the known ones.",
        )
        form.draw("e_step")
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch"):
        _card("Start and signals", START, "The first M-step sees the known ratings and this guess.")
        form.draw("start")
    with right.container(border=True, height="stretch"):
        st.markdown("**Repetitions and arithmetic**")
        repetitions = _repetitions(protocol)
        seed_input()
        form.draw("arithmetic")
    if kind in ("ordinal", *EITHER) and form.given["noise"] == 0:
        st.warning("This model needs a noise variance above 0; 0.5 is taken.")
        form.given["noise"] = 0.5
    return Choice(form.settings, repetitions)


def constant_controls(ratings: Ratings, protocol: str) -> FitSettings:
    """The controls that a sweep over ε, L and seeds keeps constant."""
    form = _Form("paper", ratings, protocol, constant=True)
    left, right = st.columns(2, gap="small")
    with left:
        form.draw("start")
    with right:
        form.draw(*(card for card in CARDS if card != "start"))
    return form.settings


class _Form:
    """The controls of a model's settings, drawn card by card, and what they say.

    given : setting → value, of those drawn so far.
    constant : only those that a sweep keeps constant.
    """

    def __init__(
        self, kind: ModelKind, ratings: Ratings, protocol: str, *, constant: bool = False
    ) -> None:
        self.kind, self.ratings, self.protocol, self.constant = kind, ratings, protocol, constant
        self.given: dict[str, Any] = {}

    @property
    def settings(self) -> FitSettings:
        return FitSettings(model=self.kind, **self.given)

    def draw(self, *cards: str) -> None:
        """The controls of these cards, in the order in which the settings are declared."""
        for name, setting in SETTINGS.items():
            shown = setting.control
            if shown is None or shown.card not in cards:
                continue
            if self.constant and not shown.constant:
                continue
            if self.kind not in (shown.models or setting.models):
                continue
            if not setting.has_needed(self.given.get):
                continue
            value = _OWN.get(name, _plain)(setting, self)
            if value is not None or setting.may_be_none:
                self.given[name] = value


def _plain(setting: FitSetting, form: _Form) -> Any:
    usual = setting.usual_for(form.kind, form.ratings.scale, form.ratings.n_items)
    return control(setting, usual=usual)


def fits(protocol: str, settings: FitSettings) -> bool:
    """Whether the settings can be tested under the protocol."""
    return protocol != "strong" or settings.signals == "rows"


def _card(title: str, formula: str, sentence: str) -> None:
    st.markdown(f"**{title}**")
    st.latex(formula)
    st.caption(sentence)


# Settings whose control is more than their kind says.


def _epsilon(setting: FitSetting, form: _Form) -> float:
    assert setting.control is not None
    scale = form.ratings.scale
    options, paper = epsilon_grid(scale), paper_epsilon(scale)
    if st.session_state.get("epsilon", paper) not in options:
        st.session_state["epsilon"] = paper
    return float(
        st.select_slider(
            setting.control.label,
            options,
            paper,
            format_func=lambda value: epsilon_text(value, paper),
            key="epsilon",
            bind="query-params",
            help=setting.control.help,
        )
    )


def _signals(setting: FitSetting, form: _Form) -> Any:
    signals = control(setting)
    if form.protocol == "strong" and signals != "rows":  # see `fits`
        st.warning(
            "Strong generalization predicts new users, who exist only where rows are the signals. "
            "Choose rows, or weak generalization on the Data page."
        )
    return signals


def _block(setting: FitSetting, form: _Form) -> tuple[int, int]:
    height, width = st.columns(2)
    return (
        _block_side(height, "Block height (users)", "block_height"),
        _block_side(width, "Block width (items)", "block_width"),
    )


def _block_side(place: DeltaGenerator, label: str, key: str) -> int:
    return int(place.number_input(label, 1, 512, 16, key=key, bind="query-params"))


def _attributes(setting: FitSetting, form: _Form) -> bool | None:
    """Whether the mean depends on users' attributes; None where these make no groups."""
    names = _attribute_names(form.ratings, form.ratings.side_sha256)
    if not names:
        return None
    help = (
        f"The mean depends on the users' {escape(', '.join(names))}: μ + B x. Groups of fewer "
        f"than {LEAST_USERS} users are left out. Users must be the signals."
    )
    return bool(control(setting, help=help))


def _session_noise(setting: FitSetting, form: _Form) -> float | None:
    """The variance of session noise; None where it is not known when ratings were given."""
    if not form.ratings.has_times:
        return None
    variance = float(control(setting))
    if variance and are_days(form.ratings.times):
        st.caption(DAYS)
    return variance


@st.cache_data(max_entries=8, show_spinner=False)
def _attribute_names(_ratings: Ratings, side_sha256: str) -> list[str]:
    return list(UserGroups.of(_ratings.user_info).choices)


_OWN: dict[str, Callable[[FitSetting, _Form], Any]] = {
    "epsilon": _epsilon,
    "signals": _signals,
    "block": _block,
    "attributes": _attributes,
    "session_noise": _session_noise,
}


def _repetitions(protocol: str) -> int:
    fixed = protocol == "none"
    value = st.slider(
        "Repetitions",
        1,
        10,
        1,
        key="repetitions",
        bind="query-params",
        disabled=fixed,
        help="Each draws its own split, with the seeds s, s + 1, …; the paper averages 3.",
    )
    return 1 if fixed else int(value)


def seed_input() -> int:
    """The seed of the (first) split, part of the page-wide selection."""
    chosen = context.current()
    key = f"seed_input_{chosen.seed}"

    def take() -> None:
        context.choose(seed=int(st.session_state[key]))

    value = st.number_input(
        "Seed s of the split",
        0,
        2**31 - 1,
        chosen.seed,
        key=key,
        help="The same seed draws the same held-out ratings on every machine.",
        on_change=take,
    )
    return int(value)
