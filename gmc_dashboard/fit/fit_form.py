"""The settings of a fit as controls, each beside the formula that it belongs to.

Fit draws all of them; Sensitivity draws what a sweep keeps constant. Every control is
bound to the URL, so that a link reproduces the settings. The browser's limits are a
convenience: :class:`gmc_core.gaussian.settings.FitSettings` checks the values again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.gaussian.settings import PAPER_EPSILON, PAPER_ITERATIONS, FitSettings
from gmc_core.gaussian.settings import paper_epsilon as unrounded_epsilon
from gmc_dashboard.shared import context
from gmc_dashboard.shared.model_choice import model_choice

E_STEP = (
    r"\tilde f_i=\mu+\Sigma U_i^{\top}\bigl(U_i\Sigma U_i^{\top}+\Sigma_w\bigr)^{-1}"
    r"(y_i-U_i\mu)"
)
START = r"\tilde f_i=y_i\ \text{where known, the initial value elsewhere}"

SIGNALS = {"rows": "Rows (users)", "columns": "Columns (items)", "blocks": "Blocks"}
_MANTISSAS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
PAPER: dict[str, Any] = {
    "epsilon": None,
    "iterations": PAPER_ITERATIONS,
    "noise": 0.0,
    "initial": None,
    "signals": "rows",
    "precision": "float64",
    "repetitions": 3,
    "objective": False,
    "model": "paper",
}
QUICK: dict[str, Any] = {**PAPER, "iterations": 5, "precision": "float32", "repetitions": 1}


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
    """Two buttons that set all controls at once."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.caption("Presets", width="content")
        st.button(
            "Paper",
            key="preset_paper",
            icon=":material/article:",
            help=f"ε = {PAPER_EPSILON:g}, L = {PAPER_ITERATIONS}, no noise, rows as signals, "
            "float64, 3 repetitions",
            on_click=_set,
            args=({**PAPER, "epsilon": paper_epsilon(scale)},),
        )
        st.button(
            "Quick",
            key="preset_quick",
            icon=":material/bolt:",
            help="L = 5, float32, 1 repetition; otherwise the paper's settings",
            on_click=_set,
            args=({**QUICK, "epsilon": paper_epsilon(scale)},),
        )


def _set(values: dict[str, Any]) -> None:
    for name, value in values.items():
        st.session_state[name] = value


def fit_controls(ratings: Ratings, protocol: str) -> Choice:
    """All controls of a fit, in two columns of cards."""
    scale = ratings.scale
    with st.container(border=True):
        model = model_choice(ratings)
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch"):
        _card(
            "M-step: learn the model",
            *model.m_step,
        )
        epsilon = None if model.is_exact else _epsilon(scale)
        iterations = st.slider(
            "Iterations L",
            0,
            100,
            PAPER_ITERATIONS,
            key="iterations",
            bind="query-params",
            help="How often M-step and E-step alternate. The paper takes 10; 0 predicts the "
            "initial value.",
        )
    with right.container(border=True, height="stretch"):
        _card(
            "E-step: estimate the signals",
            E_STEP,
            "The most probable values of each signal, given its known ratings y; U picks "
            "the known ones.",
        )
        noise = _noise()
        objective = model.kind == "paper" and _objective()
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch"):
        _card("Start and signals", START, "The first M-step sees the known ratings and this guess.")
        initial = _initial(scale)
        signals, block = _signals(protocol)
    with right.container(border=True, height="stretch"):
        st.markdown("**Repetitions and arithmetic**")
        repetitions = _repetitions(protocol)
        seed_input()
        dtype = _precision()
    if model.kind == "ordinal" and noise == 0:
        st.warning("Ordered ratings need a noise variance above 0; 0.5 is taken.")
        noise = 0.5
    settings = FitSettings(
        epsilon, iterations, noise, initial, signals, block, dtype, objective, model.kind,
        **model.extra,
    )  # fmt: skip
    return Choice(settings, repetitions)


def constant_controls(scale: RatingScale, protocol: str) -> FitSettings:
    """The controls that a sweep over ε, L and seeds keeps constant."""
    left, right = st.columns(2, gap="small")
    with left:
        initial = _initial(scale)
        signals, block = _signals(protocol)
    with right:
        noise = _noise()
        dtype = _precision()
    return FitSettings(noise=noise, initial=initial, signals=signals, block=block, dtype=dtype)


def fits(protocol: str, settings: FitSettings) -> bool:
    """Whether the settings can be tested under the protocol."""
    return protocol != "strong" or settings.signals == "rows"


def _card(title: str, formula: str, sentence: str) -> None:
    st.markdown(f"**{title}**")
    st.latex(formula)
    st.caption(sentence)


def _epsilon(scale: RatingScale) -> float:
    options, paper = epsilon_grid(scale), paper_epsilon(scale)
    if st.session_state.get("epsilon", paper) not in options:
        st.session_state["epsilon"] = paper
    return float(
        st.select_slider(
            "Regularization ε (log scale)",
            options,
            paper,
            format_func=lambda value: epsilon_text(value, paper),
            key="epsilon",
            bind="query-params",
            help=f"Added to the diagonal of Σ. The paper takes {PAPER_EPSILON:g} for stars and "
            "finds the results insensitive to it; the Sensitivity page checks that on your data.",
        )
    )


def _noise() -> float:
    return float(
        st.number_input(
            "Noise variance σ²",
            0.0,
            100.0,
            0.0,
            0.1,
            key="noise",
            bind="query-params",
            help="Variance of the noise in a known rating, Σ_w = σ² I. The paper neglects it (0).",
        )
    )


def _objective() -> bool:
    return bool(
        st.toggle(
            "MAP objective at every iteration",
            key="objective",
            bind="query-params",
            help="log p(f̃ | μ, Σ), what MAP-EM climbs. It costs a Cholesky factorization of Σ "
            "per iteration; the log-likelihood of the known ratings is free.",
        )
    )


def _initial(scale: RatingScale) -> float | None:
    default = FitSettings().resolved(scale).initial
    value = st.number_input(
        "Initial value of unknown ratings",
        value=None,
        step=0.5,
        placeholder=f"{default:g} (default)",
        key="initial",
        bind="query-params",
        help="The paper starts at 3 and finds the result insensitive to it.",
    )
    return None if value is None else float(value)


def _signals(protocol: str) -> tuple[Any, tuple[int, int]]:
    signals = st.segmented_control(
        "Signals",
        list(SIGNALS),
        default="rows",
        required=True,
        key="signals",
        bind="query-params",
        format_func=SIGNALS.__getitem__,
        help="What one Gaussian vector is. Rows are the paper's choice, slightly better than the "
        "others there.",
    )
    if protocol == "strong" and signals != "rows":  # see `fits`
        st.warning(
            "Strong generalization predicts new users, who exist only where rows are the signals. "
            "Choose rows, or weak generalization on the Data page."
        )
    block = (16, 16)
    if signals == "blocks":
        height, width = st.columns(2)
        block = (
            _block_side(height, "Block height (users)", "block_height"),
            _block_side(width, "Block width (items)", "block_width"),
        )
    return signals or "rows", block


def _block_side(place: DeltaGenerator, label: str, key: str) -> int:
    return int(place.number_input(label, 1, 512, 16, key=key, bind="query-params"))


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


def _precision() -> Any:
    return (
        st.segmented_control(
            "Precision",
            ["float64", "float32"],
            default="float64",
            required=True,
            key="precision",
            bind="query-params",
            help="float32 takes half the memory and about half the time.",
        )
        or "float64"
    )
