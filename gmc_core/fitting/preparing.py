"""The data of an experiment, from its configuration: read, filtered, split and described.

ratings → filter → split; the fits are :mod:`gmc_core.fitting.experiment`'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gmc_core.data.datasets import load_named
from gmc_core.data.downloads import Progress
from gmc_core.data.rating_times import times_sha256
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import DelimitedOptions, Loaded, LoadReport, load
from gmc_core.data.readers.beside import names_beside
from gmc_core.data.readers.source import open_source
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.provenance import (
    check_files,
    check_ratings,
    check_times,
    file_hashes,
    of_data,
    same_hash,
)
from gmc_core.protocol.filters import FilterReport, apply_filter
from gmc_core.protocol.latest_splits import latest_split
from gmc_core.protocol.random_splits import check_seeds, random_split
from gmc_core.protocol.splits import Split, no_split, pair_split, strong_split, weak_split


@dataclass(frozen=True, eq=False)
class Prepared:
    """Loaded and filtered data of an experiment.

    ratings : after the filter. pair : the explicit split of the "pair" protocol.
    files : role → SHA-256 of each file of data that was read.
    reading : options that read the data in the same way whatever would be found in them.
    drawn_by : hash of what decides the split besides ratings and seed: times, published folds.
    """

    ratings: Ratings
    load_report: LoadReport | None
    filter_report: FilterReport | None
    pair: Split | None = None
    files: dict[str, str] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    drawn_by: str = ""

    @property
    def data_sha256(self) -> str:
        """Hash of the ratings that the experiment sees."""
        if self.pair is None and not self.drawn_by:
            return self.ratings.sha256
        if self.pair is None:
            return hashlib.sha256(f"{self.ratings.sha256}\n{self.drawn_by}".encode()).hexdigest()
        digest = hashlib.sha256(self.ratings.sha256.encode())
        for array in (self.pair.test_users, self.pair.test_items, self.pair.test_values):
            digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def times_sha256(self) -> str:
        """Hash of when the ratings were given, those held out by a file included; "" if none
        is known."""
        if self.pair is None:
            return self.ratings.times_sha256
        return times_sha256(self.ratings.times, self.pair.test_times)


def prepare(
    config: ExperimentConfig,
    ratings: Ratings | None = None,
    *,
    progress: Progress | None = None,
    on_read: Progress | None = None,
    on_ratings: Callable[[Ratings], object] | None = None,
) -> Prepared:
    """Load (unless ``ratings`` are given) and filter the data of an experiment.

    progress : told of a download, see :func:`gmc_core.data.datasets.fetch`.
    on_read : told of the reading of a large file, see :func:`gmc_core.data.readers.load`.
    on_ratings : called with the ratings before the filter; what it raises ends this.

    Raises
    ------
    GmcError
        If the data cannot be read, are not those expected, nothing is left of them, no error
        could be measured, or a repetition has no published fold.
    """
    files = file_hashes(config)
    check_files(config, files)
    if config.protocol == "pair":
        prepared = _prepare_pair(config, of_data(files), on_read)
        if on_ratings is not None:
            on_ratings(prepared.ratings)
    else:
        report, reading = None, dict(config.reading)
        if ratings is None:
            reading = split_reading(config.reading)
            loaded = load_named(config.data, progress=progress, on_read=on_read, **reading)
            ratings, report, reading = loaded.ratings, loaded.report, loaded.report.reading
            if "data" not in files:  # downloaded just now
                files = file_hashes(config)
                check_files(config, files)
        if on_ratings is not None and len(ratings):
            on_ratings(ratings)
        filtered, filter_report = apply_filter(ratings, config.filter)
        check_seeds(config.folds, config.seeds, filtered)
        if config.protocol != "none":
            _ = filtered.scale.nmae_divisor  # refuses constant ratings before they are fitted
        prepared = Prepared(
            filtered,
            report,
            filter_report,
            files=of_data(files),
            reading=reading,
            drawn_by=_drawn_by(config, filtered),
        )
    prepared = _with_expected_scale(config, prepared)
    check_ratings(config, prepared.data_sha256)
    check_times(config, prepared.times_sha256)
    return prepared


def _with_expected_scale(config: ExperimentConfig, prepared: Prepared) -> Prepared:
    """The same with the scale's numbers of the type that the expected hash was made with.

    The usual scales are written with whole numbers, one that a command names (``--scale``) is read
    as floating point. They are equal, but the hash of the ratings tells them apart.
    """
    wanted, scale = config.expected.get("ratings"), prepared.ratings.scale
    if wanted is None or same_hash(prepared.data_sha256, wanted):
        return prepared
    for number in (float, _whole):
        low, high = number(scale.low), number(scale.high)
        step = None if scale.step is None else number(scale.step)
        ratings = replace(prepared.ratings, scale=RatingScale(low, high, step))
        pair = None if prepared.pair is None else replace(prepared.pair, train=ratings)
        other = replace(prepared, ratings=ratings, pair=pair)
        if same_hash(other.data_sha256, wanted):
            return other
    return prepared


def _whole(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _drawn_by(config: ExperimentConfig, ratings: Ratings) -> str:
    """Hash of what of the data decides the split besides the ratings; "" where nothing does."""
    if config.drawn_by == "times":
        return ratings.times_sha256
    if config.drawn_by == "folds" and ratings.folds is not None:
        return hashlib.sha256(ratings.folds.tobytes()).hexdigest()
    return ""


def _prepare_pair(
    config: ExperimentConfig, files: dict[str, str], on_read: Progress | None
) -> Prepared:
    """The two files of an explicit split; what both were found to be written like is kept."""
    assert config.train_file is not None and config.test_file is not None
    files_given = (config.train_file, config.test_file)
    train, test = (_as_is(name, config.reading, on_read) for name in files_given)
    split = pair_split(train.ratings, test.ratings)
    names = () if config.reading.get("beside") else names_beside(open_source(config.train_file))
    if names:
        split = replace(
            split,
            notes=(
                *split.notes,
                f"Titles and users' attributes of {' and '.join(names)}, beside the training file, "
                "are not used; --beside takes them.",
            ),
        )
    scale = split.train.scale
    _ = scale.nmae_divisor  # as above
    other = test.report.reading
    same = {k: v for k, v in train.report.reading.items() if k in other and other[k] == v}
    step = "continuous" if scale.step is None else scale.step
    reading = {**same, "low": scale.low, "high": scale.high, "step": step}
    return Prepared(split.train, None, None, split, files, reading)


def split_reading(reading: dict[str, Any]) -> dict[str, Any]:
    """``ExperimentConfig.reading`` as the keywords of :func:`gmc_core.data.readers.load`."""
    own = ("format", "duplicates", "beside")
    keywords = {key: value for key, value in reading.items() if key in own}
    options = {key: value for key, value in reading.items() if key not in keywords}
    return {**keywords, "options": DelimitedOptions(**options)} if options else keywords


def _as_is(path: str, reading: dict[str, Any], on_read: Progress | None) -> Loaded:
    return load(path, on_read=on_read, **{"format": "delimited", **split_reading(reading)})


def make_split(config: ExperimentConfig, prepared: Prepared, seed: int) -> Split:
    """The split of one repetition."""
    if prepared.pair is not None:
        return prepared.pair
    ratings = prepared.ratings
    if config.protocol == "weak":
        return weak_split(ratings, seed, config.weak_users)
    if config.protocol == "strong":
        return strong_split(ratings, seed, config.weak_users, config.strong_users)
    if config.protocol == "random":
        split = random_split(ratings, seed, config.held_out, config.folds)
    elif config.protocol == "latest":
        split = latest_split(ratings, seed, config.last, config.held_out)
    else:
        return no_split(ratings)
    return replace(split, notes=(*split.notes, _on_filter(prepared)))


def _on_filter(prepared: Prepared) -> str:
    """Whether ratings were filtered, which decides with which figures others can be compared."""
    report = prepared.filter_report
    gone = 0 if report is None else report.before.ratings - report.after.ratings
    if report is None or report.before == report.after:
        return "No user, item or rating was filtered out."
    return (
        f"The filter took {gone:,} of {report.before.ratings:,} ratings, "
        f"{report.before.users - report.after.users:,} users and "
        f"{report.before.items - report.after.items:,} items before."
    )


def describe(prepared: Prepared) -> dict[str, Any]:
    """The ``data`` part of a result, but for the hash of the noise, which is not of the data."""
    ratings = prepared.ratings
    low_high = ratings.scale.high > ratings.scale.low
    return {
        "name": ratings.name,
        "sha256": prepared.data_sha256,
        "side_sha256": ratings.side_sha256,
        "times_sha256": prepared.times_sha256,
        "users": ratings.n_users,
        "items": ratings.n_items,
        "ratings": len(ratings),
        "fill_ratio": ratings.fill_ratio,
        "scale": [ratings.scale.low, ratings.scale.high, ratings.scale.step],
        "divisor": ratings.scale.nmae_divisor if low_high else None,
        "licence": ratings.licence,
        "users_to_draw": int((ratings.user_counts >= 2).sum()),
        "files": prepared.files,
        "reading": prepared.reading,
        "load_report": prepared.load_report and prepared.load_report.as_dict(),
        "filter_report": prepared.filter_report and prepared.filter_report.as_dict(),
    }
