"""Cached answers of one run's model for the Recommend page; keyed as in ``covariance.data``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import streamlit as st

from gmc_core.data.ratings import Ratings
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.model.completion import complete
from gmc_core.model.gaussian_model import GaussianModel, Posterior
from gmc_core.protocol.splits import Split
from gmc_core.runs.game import Deck
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.covariance.data import ModelKey
from gmc_dashboard.recommend.one_user import People
from gmc_dashboard.shared import context

RatingsKey = tuple[tuple[int, float], ...]


def fold_in(
    run: Run,
    model: GaussianModel,
    ratings: dict[int, float],
    covariates: npt.NDArray[np.float64] | None = None,
    times: Mapping[int, float] | None = None,
) -> Posterior:
    """The belief about a user with these ratings, by fold-in; nothing is trained.

    covariates : (G,) what is known of the user besides, see
        :meth:`gmc_core.model.gaussian_model.GaussianModel.covariates_of`.
    times : when those of the ratings that are the data's own were given, by item.
    """
    known = None if covariates is None else tuple(covariates.tolist())
    given = tuple(sorted(ratings.items()))
    when = tuple(times.get(item, math.nan) for item, _ in given) if times else None
    return _fold_in(covariance_data.key_of(run.id), model, given, known, when)


# A posterior of n ratings holds n × N numbers; two, so that filters do not solve again.
@st.cache_resource(max_entries=2, show_spinner=False)
def _fold_in(
    key: ModelKey,
    _model: GaussianModel,
    ratings: RatingsKey,
    known: tuple[float, ...] | None,
    when: tuple[float, ...] | None,
) -> Posterior:
    items = np.array([item for item, _ in ratings], dtype=np.int64)
    values = np.array([value for _, value in ratings], dtype=np.float64)
    return _model.posterior(items, values, known, when)


def trained_people(run: Run, model: GaussianModel) -> People | None:
    """The training users, with the ratings that the fit did not see."""
    return _trained(str(context.store().path), covariance_data.key_of(run.id), model)


@st.cache_resource(max_entries=4, show_spinner=False)
def _trained(folder: str, key: ModelKey, _model: GaussianModel) -> People | None:
    store = context.store()
    run = store.run(key[0])
    # A finished run's model is that of the last repetition. One that stopped before has the
    # model of the repetition in progress, whose held-out ratings are not written down yet.
    held_out = store.held_out(run.id, run.repetitions - 1)
    hides = run.config.protocol not in ("none", "strong")  # ratings of training users
    return People.trained(_model, held_out, hidden_known=held_out is not None or not hides)


def novel_people(run: Run, model: GaussianModel) -> People | None:
    """The users of a strong split that the model has never seen."""
    # A stopped run's model is that of the repetition in progress.
    return People.unseen(model, _split(run.id, run.config.seeds[run.repetition]))


@st.cache_resource(max_entries=2, show_spinner="Drawing the split again …")
def _split(run: str, seed: int) -> Split:
    config = context.store().run(run).config
    return make_split(config, prepare(config), seed)


def deck_of(run: Run, model: GaussianModel, query: Ratings | None) -> Deck | None:
    """The run's held-out ratings as a guessing game; None if they are not written down.

    query : the query set of a strong split; None where training users are tested.
    """
    return _deck(str(context.store().path), covariance_data.key_of(run.id), model, query)


@st.cache_resource(max_entries=4, show_spinner=False)
def _deck(folder: str, key: ModelKey, _model: GaussianModel, _query: Ratings | None) -> Deck | None:
    store = context.store()
    run = store.run(key[0])
    # The model is that of the last repetition, as for the training users.
    held_out = store.held_out(run.id, run.repetitions - 1)
    if held_out is None or _model.ratings is None:
        return None
    return Deck.of(held_out, _model.ratings, _query)


def completed_table(model: GaussianModel) -> bytes:
    """The completed table of all training users, as the bytes of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "completed.parquet"
        complete(model, path)
        return path.read_bytes()
