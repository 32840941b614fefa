"""The Covariance page's overview: Σ as a picture, at any iteration of its fit."""

from __future__ import annotations

import html

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gmc_core.model.item_orders import ORDERS
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance import figures as figures
from gmc_dashboard.covariance.views import current_folder, picture_room
from gmc_dashboard.shared import context, link_state, playing
from gmc_dashboard.shared.components import chart, download, fact, guard
from gmc_dashboard.shared.linked_choice import linked_choice
from gmc_dashboard.shared.playing import Film
from gmc_dashboard.shared.tables import to_csv
from gmc_dashboard.shared.theme import is_dark

FORMULA = (
    r"\tilde\Sigma=\frac{1}{M}\sum_{i=1}^{M}(\tilde{\mathbf{f}}_i-\tilde\mu)"
    r"(\tilde{\mathbf{f}}_i-\tilde\mu)^{T}+\varepsilon\,\mathrm{Id}"
)
MEANING = {
    "covariance": r"**Covariance** $\Sigma_{ij}$, in squared ratings. Orange: users who like one "
    "title more than the average user also like the other more. Blue: they like it less. Titles "
    "with few ratings stay pale.",
    "correlation": r"**Correlation** $\Sigma_{ij}/\sqrt{\Sigma_{ii}\Sigma_{jj}}$, from −1 to 1. "
    "Orange: users who like one title more than the average user also like the other more. "
    "Blue: they like it less.",
    "partial": r"**Partial correlation**: what two titles share while the ratings of all other "
    r"titles are held fixed, from $\Sigma^{-1}$. It is much smaller: most links run through other "
    "titles.",
}

POLL_SECONDS = 2.0
SHOWN, LATEST = "overview_iteration", "overview_latest"


def overview(run: Run) -> None:
    """Controls and the picture; the picture updates itself while it plays or the fit runs."""
    rows = run.config.fit.signals == "rows"
    has_model = context.store().model_path(run.id) is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = dict(figures.KINDS)
        if not (has_model and rows):
            del kinds["partial"]
        kind = linked_choice("Show", kinds, "correlation", key="kind")
        orders: dict[str, str] = {
            name: covariance_data.AXES_OF_ORDERS[name]
            for name in ORDERS
            if rows and (has_model or name != "similarity")
        }
        orders = orders or {"index": "as numbered"}
        order = linked_choice(
            "Order of the titles", orders, next(iter(orders)), key="order", box=True, width=240
        )
        iterations = _iterations(run.id)
        moves = kind != "partial" and order != "similarity" and bool(iterations)
        film = _film_of(run.id, iterations)
        playing.play_button(film, "overview_play", disabled=not moves or len(iterations) < 2)
    if moves:
        going = not run.ended_for_good
        plays = playing.is_playing(film)
        every = playing.SECONDS if plays else POLL_SECONDS if going else None
        st.fragment(_film, run_every=every)(run.id, kind, order, going, plays)
    elif has_model:
        model = context.model_of(run.id)
        key = covariance_data.key_of(run.id)
        picture, items = covariance_data.model_picture(key, model, kind, order)
        titles = covariance_data.titles(key, model)
        labels = figures.run_labels([titles[m] for m in items], len(picture))
        left, right = st.columns([5, 2], gap="medium")
        _draw(left, right, picture, labels, kind, order, model.iteration, None)
        _file(picture, labels, f"{kind}-{order}")
        fact("Computed from the final model; the fit keeps no pictures of this one on its way.")


def _film_of(id: str, iterations: list[int]) -> Film:
    """The pictures of a run as a film."""
    first, last = (iterations[0], iterations[-1]) if iterations else (1, 1)
    help = ("Watch Σ form, iteration by iteration.", "", "")
    return Film(f"overview.{id}", SHOWN, last, first, last, tuple(iterations), help)


def _iterations(id: str) -> list[int]:
    """The iterations of the last repetition that has pictures."""
    index = context.store().pictures(id)
    return [iteration for repetition, iteration in index if repetition == index[-1][0]]


@guard()  # a repeated fragment is outside the page's own guard
def _film(id: str, kind: str, order: str, going: bool, plays: bool) -> None:
    """The slider and the picture at its iteration.

    going : whether the fit was under way when the page was drawn; a page that has
        noticed the end offers more, and repeats no longer. plays : likewise of the film.
    """
    if going and context.store().run(id).ended_for_good:
        st.rerun(scope="app")
    index = context.store().pictures(id)
    repetition = index[-1][0]
    iterations = _iterations(id)
    last = iterations[-1]
    shown = None if link_state.unset(SHOWN) else st.session_state[SHOWN]
    if shown is None and (asked := link_state.recall("iteration", id)).isdecimal():
        shown = int(asked)
    if shown not in iterations or shown == st.session_state.get(f"{LATEST}_{id}"):
        shown = last  # whoever looks at the newest goes on doing so
    st.session_state[f"{LATEST}_{id}"] = last
    st.session_state[SHOWN] = shown
    film = _film_of(id, iterations)
    if playing.advance(film) or playing.is_playing(film) != plays:
        st.rerun(scope="app")
    shown = st.session_state[SHOWN]
    left, right = st.columns([5, 2], gap="medium")
    if len(iterations) > 1:
        right.select_slider("Iteration", iterations, key=SHOWN)
        shown = st.session_state[SHOWN]
    link_state.keep("iteration", "" if shown == last else str(shown), id)
    folder = current_folder()
    picture, items = covariance_data.kept_picture(folder, id, repetition, shown, kind, order)
    final, _ = covariance_data.kept_picture(folder, id, repetition, last, kind, order)
    labels = _labels(id, items, len(picture))
    _draw(left, right, picture, labels, kind, order, shown, figures.color_limit(final))
    if not going and not plays:  # an update would swallow the click
        _file(picture, labels, f"{kind}-{order}-{shown}")


def _file(picture: covariance_data.Floats, labels: list[str], name: str) -> None:
    """The picture's numbers, with what each row and column stands for."""

    def table() -> bytes:
        plain = [html.unescape(label) for label in labels]
        frame = pd.DataFrame(picture, columns=plain)
        frame.insert(0, "Titles", plain)
        return to_csv(frame)

    download("This picture as CSV", table, f"{name}.csv", "text/csv", key="overview_csv")


def _labels(id: str, items: npt.NDArray[np.int64], size: int) -> list[str]:
    """What each pixel stands for; numbers only while there is no model with titles."""
    if context.store().model_path(id) is None:
        return figures.run_labels(["…"] * len(items), size)
    model = context.model_of(id)
    if model.layout.kind != "rows":
        return figures.run_labels([str(item + 1) for item in items], size)
    titles = covariance_data.titles(covariance_data.key_of(id), model)
    return figures.run_labels([titles[item] for item in items], size)


def _draw(
    left: DeltaGenerator,
    right: DeltaGenerator,
    picture: covariance_data.Floats,
    labels: list[str],
    kind: str,
    order: str,
    iteration: int,
    limit: float | None,
) -> None:
    axis = covariance_data.AXES_OF_ORDERS.get(order, "as numbered")
    figure = figures.overview_figure(
        picture,
        labels,
        kind=kind,
        axis=f"titles, {axis}",
        limit=limit,
        dark=is_dark(),
        revision=f"{kind} {order}",
    )
    words = figures.describe_overview(picture, kind, axis, iteration)
    with left, picture_room():
        chart(figure, words, key="overview_chart", height="stretch")
    with right:
        st.markdown(MEANING[kind])
        st.latex(FORMULA)
        fact(words)
        fact(
            "A pixel is the mean over a block of neighbouring titles; point at it to see which. "
            "Colours end at the 99th percentile, so that a few large values do not drown the rest."
        )
