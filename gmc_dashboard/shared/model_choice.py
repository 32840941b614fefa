"""Which model: the paper's MAP-EM or one that goes beyond it.

A choice sets the other controls to the model's defaults; what a person changes after
that is kept, and is in the URL like every setting.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.gaussian.settings import ModelKind, settings_of_a_fit
from gmc_dashboard.shared import link_state
from gmc_dashboard.shared.linked_choice import linked_choice

SHORT: dict[str, str] = {
    "paper": "Paper",
    "exact": "Exact EM",
    "ordinal": "Ordered ratings",
    "factor": "Low rank",
    "two-sided": "Two-sided",
    "mixture": "Mixture",
}
FORMULA: dict[str, str] = {
    "ordinal": r"y=v\iff c_{v-1}<f+e\le c_v,\qquad \hat y=\text{median}",
    "factor": r"f=\mu+Wx+u,\quad x\sim N(0,I_R),\ \Sigma=WW^{\top}+\gamma I",
    "two-sided": r"z_{ui}=\mu_i+g_u[i]+h_i[u]+e,\quad g_u\sim N(0,\Sigma),\ h_i\sim N(0,WW^{\top})",
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
    "all items share, what items rated by the same people share, and each item's own.",
)
M_STEPS: dict[str, tuple[str, str]] = {
    "paper": (
        rf"{_MEAN},\ \ \Sigma=\frac1M\sum_i{_SQUARE}+\varepsilon I",
        "Mean and covariance of the current estimates of all M signals; ε keeps Σ invertible "
        "and holds back what few ratings would claim.",
    ),
    "exact": _EXACT,
    "ordinal": _EXACT,
    "factor": (
        r"(w_j,\mu_j)=\arg\min\sum_{i\ni j}E\bigl(y_{ij}-\mu_j-w_j^{\top}x_i\bigr)^2+\text{prior}",
        "Each title's row of W and its mean by regression on what is believed of the factors of "
        "those who rated it, with the uncertainty of these; then the factors' scale.",
    ),
    "two-sided": _EXACT,
    "mixture": (
        r"\begin{gathered}\mu_k=\frac{\sum_ir_{ik}\tilde f_i^{(k)}}{\sum_ir_{ik}}\\"
        r"\Sigma_k=\frac{\sum_ir_{ik}(\tilde f_i^{(k)}-\mu_k)(\tilde f_i^{(k)}-\mu_k)^{\top}}"
        r"{\sum_ir_{ik}}+\varepsilon I\end{gathered}",
        "MAP-EM's for each of the K Gaussians; a signal counts as far as it is likely to come "
        "from it, with the share rᵢₖ.",
    ),
}


def model_choice(scale: RatingScale) -> ModelKind:
    """The selector and a sentence about the chosen model; its own controls come after."""
    _open_older_link()
    kind = linked_choice(
        "Model",
        SHORT,
        "paper",
        key="model",
        on_change=_take_defaults,
        args=(scale,),
        help="The paper's MAP-EM, or a model that goes beyond it on the same core.",
    )
    st.caption(f"**{MODELS[kind].label}.** {MODELS[kind].about}")
    if kind in FORMULA:
        st.latex(FORMULA[kind])
    return kind  # type: ignore[return-value]


def _open_older_link() -> None:
    """Give a link of an earlier version the noise that it left out.

    Such a link names the model by what people read, and left out a variance of 0, which was the
    control's default whatever the model. Ordered ratings need one above 0, so theirs follows.
    """
    linked = st.query_params
    if (
        linked.get("model") == SHORT["exact"]
        and "noise" not in linked
        and link_state.unset("model")
    ):
        st.session_state["noise"] = 0.0


def _take_defaults(scale: RatingScale) -> None:
    kind = st.session_state.get("model") or "paper"
    settings = settings_for(kind).resolved(scale)
    declared = settings_of_a_fit()
    for name in ("iterations", "noise", "learn_noise"):
        st.session_state[declared[name].key] = getattr(settings, name)
    if settings.model != "paper":
        st.session_state["objective"] = False
