"""What the visitor has selected, mirrored in the URL, and the data behind it.

    chosen = context.current()            # data source, filter, protocol, seed, run
    context.choose(protocol="strong")     # changes it, here and in the URL
    table, report = context.filtered()    # the ratings that a fit would see

A value in the URL wins over the session's, so a link reproduces a view; a value equal
to its default is left out of the URL. After Back and Forward of the browser the URL is
all there is: what it does not name has its default. Caches are keyed on what the data come from and
on frozen settings, never on ratings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import pandas as pd
import streamlit as st

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.cli.older_comparisons import take_in_older
from gmc_core.data.ratings import Ratings
from gmc_core.data.readers import Loaded
from gmc_core.data.sessions import Months, Sessions, months, sessions
from gmc_core.fitting.config import EVERYONE, ExperimentConfig
from gmc_core.fitting.config import PROTOCOLS as KNOWN_PROTOCOLS
from gmc_core.fitting.preparing import Prepared, make_split
from gmc_core.fitting.records import IterationRecord
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.protocol.filters import Filter, FilterReport, apply_filter
from gmc_core.protocol.held_out_options import PUBLISHED
from gmc_core.protocol.splits import Split
from gmc_core.runs.store import Run, Store
from gmc_dashboard.data.overview import titles_table
from gmc_dashboard.shared import history, sources
from gmc_dashboard.shared.places import home_folder
from gmc_dashboard.shared.units import PROTOCOLS

_STATE = "gmc_dashboard.selection"
NO_RUN = "new"  # in a link: no run, whatever the session has selected
LARGEST_COUNT = 2**31 - 1  # also of a seed; every widget can show it

# The choices of the start page's button: the embedded sample under the paper's protocol.
SAMPLE: dict[str, Any] = {
    "data": "sample",
    "min_user": 20,
    "min_item": 2,
    "max_items": 0,
    "protocol": "weak",
    "seed": 0,
    "run": "",
    "held": "",
}


@dataclass(frozen=True)
class Selection:
    """What is selected; the defaults are the sample and the paper's choices.

    data : "sample", a name of the registry, or the token of a person's own file.
    min_user, min_item, max_items : the filter; max_items 0 keeps all.
    protocol : any but "pair". seed : of the split.
    held : what random and latest hold out: "10%", "5-folds", "published", "3" ratings; "" for
        the usual.
    run : id of the current run, "" for none.
    """

    data: str = "sample"
    min_user: int = 20
    min_item: int = 2
    max_items: int = 0
    protocol: str = "weak"
    seed: int = 0
    run: str = ""
    held: str = ""

    @property
    def drawing(self) -> dict[str, Any]:
        """What the protocol holds out, as the fields of an experiment; see ``held``."""
        held = self.held
        if self.protocol == "random":
            if held == PUBLISHED:
                return {"folds": held}
            if held.endswith("-folds"):
                return {"folds": int(held.removesuffix("-folds"))}
        if self.protocol in EVERYONE and held.endswith("%"):
            return {"held_out": float(held[:-1]) / 100}
        if self.protocol == "latest" and held.isdecimal():
            return {"last": int(held)}
        return {}

    @property
    def filter(self) -> Filter:
        """The filter as the core wants it."""
        return Filter(self.min_user, self.min_item, self.max_items or None)


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= LARGEST_COUNT:
        raise ValueError(text)
    return value


def _protocol(text: str) -> str:
    if text not in KNOWN_PROTOCOLS or text == "pair":
        raise ValueError(text)
    return text


def held_text(text: str) -> str:
    """A text that says what is held out, if it does with some protocol.

    Raises
    ------
    ValueError
        If it does not.
    """
    if not text:
        return text
    if re.fullmatch(r"published|[0-9]{1,9}(-folds)?|[0-9]{1,3}(\.[0-9]{1,6})?%", text):
        for protocol in EVERYONE:
            drawing = Selection(protocol=protocol, held=text).drawing
            with suppress(ConfigError):
                if drawing and ExperimentConfig(protocol=protocol, **drawing):
                    return text
    raise ValueError(text)


_PARSERS: dict[str, Callable[[str], Any]] = {
    "data": str,
    "min_user": _count,
    "min_item": _count,
    "max_items": _count,
    "protocol": _protocol,
    "seed": _count,
    "held": held_text,
    "run": lambda text: "" if text == NO_RUN else text,
}


def current() -> Selection:
    """The selection, from the URL where it speaks, else from the session.

    Also writes the selection into the URL, so every page that asks is shareable.
    """
    kept: Selection = st.session_state.get(_STATE, Selection())
    chosen = Selection() if history.returned() else kept
    for name, parse in _PARSERS.items():
        if name in st.query_params:
            try:
                chosen = replace(chosen, **{name: parse(st.query_params[name])})
            except ValueError:
                del st.query_params[name]
    st.session_state[_STATE] = chosen
    _mirror(chosen)
    return chosen


def choose(**changes: Any) -> Selection:
    """Change part of the selection; takes effect in the URL at once."""
    chosen = replace(current(), **changes)
    st.session_state[_STATE] = chosen
    _mirror(chosen)
    return chosen


def select_run(id: str = "") -> None:
    """Make a run the current one, "" for none; for a widget's callback."""
    choose(run=id)


def _mirror(chosen: Selection) -> None:
    for field in fields(Selection):
        value = getattr(chosen, field.name)
        if value == field.default:
            if field.name in st.query_params:
                del st.query_params[field.name]
        elif st.query_params.get(field.name) != str(value):
            st.query_params[field.name] = str(value)


def link_params(**changes: Any) -> dict[str, str]:
    """The URL parameters of the selection with changes, for ``st.page_link``."""
    chosen = asdict(replace(current(), **changes))
    return {
        field.name: str(chosen[field.name])
        for field in fields(Selection)
        if chosen[field.name] != field.default
    }


# Data ------------------------------------------------------------------------------


def loaded(data: str | None = None) -> Loaded:
    """The ratings of a data source (default: the selected one) with their report.

    Raises
    ------
    DataError, FetchError
        If it cannot be read, or was not downloaded yet; see :mod:`gmc_dashboard.shared.sources`.
    """
    data = current().data if data is None else data
    return _loaded(data, sources.stamp(data))


@st.cache_resource(max_entries=3, show_spinner="Reading the ratings …", show_time=True)
def _loaded(data: str, stamp: str) -> Loaded:
    return sources.load(data)


def titles() -> pd.DataFrame:
    """All items of the selected data, the most rated first; see ``overview.titles_table``."""
    data = current().data
    return _titles(data, sources.stamp(data))


@st.cache_resource(max_entries=2, show_spinner="Counting the titles …", show_time=True)
def _titles(data: str, stamp: str) -> pd.DataFrame:
    return titles_table(_loaded(data, stamp).ratings)


def timing() -> tuple[Sessions, Months]:
    """The sessions and months of the selected data, which have times."""
    data = current().data
    return _timing(data, sources.stamp(data))


@st.cache_resource(max_entries=2, show_spinner="Counting the sessions …", show_time=True)
def _timing(data: str, stamp: str) -> tuple[Sessions, Months]:
    ratings = _loaded(data, stamp).ratings
    return sessions(ratings), months(ratings)


def filtered(chosen: Selection | None = None) -> tuple[Ratings, FilterReport]:
    """The ratings after the filter, and what it took away.

    Raises
    ------
    DataError
        If they cannot be read, or the filter leaves nothing.
    """
    chosen = chosen or current()
    return _filtered(
        chosen.data,
        sources.stamp(chosen.data),
        chosen.min_user,
        chosen.min_item,
        chosen.max_items,
    )


def leaves_ratings() -> bool:
    """Whether the filter leaves any of the ratings, which can be read."""
    try:
        filtered()
    except DataError:
        return False
    return True


@st.cache_resource(max_entries=4, show_spinner="Filtering the ratings …", show_time=True)
def _filtered(
    data: str, stamp: str, min_user: int, min_item: int, max_items: int
) -> tuple[Ratings, FilterReport]:
    settings = Filter(min_user, min_item, max_items or None)
    return apply_filter(_loaded(data, stamp).ratings, settings)


def split(chosen: Selection | None = None) -> Split:
    """The first repetition's split under the selected filter, protocol and seed."""
    chosen = chosen or current()
    filter_key = (chosen.min_user, chosen.min_item, chosen.max_items)
    drawn = (chosen.protocol, chosen.held if chosen.drawing else "", chosen.seed)
    return _split(chosen.data, sources.stamp(chosen.data), filter_key, drawn)


@st.cache_resource(max_entries=4, show_spinner="Splitting the ratings …", show_time=True)
def _split(
    data: str, stamp: str, filter_key: tuple[int, int, int], drawn: tuple[str, str, int]
) -> Split:
    ratings, report = _filtered(data, stamp, *filter_key)
    protocol, held, seed = drawn
    drawing = Selection(protocol=protocol, held=held).drawing
    config = ExperimentConfig(protocol=protocol, seed=seed, **drawing)  # type: ignore[arg-type]
    return make_split(config, Prepared(ratings, None, report), seed)


def current_config(**changes: Any) -> ExperimentConfig:
    """The selection as an experiment's configuration.

    changes : further fields of :class:`ExperimentConfig`, such as ``fit``.
    """
    chosen = current()
    path, reading = sources.location(chosen.data)
    return ExperimentConfig(
        **{
            "data": path,
            "reading": reading,
            "protocol": chosen.protocol,
            "filter": chosen.filter,
            "seed": chosen.seed,
            **({} if "protocol" in changes else chosen.drawing),
            **changes,
        }
    )


def protocol_words(chosen: Selection | None = None) -> str:
    """The selected protocol and what it holds out, in the middle of a sentence."""
    chosen = chosen or current()
    words = PROTOCOLS[chosen.protocol]
    config = ExperimentConfig(protocol=chosen.protocol, **chosen.drawing)  # type: ignore[arg-type]
    found = {**chosen.drawing, **config.usual_held_out}
    if "held_out" in found:
        of = "all ratings" if chosen.protocol == "random" else "each user’s ratings"
        return f"{words} of {100 * found['held_out']:g} % of {of}"
    if "folds" in found:
        return f"{words}, {config.split_words(chosen.seed)}"
    if "last" in found:
        many = "rating" if found["last"] == 1 else f"{found['last']:,} ratings"
        return f"{words}, each user’s last {many}"
    return words


# Runs ------------------------------------------------------------------------------


def store() -> Store:
    """The run store, one for the whole process.

    Raises
    ------
    StoreError
        If its folder cannot be used.
    """
    return _store(str(home_folder()))


@st.cache_resource(show_spinner=False)
def _store(folder: str) -> Store:
    opened = Store(folder)
    take_in_older(opened)
    return opened


def curves_of(run: Run) -> list[list[IterationRecord]]:
    """The records of each repetition."""
    curves: list[list[IterationRecord]] = [[] for _ in range(run.repetitions)]
    for repetition, record in store().records(run.id):
        curves[repetition].append(record)
    return curves


def current_run() -> str | None:
    """The id of the current run, None if none is selected."""
    return current().run or None


def model_of(run: str) -> GaussianModel:
    """The fitted model of a run.

    Raises
    ------
    StoreError, ModelFileError
        If the run does not exist, or has no model (yet) that can be read.
    """
    return _model_of(str(store().path), run, model_stamp(run))


def model_stamp(run: str) -> int:
    """Changes when a run that goes on writes a newer model to the same place; 0: no model."""
    path = store().model_path(run)
    try:
        return path.stat().st_mtime_ns if path is not None else 0
    except OSError:  # deleted meanwhile
        return 0


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def _model_of(folder: str, run: str, stamp: int) -> GaussianModel:
    return _store(folder).model(run)


def run_label(run: Run) -> str:
    """A run's name; in lists see :func:`gmc_core.runs.store.naming.distinct_names`."""
    return run.title


def run_summary(run: Run) -> str:
    """State and result of a run in a few words."""
    nmae = (run.summary or {}).get("nmae")
    if run.kind == "sweep":
        return f"{run.state}, {run.iteration} of {sum(run.children.values())} fits"
    if run.comparison is not None:
        done = f"{run.state}, {run.iteration} of {run.comparison.total} fits"
        return done if nmae is None else f"{done}, lowest NMAE {nmae:.4f}"
    if run.choosing:
        return f"{run.state}, settings not chosen yet"
    done = f"{run.state}, {run.iteration} iterations"
    return done if nmae is None else f"{done}, NMAE {nmae:.4f}"
