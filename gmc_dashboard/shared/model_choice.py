"""Which model: the paper's recipe or one that goes beyond it, with the controls of its own.

A choice sets the other controls to the model's defaults; what a person changes after
that is kept, and is in the URL like every setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.gaussian.attributes import LEAST_USERS, UserGroups
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.gaussian.settings import ModelKind, usual_strength
from gmc_dashboard.shared.components import escape

SHORT: dict[str, str] = {
    "paper": "Paper",
    "exact": "Exact EM",
    "ordinal": "Ordered ratings",
    "mixture": "Mixture",
}
FORMULA: dict[str, str] = {
    "ordinal": r"y=v\iff c_{v-1}<f+e\le c_v,\qquad \hat y=\text{median}",
    "mixture": r"\tilde f_i=\sum_k r_{ik}\,\tilde f_i^{(k)}",
}
# The M-step and what it does; in two lines where one would be wider than half a small screen.
_MEAN = r"\mu=\frac1M\sum_i\tilde f_i"
_SQUARE = r"(\tilde f_i-\mu)(\tilde f_i-\mu)^{\top}"
_EXACT = (
    rf"\begin{{gathered}}{_MEAN}\\"
    rf"\Sigma=\frac1{{M+\nu}}\Bigl(\sum_i\bigl[{_SQUARE}+C_i\bigr]+\nu T\Bigr)\end{{gathered}}",
    "Mean and covariance of the current estimates of all M signals, with the covariance Cᵢ that "
    "these lack. The prior, ν more signals of covariance T, takes the place of ε: T holds what "
    "all items share, what items with the same raters share, and each item's own.",
)
M_STEPS: dict[str, tuple[str, str]] = {
    "paper": (
        rf"{_MEAN},\ \ \Sigma=\frac1M\sum_i{_SQUARE}+\varepsilon I",
        "Mean and covariance of the current estimates of all M signals; ε keeps Σ invertible "
        "and holds back what few ratings would claim.",
    ),
    "exact": _EXACT,
    "ordinal": _EXACT,
    "mixture": (
        r"\begin{gathered}\mu_k=\frac{\sum_ir_{ik}\tilde f_i^{(k)}}{\sum_ir_{ik}}\\"
        r"\Sigma_k=\frac{\sum_ir_{ik}(\tilde f_i^{(k)}-\mu_k)(\tilde f_i^{(k)}-\mu_k)^{\top}}"
        r"{\sum_ir_{ik}}+\varepsilon I\end{gathered}",
        "The recipe's for each of the K Gaussians; a signal counts as far as it is likely to come "
        "from it, with the share rᵢₖ.",
    ),
}


@dataclass(frozen=True)
class ModelChoice:
    """The model and what belongs to it alone, as keywords of the settings."""

    kind: ModelKind
    extra: dict[str, Any]

    @property
    def is_exact(self) -> bool:
        """Whether ε and the initial value have stepped back behind the prior."""
        return self.kind in ("exact", "ordinal")

    @property
    def m_step(self) -> tuple[str, str]:
        """Formula and sentence of the M-step."""
        return M_STEPS[self.kind]


def model_choice(ratings: Ratings) -> ModelChoice:
    """The selector, a sentence and the controls of the chosen model for these ratings."""
    kind = st.segmented_control(
        "Model",
        list(SHORT),
        default="paper",
        required=True,
        key="model",
        bind="query-params",
        format_func=SHORT.__getitem__,
        on_change=_take_defaults,
        args=(ratings.scale,),
        help="The paper's recipe, or a model that goes beyond it on the same core.",
    )
    kind = kind if kind in MODELS else "paper"
    st.caption(f"**{MODELS[kind].label}.** {MODELS[kind].about}")
    if kind in FORMULA:
        st.latex(FORMULA[kind])
    return ModelChoice(kind, _controls(kind, ratings))  # type: ignore[arg-type]


def _controls(kind: str, ratings: Ratings) -> dict[str, Any]:
    if kind == "mixture":
        components = st.number_input(
            "Gaussians K", 1, 10, 2, key="components", bind="query-params",
            help="Groups of users, each with its own μ and Σ. K = 1 is the recipe.",
        )  # fmt: skip
        return {"components": int(components)}
    if kind in ("exact", "ordinal"):
        strength = st.number_input(
            "Weight ν of the prior, in users", 0.0, 1e5, None, 50.0, format="%g",
            placeholder=f"{usual_strength(ratings.n_items):g} (default)", key="prior_strength",
            bind="query-params",
            help="Σ is shrunk, as if so many users more had shown it, towards a target: variance "
            "that all items share, that items with the same raters share, and an item's own. 0 is "
            "the likelihood alone.",
        )  # fmt: skip
        learned = st.toggle(
            "Learn the noise", key="noise_learned", bind="query-params",
            help="The noise variance is where it begins, and every M-step takes a new one. On "
            "sparse ratings it falls too far, and held-out ratings are predicted worse.",
        )  # fmt: skip
        return {
            "prior_strength": None if strength is None else float(strength),
            "learn_noise": bool(learned),
            **_attributes(ratings),
        }
    return {}


@st.cache_data(max_entries=8, show_spinner=False)
def _attribute_names(_ratings: Ratings, side_sha256: str) -> list[str]:
    return list(UserGroups.of(_ratings.user_info).choices)


def _attributes(ratings: Ratings) -> dict[str, bool]:
    """Whether the mean depends on users' attributes, where these make groups."""
    names = _attribute_names(ratings, ratings.side_sha256)
    if not names:
        return {}
    used = st.toggle(
        "Use what is known of the users", True, key="attributes", bind="query-params",
        help=f"The mean depends on the users' {escape(', '.join(names))}: μ + B x. Groups of "
        f"fewer than {LEAST_USERS} users are left out. Users must be the signals.",
    )  # fmt: skip
    return {"attributes": bool(used)}


def _take_defaults(scale: RatingScale) -> None:
    kind = st.session_state.get("model") or "paper"
    settings = settings_for(kind)
    resolved = settings.resolved(scale)
    st.session_state["iterations"] = settings.iterations
    st.session_state["noise"] = float(resolved.noise or 0.0)
    st.session_state["noise_learned"] = False
    if settings.model != "paper":
        st.session_state["objective"] = False
