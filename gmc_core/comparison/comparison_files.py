"""The files of a comparison: held-out ratings, predictions and what they cost.

    folder/split--weak-0-1a2b3c4d5e6f.npz             held-out ratings
    folder/result--knn-9f8e7d6c--weak-0-1a2b….npz     predictions of a method on a split

Names hold a hash of the split's content and of the method's settings, so a file says
what it is, whatever else is in the folder. Every file is written whole or not at all; one
that is damaged counts as absent. Earlier versions had two folders, ``splits`` and
``results``, with the same names behind the "--"; these are read as well.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core import former
from gmc_core.base.errors import DataError
from gmc_core.base.files import replacing
from gmc_core.comparison.comparators.measure import Outcome
from gmc_core.comparison.comparators.method import Method, reads_times
from gmc_core.data.rating_times import times_sha256
from gmc_core.protocol.splits import Split


@dataclass(frozen=True, eq=False)
class HeldOutValues:
    """What a split holds out.

    key : text that stands for the whole split's content, but for when ratings were given.
    actual : (n,) the held-out ratings. unseen : (n,) whether nothing is known of the
        user or the item.
    times : hash of when the ratings were given, which counts for methods that read it; "" if
        no time is known, and where this was read from a file.
    """

    key: str
    protocol: str
    seed: int | None
    actual: npt.NDArray[np.float64]
    unseen: npt.NDArray[np.bool_]
    times: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "protocol": self.protocol,
            "seed": self.seed,
            "test_ratings": len(self.actual),
            "unseen": int(self.unseen.sum()),
        }


def held_out_of(split: Split) -> HeldOutValues:
    """The held-out ratings of a split, and its key.

    Raises
    ------
    DataError
        If nothing is held out.
    """
    if not split.n_test:
        raise DataError(
            "Nothing is held out, so there is nothing to compare on. Choose weak or strong "
            "generalization."
        )
    digest = hashlib.sha256(split.train.sha256.encode())
    digest.update(b"" if split.query is None else split.query.sha256.encode())
    for part in (split.train, split.query):
        digest.update(b"" if part is None else part.side_sha256.encode())
    for array, kind in (
        (split.test_users, "<i8"),
        (split.test_items, "<i8"),
        (split.test_values, "<f8"),
    ):
        digest.update(array.astype(kind).tobytes())
    seed = "" if split.seed is None else f"-{split.seed}"
    known = None if split.query is None else split.query.times
    return HeldOutValues(
        f"{split.protocol}{seed}-{digest.hexdigest()[:12]}",
        split.protocol,
        split.seed,
        split.test_values,
        split.unseen_items | split.unseen_users,
        times_sha256(split.train.times, known, split.test_times),
    )


def method_key(method: Method, held: HeldOutValues | None = None) -> str:
    """A method's name and a hash of its settings, fit for a file name.

    held : of a split that the method is used on; of one that reads times they are in the hash,
        so that the others' results are found again whatever they are compared with.
    """
    text = f"{method.name}\n{method.identity}"
    if held is not None and reads_times(method):
        text += f"\n{held.times}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '_', method.name)}-{digest[:10]}"


class ResultFiles:
    """Results in a folder, which is made when the first one is kept.

    folder : where results are kept. others : folders in which they are looked for as well; what
        is found there gets a name in ``folder`` too.

    Raises
    ------
    DataError
        From all methods that write, if the folder cannot be written.
    """

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self.folder = folder
        self.others = tuple(others)

    def keep_held_out(self, held: HeldOutValues) -> None:
        """Write the held-out ratings of a split, unless they are there."""
        if self.held_out(held.key) is None:
            seed = -1 if held.seed is None else held.seed
            self.write(
                self.folder / _held_out_name(held.key),
                {
                    "actual": held.actual,
                    "unseen": held.unseen,
                    "protocol": np.frombuffer(held.protocol.encode(), np.uint8),
                    "seed": np.asarray(seed, np.int64),
                },
            )

    def held_out(self, key: str) -> HeldOutValues | None:
        """The held-out ratings of a split, None if they are not there."""
        for path in (self.folder / _held_out_name(key), self.folder / "splits" / f"{key}.npz"):
            held = _held_out_in(path, key)
            if held is not None:
                return held
        return None

    def keep_outcome(self, method: Method, held: HeldOutValues, outcome: Outcome) -> None:
        """Write a method's predictions on a split with their cost."""
        self.write(
            self.folder / _outcome_name(method_key(method, held), held.key),
            {
                "predictions": outcome.predictions,
                "seconds": np.asarray(outcome.seconds),
                "cpu_seconds": np.asarray(outcome.cpu_seconds),
                "peak_bytes": np.asarray(outcome.peak_bytes),
            },
        )

    def outcome(self, method: Method | str, held: HeldOutValues) -> Outcome | None:
        """A method's result on a split, None if it is not there or does not fit.

        method : the method, or its :func:`method_key`.
        """
        key = method if isinstance(method, str) else method_key(method, held)
        name = _outcome_name(key, held.key)
        own = self.folder / name
        for path in (own, self.folder / "results" / f"{key}--{held.key}.npz"):
            outcome = _outcome_in(path, held)
            if outcome is not None:
                return outcome
        for other in self.others:
            outcome = _outcome_in(other / name, held)
            if outcome is not None:
                self.adopt(other / name, name)
                return outcome
        return None

    def adopt(self, path: Path, name: str) -> None:
        """Give a file of another folder the name ``name`` in this one; it stays there too.

        A second name for the same file where the disk has such, a copy otherwise.
        """
        target = self.folder / name
        with suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target)
            return
        arrays = _read(path)
        if arrays is not None:
            self.write(target, arrays)

    def write(self, path: Path, arrays: dict[str, npt.NDArray]) -> None:
        """Write one file, whole or not at all."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise DataError(
                f"The results cannot be written there ({error.strerror or error}). Choose another "
                "folder, or make room on the disk.",
                path=path.parent,
            ) from error


def names_of_older(folder: Path) -> dict[Path, str]:
    """The results in the two folders of an earlier version → the names that they have now."""
    return {
        **{path: f"split--{path.name}" for path in sorted((folder / "splits").glob("*.npz"))},
        **{path: f"result--{path.name}" for path in sorted((folder / "results").glob("*.npz"))},
    }


def remove_results(folder: Path) -> None:
    """Remove every result from a folder, so that all of them are computed again.

    Raises
    ------
    DataError
        If a file cannot be removed.
    """
    own = [path for path in folder.glob("*.npz") if is_result(path.name)]
    try:
        for path in (*own, *names_of_older(folder)):
            path.unlink()
    except OSError as error:
        raise DataError(
            f"The results cannot be removed ({error.strerror or error}). Choose another folder.",
            path=folder,
        ) from error


def is_result(name: str) -> bool:
    """Whether a file is one of a comparison's, by its name."""
    return re.fullmatch(r"(split|result)--[A-Za-z0-9._-]{1,240}\.npz", name) is not None


def _held_out_name(key: str) -> str:
    return f"split--{key}.npz"


def _outcome_name(method: str, split: str) -> str:
    return f"result--{method}--{split}.npz"


def _held_out_in(path: Path, key: str) -> HeldOutValues | None:
    arrays = _read(path)
    if arrays is None or not {"actual", "unseen", "protocol", "seed"} <= set(arrays):
        return None
    actual, unseen = arrays["actual"], arrays["unseen"]
    numbers = actual.ndim == 1 and actual.dtype.kind == "f" and arrays["seed"].shape == ()
    if not numbers or unseen.shape != actual.shape or not np.isfinite(actual).all():
        return None
    seed = int(arrays["seed"])
    return HeldOutValues(
        key,
        bytes(arrays["protocol"]).decode("ascii", "replace"),
        None if seed < 0 else seed,
        np.asarray(actual, np.float64),
        np.asarray(unseen, bool),
    )


def _outcome_in(path: Path, held: HeldOutValues) -> Outcome | None:
    arrays = _read(path)
    if arrays is None or not set(Outcome.__dataclass_fields__) <= set(arrays):
        return None
    predictions = np.asarray(arrays["predictions"])
    if predictions.dtype.kind != "f" or predictions.shape != held.actual.shape:
        return None
    costs = [arrays[name] for name in ("seconds", "cpu_seconds", "peak_bytes")]
    if any(cost.shape != () or cost.dtype.kind not in "fiu" for cost in costs):
        return None
    if not np.isfinite(predictions).all():
        return None
    return Outcome(np.asarray(predictions, np.float64), *map(float, costs))


def _read(path: Path) -> dict[str, npt.NDArray] | None:
    try:
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


__getattr__ = former.renamed(__name__, Truth="HeldOutValues", truth_of="held_out_of")
