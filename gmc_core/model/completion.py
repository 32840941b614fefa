"""The completed table: every entry filled, streamed so that it is never held whole.

Observed entries keep their observed value. All others are the model's predictions, see
:mod:`gmc_core.model.answers`, and with them, on request, the posterior standard deviation of a
rating (for ordered ratings of a latent response); an observed entry is known, so its standard
deviation is 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.base.table_files import TableWriter, format_of, path_beside
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.covariance import FactoredCovariance, low_rank_of
from gmc_core.gaussian.folding import explained, fold_in
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.mixture import mixture_e_step
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Signals
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.mixture_model import MixtureModel
from gmc_core.model.two_sided_model import TwoSidedModel

Floats = npt.NDArray[np.float64]
TableLayout = Literal["wide", "long"]

BLOCK_BYTES = 32_000_000


@dataclass(frozen=True, eq=False)
class Block:
    """Users ``start`` to ``stop`` of the completed table.

    values : (users, items). observed : mask of the entries that were given.
    sd : posterior standard deviations of a rating or latent response, None unless asked for.
    low, high : ends of the intervals in ratings, None unless asked for; an observed entry is
        its own.
    """

    start: int
    stop: int
    values: Floats
    observed: npt.NDArray[np.bool_]
    sd: Floats | None
    low: Floats | None = None
    high: Floats | None = None

    @property
    def more(self) -> dict[str, Floats]:
        """What was asked for besides the values, by name."""
        found = {"sd": self.sd, "low": self.low, "high": self.high}
        return {name: values for name, values in found.items() if values is not None}


@dataclass(frozen=True)
class Completed:
    """What was written. files : the table, and with a wide layout those of ``Block.more``."""

    users: int
    items: int
    observed: int
    files: tuple[Path, ...]


def complete(
    model: GaussianModel,
    out: str | os.PathLike[str],
    *,
    format: str | None = None,
    sd: bool = False,
    interval: bool = False,
    layout: TableLayout = "wide",
    projected: bool = False,
    titles: bool = False,
    on_progress: Callable[[int, int], object] | None = None,
    team: ThreadPool | None = None,
) -> Completed:
    """Write the completed table of a model's training users.

    Parameters
    ----------
    format : "csv" or "parquet"; by the suffix of ``out`` if None.
    sd : also write standard deviations: in the long layout as a column, in the
        wide one as a second file, ``name.sd.csv`` beside ``name.csv``.
    interval : also write the ends of the interval of every entry, in the same two ways, as
        ``low`` and ``high``; :func:`gmc_core.model.calibration.note_of` says which interval it is.
    layout : "wide", a row per user and a column per item, or "long", a row per
        entry (user, item, rating, observed).
    projected : predictions to the nearest value of the scale.
    titles : name items by title and id instead of by id.
    on_progress : called with (users done, users in all).

    Raises
    ------
    ConfigError
        If the model has no ratings, or the format is unknown.
    ResourceError
        If the file cannot be written.
    """
    if layout not in ("wide", "long"):
        raise ConfigError(f"The layout of a table is wide or long, not {layout!r}.")
    path, kind = Path(out), format_of(out, format)
    ratings = _ratings_of(model)
    names = _names(model, titles)
    users = ratings.users.ids.tolist()
    # In the long layout a block is also held as lists of labels, which are larger.
    block_bytes = BLOCK_BYTES // 16 if layout == "long" else BLOCK_BYTES
    blocks = completed_blocks(
        model, sd=sd, interval=interval, projected=projected, team=team, block_bytes=block_bytes
    )
    extra = [*(["sd"] if sd else []), *(["low", "high"] if interval else [])]
    files = [path]
    with ExitStack() as stack:
        if layout == "long":
            numbers = ["rating", "observed", *extra]
            writer = stack.enter_context(TableWriter(path, ["user", "item"], numbers, kind))
        else:
            first = "user" if "user" not in names else "user id"
            writer = stack.enter_context(TableWriter(path, [first], names, kind))
            beside = {}
            for name in extra:
                files.append(path_beside(path, name))
                beside[name] = stack.enter_context(TableWriter(files[-1], [first], names, kind))
        for block in blocks:
            own = users[block.start : block.stop]
            if layout == "long":
                _write_long(writer, own, names, block)
            else:
                writer.write([own], block.values)
                for name, values in block.more.items():
                    beside[name].write([own], values)
            if on_progress is not None:
                on_progress(block.stop, len(users))
    return Completed(len(users), len(names), len(ratings), tuple(files))


def completed_blocks(
    model: GaussianModel,
    *,
    sd: bool = False,
    interval: bool = False,
    projected: bool = False,
    team: ThreadPool | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Block]:
    """The completed table in blocks of users, for signals of every kind."""
    ratings, team = _ratings_of(model), team or ThreadPool()
    step = max(1, block_bytes // (8 * max(ratings.n_items, 1)))
    signals = model.signals_of(ratings)
    if model.layout.kind == "blocks":
        height = model.layout.block[0]
        step = max(1, step // height) * height
    elif model.layout.kind == "columns" and (sd or interval):
        # Every block factorizes all signals again, so few blocks are better.
        step *= 8
    for start, stop in spans(ratings.n_users, step):
        values, variances = _predict_users(model, signals, start, stop, sd or interval, team)
        deviation = None if variances is None else np.sqrt(variances)
        shown = model.answers(values, deviation)
        low, high = shown.interval() if interval else (None, None)
        values = shown.rating if projected else shown.prediction
        rows = slice(ratings.indptr[start], ratings.indptr[stop])
        where = (ratings.rows[rows] - start, ratings.indices[rows])
        values[where] = ratings.values[rows]
        observed = np.zeros(values.shape, bool)
        observed[where] = True
        if deviation is not None:
            deviation[observed] = 0.0
        for end in (low, high):
            if end is not None:
                end[observed] = values[observed]
        yield Block(start, stop, values, observed, deviation if sd else None, low, high)


def _predict_users(
    model: GaussianModel, signals: Signals, start: int, stop: int, sd: bool, team: ThreadPool
) -> tuple[Floats, Floats | None]:
    """Centres of the beliefs and variances of a new observation, (stop - start, items)."""
    layout = model.layout
    if layout.kind == "columns":
        users = np.arange(start, stop)
        values, variances = _estimates(model, signals, sd, team, users)
        return values.T.copy(), None if variances is None else variances.T.copy()
    if layout.kind == "rows":
        own = signals.take(np.arange(start, stop))
        return _estimates(model, own, sd, team)
    (height, width), per_row = layout.block, -(-layout.items // layout.block[1])
    bands = (start // height, -(-stop // height))
    own = signals.take(np.arange(bands[0] * per_row, bands[1] * per_row))
    values, variances = _estimates(model, own, sd, team)

    def unfold(flat: Floats) -> Floats:
        parts = flat.reshape(bands[1] - bands[0], per_row, height, width)
        table = parts.transpose(0, 2, 1, 3).reshape(-1, per_row * width)
        return table[: stop - start, : layout.items].copy()

    return unfold(values), None if variances is None else unfold(variances)


def _estimates(
    model: GaussianModel,
    signals: Signals,
    sd: bool,
    team: ThreadPool,
    only: npt.NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats | None]:
    """As :func:`estimates`, of one Gaussian or of several."""
    noise = model.noise
    if not isinstance(model, MixtureModel):
        values, variances = estimates(
            signals, model.gaussian, noise, sd=sd, team=team, only=only, ordinal=model.ordinal
        )
        if variances is not None and isinstance(model, TwoSidedModel):
            variances += model.variances(signals)
        return values, variances
    found = mixture_e_step(signals, model.mixture, noise, team)
    shares = found.responsibilities.T[:, :, None]
    mean: Floats = np.zeros(())
    second: Floats = np.zeros(())
    for share, weights, component in zip(
        shares, found.weights, model.mixture.components, strict=True
    ):
        values, variances = _moments(signals, weights, component, noise, sd, team, only)
        mean = mean + share * values
        if variances is not None:
            second = second + share * (variances + values**2)
    return mean, np.maximum(second - mean**2, 0.0) if sd else None


def estimates(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    *,
    sd: bool,
    team: ThreadPool,
    only: npt.NDArray[np.int64] | None = None,
    ordinal: OrdinalScale | None = None,
) -> tuple[Floats, Floats | None]:
    """f̃ of some signals, and the variance of a new observation of each coordinate.

    ordinal : given where the observations are ordered ratings; f̃ is then of latent responses.
    only : coordinates wanted; None for all. Shapes (signals, coordinates).
    """
    weights = fold_in(signals, gaussian, noise, team, ordinal)
    return _moments(signals, weights, gaussian, noise, sd, team, only)


def _moments(
    signals: Signals,
    weights: npt.NDArray[np.floating],
    gaussian: Gaussian,
    noise: Noise,
    sd: bool,
    team: ThreadPool,
    only: npt.NDArray[np.int64] | None,
) -> tuple[Floats, Floats | None]:
    """The same from the weights a_i (nnz,) of an E-step."""
    matrix = signals.matrix(weights)
    covariance = gaussian.covariance
    coordinates = np.arange(signals.dimension) if only is None else only
    if isinstance(covariance, FactoredCovariance):
        shares = (matrix @ covariance.factor) @ covariance.factor[coordinates].T
        own = matrix if only is None else matrix[:, only]
        shares = shares + covariance.epsilon * own.toarray()
    else:
        columns = covariance.rows(coordinates).T if only is not None else covariance.matrix
        shares = matrix @ columns
    values = shares.astype(np.float64) + gaussian.mean[coordinates]
    if signals.covariates is not None and gaussian.coefficients is not None:
        values += signals.covariates @ gaussian.coefficients[coordinates].T
    if not sd:
        return values, None
    variances = np.empty(values.shape)
    prior, low_rank = covariance.diagonal()[coordinates], low_rank_of(covariance)
    with team.whole():
        for signal in range(signals.count):
            rows = slice(signals.indptr[signal], signals.indptr[signal + 1])
            observed = signals.indices[rows]
            if low_rank is not None:
                variances[signal] = low_rank.posterior_variances(
                    observed, float(noise.array[0, 0]), coordinates
                )
            elif len(observed):
                cross = covariance.rows(observed)[:, coordinates].astype(np.float64)
                times = None if signals.times is None else signals.times[rows]
                variances[signal] = prior - explained(gaussian, noise, observed, cross, times)
            else:
                variances[signal] = prior
    np.maximum(variances, 0.0, out=variances)
    return values, variances + noise.total_variances(coordinates)


def _write_long(writer: TableWriter, users: list[object], names: list[str], block: Block) -> None:
    """A row per entry, in the order of users and then of items."""
    columns = [block.values.ravel(), block.observed.ravel().astype(np.float64)]
    columns += [values.ravel() for values in block.more.values()]
    labels: list[list[object]] = [[user for user in users for _ in names], [*names] * len(users)]
    writer.write(labels, np.stack(columns, axis=1))


def _names(model: GaussianModel, titles: bool) -> list[str]:
    """Distinct names of the items."""
    ids = [str(value) for value in model.items.ids.tolist()]
    if not titles:
        return ids
    known = model.item_info.titles
    return [f"{title} [{id}]" if title else id for title, id in zip(known, ids, strict=True)]


def _ratings_of(model: GaussianModel) -> Ratings:
    if model.ratings is None:
        raise ConfigError(
            "This model was saved without its training ratings, so there is no table to complete; "
            "save it with them."
        )
    return model.ratings
