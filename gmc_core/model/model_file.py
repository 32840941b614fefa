"""Saving and loading a fitted model: one .npz file, without pickle.

See :mod:`gmc_core.base.array_archive` for the file; this module says what is in it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gmc_core.base import array_archive
from gmc_core.base.array_archive import Arrays
from gmc_core.base.errors import ConfigError, GmcError, ModelFileError, brief
from gmc_core.base.version import package_version
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary, frozen
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance, low_rank_of
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mixture import Mixture
from gmc_core.gaussian.noise import FULL, NONE, PER_COORDINATE, SCALAR, Noise, SessionNoise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.priors import UserTarget
from gmc_core.gaussian.settings import FitSettings
from gmc_core.gaussian.signals import Layout
from gmc_core.gaussian.user_folding import UserFolding
from gmc_core.model.calibration import Calibration
from gmc_core.model.factor_model import FactorModel
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.mixture_model import MixtureModel
from gmc_core.model.two_sided_model import TwoSidedModel

FORMAT = "gaussian matrix completion model"
FORMAT_VERSION = 4
# Of a model without users' side and session noise, which programs from before these read as well.
_EARLIER_VERSION = 3
PATHLIKE = str | os.PathLike[str]


def save_model(model: GaussianModel, path: PATHLIKE, *, with_ratings: bool = True) -> Path:
    """Write a model to ``path``, completely or not at all.

    Parameters
    ----------
    with_ratings : also store the training ratings with the users' ids, which the
        model needs to predict and recommend to the users it was trained on. They
        stay under the licence of the data. Without, the model only folds in.

    Raises
    ------
    ConfigError
        If the model could do nothing without its ratings (signals are not rows).
    ModelFileError
        If the file cannot be written.
    """
    if not with_ratings and not model.folds_in:
        raise ConfigError(
            f"A model with {model.layout.kind} as signals cannot fold in new users, so it could "
            "predict nothing without its ratings; save it with them."
        )
    header, arrays = _describe(model, model.ratings if with_ratings else None)
    path = Path(path)
    newer = "users" in header or model.noise.session is not None
    newer |= model.settings.model == "factor"
    version = FORMAT_VERSION if newer else _EARLIER_VERSION
    array_archive.write(path, FORMAT, version, header, arrays)
    return path


def load_model(path: PATHLIKE) -> GaussianModel:
    """Read what :func:`save_model` wrote, exactly.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, foreign or of a newer version.
    """
    path = Path(path)
    try:
        return _rebuild(*array_archive.read(path, FORMAT, FORMAT_VERSION))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except (GmcError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(
            f"{path}: The parts of this model do not fit together ({brief(error)}). Save it again."
        ) from error


# The model as plain values and arrays -------------------------------------------


def _describe(model: GaussianModel, ratings: Ratings | None) -> tuple[dict[str, Any], Arrays]:
    arrays: Arrays = {
        "noise": model.noise.array,
        "years": np.asarray(model.item_info.years, dtype=np.float64),
    }
    header: dict[str, Any] = {
        "package_version": package_version(),
        "settings": model.settings.as_dict(),
        "iteration": model.iteration,
        "layout": {
            "kind": model.layout.kind,
            "users": model.layout.users,
            "items": model.layout.items,
            "block": list(model.layout.block),
        },
        "scale": [model.scale.low, model.scale.high, model.scale.step],
        "noise": model.noise.kind,
        "data": {
            "name": model.data_name,
            "sha256": model.data_sha256,
            "licence": model.licence,
            "citation": model.citation,
        },
        "items": _ids(model.items, "item_ids", arrays),
        "titles": list(model.item_info.titles),
        "genres": [list(genres) for genres in model.item_info.genres],
        "ratings": None,
        "calibration": model.calibration and model.calibration.as_dict(),
    }
    if isinstance(model, MixtureModel):
        # Its own mean and covariance follow from the components and are not stored.
        arrays["proportions"] = model.mixture.proportions
        header["components"] = [
            _describe_gaussian(component, f"_{k}", arrays)
            for k, component in enumerate(model.mixture.components)
        ]
    else:
        header["covariance"] = _describe_gaussian(model.gaussian, "", arrays)
    if isinstance(model, TwoSidedModel):
        header["users"] = _describe_users(model, arrays, ratings is not None)
    if model.ordinal is not None:
        arrays |= {"scale_values": model.ordinal.values, "cuts": model.ordinal.cuts}
    if model.groups is not None:
        arrays["group_shares"] = model.groups.shares
        header["groups"] = model.groups.describe()
    if ratings is not None:
        arrays |= {"indptr": ratings.indptr, "indices": ratings.indices, "values": ratings.values}
        if ratings.times is not None:
            arrays["times"] = ratings.times
        header["ratings"] = {
            "users": _ids(ratings.users, "user_ids", arrays),
            "user_info": _columns(ratings, arrays),
        }
    return header, arrays


def _describe_users(model: TwoSidedModel, arrays: Arrays, with_loadings: bool) -> dict[str, Any]:
    """Adds the arrays of the users' side; returns what the header says of it."""
    folding, target = model.folding, model.folding.target
    arrays |= {
        "user_penalty": folding.penalty,
        "user_pulls": folding.pulls,
        "user_spreads": folding.spreads,
        "user_items": target.items,
        "user_counts": target.counts,
    }
    if with_loadings and model.loadings is not None:
        arrays["user_loadings"] = model.loadings
    return {
        "rank": folding.rank,
        "target": [target.offset, target.implicit],
        "ratings": target.ratings,
    }


def _describe_gaussian(gaussian: Gaussian, suffix: str, arrays: Arrays) -> dict[str, Any]:
    """Adds the arrays of (μ, Σ); returns what the header says of Σ."""
    arrays[f"mean{suffix}"] = gaussian.mean
    if gaussian.coefficients is not None:
        arrays[f"coefficients{suffix}"] = gaussian.coefficients
    covariance = gaussian.covariance
    if isinstance(covariance, FactoredCovariance):
        arrays[f"factor{suffix}"] = covariance.factor
        more = {"low_rank": True} if covariance.low_rank else {}
        return {"epsilon": covariance.epsilon, "initial": covariance.initial, **more}
    arrays[f"covariance{suffix}"] = covariance.matrix
    return {}


def _ids(vocabulary: Vocabulary, name: str, arrays: Arrays) -> list[str] | None:
    """Integer ids become an array; strings are returned, for the header."""
    if vocabulary.are_integers:
        arrays[name] = vocabulary.ids
        return None
    return [str(value) for value in vocabulary.ids]


def _columns(ratings: Ratings, arrays: Arrays) -> list[dict[str, Any]]:
    """User attributes: numbers become arrays, anything else is listed in the header."""
    described = []
    for index, (name, column) in enumerate(ratings.user_info.items()):
        entry: dict[str, Any] = {"name": name}
        if array_archive.little_endian(column).dtype.str in array_archive.DTYPES:
            entry["array"] = f"user_info_{index}"
            arrays[entry["array"]] = column
        else:
            entry["dtype"] = column.dtype.str
            entry["values"] = column.tolist()
        described.append(entry)
    return described


def _rebuild(header: dict[str, Any], arrays: Arrays) -> GaussianModel:
    layout = Layout(
        header["layout"]["kind"],
        header["layout"]["users"],
        header["layout"]["items"],
        tuple(header["layout"]["block"]),
    )
    items = _vocabulary(header["items"], "item_ids", "item", arrays)
    info = ItemInfo(
        titles=tuple(header["titles"]),
        genres=tuple(tuple(genres) for genres in header["genres"]),
        years=frozen(arrays["years"]),
    )
    size, count = layout.dimension, len(items)
    _require(layout.items == count, "the number of items")
    _require(len(info.titles) == len(info.genres) == len(info.years) == count, "the titles")
    for name, array in arrays.items():
        if name.startswith(("mean", "covariance", "factor", "noise", "values", "coefficients")):
            _require(bool(np.isfinite(array).all()), f"the part {name!r} (not finite)")
    settings = FitSettings.from_dict(header["settings"])
    scale = RatingScale(*header["scale"])
    data = header["data"]
    described: dict[str, Any] = dict(
        noise=replace(
            _noise(header["noise"], arrays["noise"], size),
            session=SessionNoise.of(settings.session_noise, settings.session_window),
        ),
        layout=layout,
        items=items,
        item_info=info,
        scale=scale,
        ratings=_ratings(header, arrays, items, info, scale, layout),
        settings=settings,
        iteration=int(header["iteration"]),
        data_name=data["name"],
        data_sha256=data["sha256"],
        licence=data["licence"],
        citation=data["citation"],
        ordinal=_ordinal(settings, arrays),
        calibration=_calibration(header.get("calibration")),
    )
    if "components" not in header:
        gaussian = _gaussian(header["covariance"], "", arrays, size)
        users = _users(header.get("users"), arrays, gaussian, described["ratings"])
        described["groups"] = _groups(header, arrays, gaussian)
        if users is None:
            kind = FactorModel if low_rank_of(gaussian.covariance) else GaussianModel
            return kind(gaussian=gaussian, **described)
        return TwoSidedModel(gaussian=gaussian, **described, **users)
    mixture = _mixture(header["components"], arrays, size)
    return MixtureModel(gaussian=mixture.pooled(ThreadPool()), mixture=mixture, **described)


def _gaussian(about: dict[str, Any], suffix: str, arrays: Arrays, size: int) -> Gaussian:
    mean = arrays[f"mean{suffix}"]
    _require(mean.shape == (size,) and mean.dtype == np.float64, "the mean")
    covariance: DenseCovariance | FactoredCovariance
    if f"factor{suffix}" in arrays:
        factor, epsilon = arrays[f"factor{suffix}"], float(about["epsilon"])
        _require(factor.ndim == 2 and len(factor) == size and epsilon >= 0, "the covariance")
        low_rank = bool(about.get("low_rank", False))
        covariance = FactoredCovariance(factor, epsilon, bool(about["initial"]), low_rank)
    else:
        matrix = arrays[f"covariance{suffix}"]
        _require(matrix.shape == (size, size), "the covariance")
        covariance = DenseCovariance(matrix)
    _require(covariance.dtype in (np.float64, np.float32), "the covariance's type")
    diagonal = covariance.diagonal()
    _require(
        bool(np.all(diagonal > 0) and np.isfinite(diagonal).all()), "the covariance's diagonal"
    )
    coefficients = arrays.get(f"coefficients{suffix}")
    if coefficients is not None:
        _require(coefficients.ndim == 2 and len(coefficients) == size, "the coefficients")
        _require(coefficients.dtype == np.float64, "the coefficients' type")
    return Gaussian(mean, covariance, coefficients)


def _groups(header: dict[str, Any], arrays: Arrays, gaussian: Gaussian) -> UserGroups | None:
    described = header.get("groups")
    rank = header["users"]["rank"] if "users" in header else 0
    columns = 0 if gaussian.coefficients is None else gaussian.coefficients.shape[1] - rank
    _require((described is None) == (columns == 0), "the groups of users")
    if described is None:
        return None
    shares = arrays["group_shares"]
    _require(shares.dtype == np.float64, "the type of the groups' shares")
    groups = UserGroups.from_description(described, shares)
    _require(columns == len(groups), "the number of groups")
    return groups


def _users(
    about: dict[str, Any] | None,
    arrays: Arrays,
    gaussian: Gaussian,
    ratings: Ratings | None,
) -> dict[str, Any] | None:
    """The users' side as fields of a :class:`TwoSidedModel`; None where there is none."""
    if about is None:
        return None
    rank, size = int(about["rank"]), gaussian.dimension
    shapes = {
        "user_penalty": (rank, rank),
        "user_pulls": (1 + arrays["user_items"].shape[-1], rank),
        "user_spreads": (size, rank * (rank + 1) // 2),
        "user_items": (size, arrays["user_items"].shape[-1]),
        "user_counts": (size,),
    }
    if ratings is not None:
        shapes["user_loadings"] = (ratings.n_users, rank)
    columns = 0 if gaussian.coefficients is None else gaussian.coefficients.shape[1]
    _require(1 <= rank <= columns, "the rank of the users' side")
    for name, shape in shapes.items():
        own = arrays[name]
        dtype = gaussian.covariance.dtype if name == "user_spreads" else np.float64
        _require(own.shape == shape and own.dtype == dtype, f"the part {name!r}")
        _require(bool(np.isfinite(own).all()), f"the part {name!r} (not finite)")
    offset, implicit = map(float, about["target"])
    target = UserTarget(
        offset, implicit, int(about["ratings"]), arrays["user_items"], arrays["user_counts"]
    )
    right = min(offset, implicit, target.ratings) >= 0
    _require(right, "the target of the users' side")
    names = ("user_penalty", "user_pulls", "user_spreads")
    folding = UserFolding(target, *(arrays[name] for name in names))
    return {"folding": folding, "loadings": arrays.get("user_loadings")}


def _mixture(about: list[dict[str, Any]], arrays: Arrays, size: int) -> Mixture:
    components = tuple(_gaussian(entry, f"_{k}", arrays, size) for k, entry in enumerate(about))
    alike = {(type(own.covariance), own.covariance.dtype) for own in components}
    _require(len(components) > 0 and len(alike) == 1, "the components")
    proportions = arrays["proportions"]
    _require(
        proportions.shape == (len(components),) and proportions.dtype == np.float64,
        "the number of proportions",
    )
    likely = np.all(proportions > 0) and abs(proportions.sum() - 1) < 1e-9
    _require(bool(likely), "the proportions")
    return Mixture(proportions, components)


def _ordinal(settings: FitSettings, arrays: Arrays) -> OrdinalScale | None:
    _require(settings.is_ordered == ("cuts" in arrays), "the kind of ratings")
    if "cuts" not in arrays:
        return None
    values, cuts = arrays["scale_values"], arrays["cuts"]
    _require(values.dtype == cuts.dtype == np.float64, "the type of the cuts")
    _require(values.ndim == cuts.ndim == 1 and len(values) == len(cuts) + 1 >= 3, "the cuts")
    rising = np.all(np.diff(values) > 0) and np.all(np.diff(cuts) > 0)
    _require(bool(rising and np.isfinite(values).all() and np.isfinite(cuts).all()), "the cuts")
    return OrdinalScale(values, cuts)


def _calibration(described: dict[str, Any] | None) -> Calibration | None:
    """None too in a file from before intervals were calibrated."""
    return None if described is None else Calibration.from_dict(described)


def _vocabulary(ids: list[str] | None, name: str, kind: str, arrays: Arrays) -> Vocabulary:
    if ids is None:
        _require(arrays[name].dtype == np.int64, f"the type of the {kind} ids")
        return Vocabulary(arrays[name], kind)
    _require(all(isinstance(value, str) for value in ids), f"the {kind} ids")
    return Vocabulary(np.array([*ids, None], dtype=object)[:-1], kind)


def _noise(kind: int, array: np.ndarray, size: int) -> Noise:
    """Σ_w as it was stored; that it is a covariance was checked when it was made."""
    shapes = {NONE: (1, 1), SCALAR: (1, 1), PER_COORDINATE: (1, size), FULL: (size, size)}
    _require(kind in shapes and array.shape == shapes[kind], "the noise")
    _require(array.dtype == np.float64, "the noise's type")
    noise = Noise(kind, array, size)
    _require(bool(np.all(noise.variances(np.arange(size)) >= 0)), "the noise's diagonal")
    return noise


def _ratings(
    header: dict[str, Any],
    arrays: Arrays,
    items: Vocabulary,
    info: ItemInfo,
    scale: RatingScale,
    layout: Layout,
) -> Ratings | None:
    stored = header["ratings"]
    if stored is None:
        return None
    users = _vocabulary(stored["users"], "user_ids", "user", arrays)
    indptr, indices, values = arrays["indptr"], arrays["indices"], arrays["values"]
    _require(len(users) == layout.users, "the number of users")
    _require(
        indptr.dtype == np.int64 and indices.dtype == np.int32 and values.dtype == np.float64,
        "the types of the ratings",
    )
    _require(bool(len(indptr) and indptr[0] == 0 and np.all(np.diff(indptr) >= 0)), "the rows")
    rising = np.diff(indices) > 0
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    _require(bool(np.all(rising)), "the order of the ratings")
    _require(bool(np.all((values >= scale.low) & (values <= scale.high))), "the rating scale")
    times = arrays.get("times")  # none too in a file from before times were kept
    _require(times is None or times.dtype == np.int64, "the type of the times")
    columns = {}
    for entry in stored["user_info"]:
        if "array" in entry:
            column = arrays[entry["array"]]
        else:
            column = _column(entry["values"], np.dtype(entry["dtype"]))
        _require(column.shape == (len(users),), "the users' attributes")
        columns[entry["name"]] = column
    data = header["data"]
    return Ratings(
        users=users,
        items=items,
        indptr=indptr,
        indices=indices,
        values=values,
        scale=scale,
        item_info=info,
        user_info=columns,
        name=data["name"],
        licence=data["licence"],
        citation=data["citation"],
        times=times,
    )


def _column(values: list[Any], dtype: np.dtype) -> np.ndarray:
    """An attribute that is no array of numbers: texts, or objects of JSON."""
    column = np.array([*values, None], dtype=object)[:-1]
    # A file can claim a type of any width, whose array would fill the memory; save_model writes the
    # width of the longest text.
    widest = max((len(value) for value in values if isinstance(value, str)), default=0)
    fits = dtype.kind == "U" and dtype.itemsize <= 4 * max(widest, 1)
    _require(dtype.kind == "O" or fits, "the type of the users' attributes")
    return column.astype(dtype)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ModelFileError(f"In this model {what} cannot be right. Save it again.")
