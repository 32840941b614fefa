"""The files of a run: full state, held-out predictions, pictures, model.

All are npz without pickle, and each is written whole or not at all.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.fitting.fit import IterationRecord
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.em import EmState
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import Mixture, MixtureState
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.two_sided import TwoSidedState, UserSide
from gmc_core.protocol.splits import Split
from gmc_core.runs.store.folders import write_atomically

MODEL = "model.npz"
STATE = "state.npz"
_PICTURE = re.compile(r"picture-(\d+)-(\d+)\.npz")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that an interrupted run needs to go on.

    key : of the run, so that a state is never used for other settings or data.
    repetition : index of the repetition in progress. records : its records so far.
    """

    key: str
    repetition: int
    records: tuple[IterationRecord, ...]
    state: EmState


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the state, replacing the one before."""
    state = checkpoint.state
    arrays: dict[str, Any] = {"weights": state.weights}
    if state.values is not None:
        arrays["values"] = state.values
    about: dict[str, Any] = {
        "key": checkpoint.key,
        "repetition": checkpoint.repetition,
        "iteration": state.iteration,
        "noise": state.noise,
        "records": [record.as_dict() for record in checkpoint.records],
    }
    gaussians: tuple[Gaussian, ...] = (state.gaussian,)
    if isinstance(state, MixtureState):
        gaussians = state.mixture.components
        arrays["proportions"] = state.mixture.proportions
        arrays["responsibilities"] = state.responsibilities
    if isinstance(state, TwoSidedState) and state.users is not None:
        arrays["user_loadings"] = state.users.loadings
        arrays["user_factors"] = state.users.factors
        about["user_share"] = state.users.share
    about["gaussians"] = [_keep(own, str(k), arrays) for k, own in enumerate(gaussians)]
    arrays["about"] = np.array(json.dumps(about))
    write_atomically(folder / STATE, lambda file: np.savez(file, **arrays))


def _keep(gaussian: Gaussian, suffix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Adds the arrays of the Gaussian; returns what else there is to say of Σ."""
    covariance = gaussian.covariance
    arrays[f"mean{suffix}"] = gaussian.mean
    if gaussian.coefficients is not None:
        arrays[f"coefficients{suffix}"] = gaussian.coefficients
    if isinstance(covariance, FactoredCovariance):
        arrays[f"factor{suffix}"] = covariance.factor
        return {
            "epsilon": covariance.epsilon,
            "initial": covariance.initial,
            "low_rank": covariance.low_rank,
        }
    arrays[f"matrix{suffix}"] = covariance.matrix
    return {}


def _take(about: dict[str, Any], suffix: str, file: Any) -> Gaussian:
    """What :func:`_keep` kept."""
    covariance = (
        FactoredCovariance(
            file[f"factor{suffix}"],
            about["epsilon"],
            about["initial"],
            about.get("low_rank", False),
        )
        if f"factor{suffix}" in file
        else DenseCovariance(file[f"matrix{suffix}"])
    )
    return Gaussian(file[f"mean{suffix}"], covariance, file.get(f"coefficients{suffix}"))


def load_checkpoint(folder: Path, key: str) -> Checkpoint | None:
    """The saved state, None if there is none that fits and can be read."""
    try:
        with np.load(folder / STATE, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["key"] != key:
                return None
            gaussians = tuple(_take(own, str(k), file) for k, own in enumerate(about["gaussians"]))
            iteration, weights = about["iteration"], file["weights"]
            values, noise = file.get("values"), about["noise"]
            state = EmState(iteration, gaussians[0], weights, values, noise)
            if "proportions" in file:
                mixture = Mixture(file["proportions"], gaussians)
                state = MixtureState(
                    iteration,
                    mixture.pooled(ThreadPool()),
                    weights,
                    mixture=mixture,
                    responsibilities=file["responsibilities"],
                )
            elif "user_loadings" in file:
                share = float(about.get("user_share", 1.0))
                users = UserSide(file["user_loadings"], file["user_factors"], share)
                state = TwoSidedState(iteration, gaussians[0], weights, values, noise, users=users)
            records = tuple(IterationRecord.from_dict(values) for values in about["records"])
            return Checkpoint(key, about["repetition"], records, state)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None  # the repetition is computed anew, with the same figures


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The test ratings of one repetition and what was predicted.

    predictions : (n,) unprojected, of the last iteration. actual : (n,) ratings.
    unseen : (n,) whether user or item have no known rating.
    user_ids, item_ids : (n,) original ids, integers or strings.
    """

    predictions: npt.NDArray[np.float64]
    actual: npt.NDArray[np.float64]
    unseen: npt.NDArray[np.bool_]
    user_ids: npt.NDArray[Any]
    item_ids: npt.NDArray[Any]

    def same_ratings(self, other: HeldOut) -> bool:
        """Whether both hold predictions of the same ratings in the same order."""
        return np.array_equal(self.actual, other.actual) and np.array_equal(
            self.item_ids, other.item_ids
        )

    @classmethod
    def of(cls, split: Split, predictions: npt.NDArray[np.float64]) -> HeldOut:
        """The test ratings of ``split`` with their predictions, (n_test,)."""

        def plain(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return ids.astype(str) if ids.dtype == object else ids

        return cls(
            predictions,
            split.test_values,
            split.unseen_items | split.unseen_users,
            plain(split.known.users.ids[split.test_users]),
            plain(split.train.items.ids[split.test_items]),
        )


def save_held_out(folder: Path, repetition: int, held_out: HeldOut) -> None:
    """Keep the predictions of a finished repetition."""
    arrays = {name: getattr(held_out, name) for name in HeldOut.__dataclass_fields__}
    write_atomically(
        _held_out_path(folder, repetition), lambda file: np.savez_compressed(file, **arrays)
    )


def load_held_out(folder: Path, repetition: int) -> HeldOut | None:
    """The predictions of a finished repetition, None if they are not there."""
    try:
        with np.load(_held_out_path(folder, repetition), allow_pickle=False) as file:
            return HeldOut(**{name: file[name] for name in HeldOut.__dataclass_fields__})
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _held_out_path(folder: Path, repetition: int) -> Path:
    return folder / f"held-out-{repetition}.npz"


def picture_path(folder: Path, repetition: int, iteration: int) -> Path:
    """Where the picture of an iteration is."""
    return folder / f"picture-{repetition}-{iteration}.npz"


def picture_index(folder: Path) -> list[tuple[int, int]]:
    """(repetition, iteration) of all pictures, in order."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []
    found = [match for match in map(_PICTURE.fullmatch, names) if match]
    return sorted((int(match[1]), int(match[2])) for match in found)
