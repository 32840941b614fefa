"""Cached answers of one run's model for the Covariance page.

Keyed on the run and when its model was written, never on arrays: a run that goes on
writes another model, which may have the same number of iterations in the next repetition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import streamlit as st

from gmc_core.model import analysis, item_orders, pictures, taste
from gmc_core.model import title_map as maps
from gmc_core.model.gaussian_model import GaussianModel
from gmc_dashboard.shared import context

Floats = npt.NDArray[np.floating]
ModelKey = tuple[str, int]

AXES_OF_ORDERS = {
    "popularity": "most rated first",
    "genre": "by genre",
    "year": "oldest first",
    "title": "alphabetically",
    "similarity": "similar titles side by side",
}
SIZE = pictures.BINS


def key_of(run: str) -> ModelKey:
    """What identifies the model of a run in the caches."""
    return run, context.model_stamp(run)


@st.cache_data(max_entries=40, show_spinner=False)
def kept_picture(
    folder: str, run: str, repetition: int, iteration: int, kind: str, order: str
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """A picture that the run kept, and the items in its order."""
    picture = context.store().picture(run, iteration, repetition)
    assert picture is not None
    return picture.matrix(kind, order), picture.order_items[order]  # type: ignore[arg-type]


@st.cache_data(max_entries=12, show_spinner="Computing the picture …")
def model_picture(
    key: ModelKey, _model: GaussianModel, kind: str, order: str
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """A picture of the final model, in kinds and orders that runs do not keep."""
    items = item_orders.ordered(_model, order)  # type: ignore[arg-type]
    return item_orders.pooled(_model, items, SIZE, kind), items  # type: ignore[arg-type]


@st.cache_resource(max_entries=4, show_spinner=False)
def titles(key: ModelKey, _model: GaussianModel) -> list[str]:
    """(N,) titles by item position; shared, not to be changed."""
    return [_model.title(item) for item in range(len(_model.items))]


@st.cache_data(max_entries=20, show_spinner=False)
def vocabulary(key: ModelKey, _model: GaussianModel) -> str:
    """What item positions and ratings mean: equal for models of the same items and scale."""
    scale = (_model.scale.low, _model.scale.high, _model.scale.step)
    text = repr((_model.items.ids.tolist(), scale))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@st.cache_resource(max_entries=4, show_spinner=False)
def by_popularity(key: ModelKey, _model: GaussianModel) -> list[int]:
    """Item positions, most rated first; shared, not to be changed."""
    return [int(item) for item in item_orders.ordered(_model, "popularity")]


@st.cache_data(max_entries=24, show_spinner="Computing …")
def block(
    key: ModelKey, _model: GaussianModel, items: tuple[int, ...], kind: str, order: str
) -> tuple[list[int], Floats]:
    """Items in ``order`` (also "given"), and Σ between them as ``kind``."""
    chosen: Sequence[int] | npt.NDArray[np.int64] = items
    if order != "given":
        chosen = item_orders.ordered(_model, order, items)  # type: ignore[arg-type]
    placed = [int(item) for item in chosen]
    return placed, analysis.submatrix(_model, placed, kind)  # type: ignore[arg-type]


@st.cache_data(max_entries=4, show_spinner="Computing the leading eigenvectors …")
def spectrum(key: ModelKey, _model: GaussianModel, k: int) -> taste.Spectrum:
    """The leading eigenpairs of the final Σ."""
    return taste.spectrum(_model, k)


@st.cache_data(max_entries=12, show_spinner="Drawing the map …")
def title_map(key: ModelKey, _model: GaussianModel, count: int) -> maps.TitleMap:
    """The map of the ``count`` most rated titles, these first."""
    return maps.title_map(_model, item_orders.ordered(_model, "popularity")[:count])
