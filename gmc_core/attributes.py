"""What is known of users besides their ratings (age, gender, …), as groups of users.

A user's signal is then f = μ + B x + g with g ~ N(0, Σ): the covariates x say which
groups the user belongs to, and a column of B (N × G) is what a group likes more than
others do. That is the conditional form of a Gaussian whose signal has x appended as
coordinates that are always observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.errors import ConfigError
from gmc_core.ratings import Ratings
from gmc_core.readers.text import number_or_nan
from gmc_core.signals import Signals

Floats = npt.NDArray[np.float64]

# λ, the weight of the prior of B, as a number of users. Chosen on ratings held out inside
# the training set of MovieLens 1M, see docs/beyond.md.
STRENGTH = 100.0

# A group of fewer users says little that their ratings do not.
LEAST_USERS = 20
# Groups of one attribute; of more only the largest.
MOST_GROUPS = 30
# A number with more different values is cut into that many ranges with as many users each.
RANGES = 8


@dataclass(frozen=True)
class _Attribute:
    """One attribute: the texts of its groups, or where a number is cut into ranges."""

    name: str
    texts: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    @property
    def labels(self) -> list[str]:
        if self.texts:
            return [f"{self.name} {text}" for text in self.texts]
        inner = [f"{a:g} to {b:g}" for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        ends = f"up to {self.edges[0]:g}", f"above {self.edges[-1]:g}"
        return [f"{self.name} {text}" for text in (ends[0], *inner, ends[1])]

    def members(self, column: np.ndarray) -> Floats:
        """(M, groups) 1 or 0; NaN where the attribute is unknown."""
        if self.texts:
            place = {text: index for index, text in enumerate(self.texts)}
            known = _known(column)
            own = np.array([place.get(text, -1) for text in _texts(column)], dtype=np.int64)
        else:
            numbers = _numbers(column)
            known = np.isfinite(numbers)
            own = np.searchsorted(self.edges, numbers)
        members = (own[:, None] == np.arange(len(self.labels))).astype(np.float64)
        members[~known] = np.nan
        return members


@dataclass(frozen=True, eq=False)
class UserGroups:
    """Groups of users by their attributes.

    labels : (G,) such as "gender F". shares : (G,) of the users whose attribute is known.
    """

    labels: tuple[str, ...]
    shares: Floats
    _attributes: tuple[_Attribute, ...]

    @classmethod
    def from_description(
        cls, description: Sequence[Mapping[str, Any]], shares: Floats
    ) -> UserGroups:
        """Read what :meth:`describe` wrote.

        Raises
        ------
        ConfigError
            If the shares are not those of the groups.
        """
        attributes = tuple(
            _Attribute(
                str(own["name"]), tuple(map(str, own["texts"])), tuple(map(float, own["edges"]))
            )
            for own in description
        )
        labels = tuple(label for own in attributes for label in own.labels)
        likely = shares.shape == (len(labels),) and np.all((shares > 0) & (shares < 1))
        if not (labels and likely and len(set(labels)) == len(labels)):
            raise ConfigError("The groups of users and their shares do not fit together.")
        return cls(labels, shares, attributes)

    def describe(self) -> list[dict[str, Any]]:
        """The groups as plain values, without their shares."""
        return [asdict(own) for own in self._attributes]

    @classmethod
    def of(cls, user_info: Mapping[str, np.ndarray]) -> UserGroups:
        """The groups that these users (attribute name → (M,) array) fall into.

        A text makes a group of the users who have it, a number with few values as well;
        one with many is cut into ranges. Groups of fewer than ``LEAST_USERS`` are none,
        nor is an attribute that puts most users into no group, as a zip code does.
        """
        attributes, shares = [], []
        for name, column in user_info.items():
            attribute = _attribute(name, np.asarray(column))
            if attribute is not None:
                attributes.append(attribute)
                shares.append(np.nanmean(attribute.members(np.asarray(column)), axis=0))
        labels = [label for attribute in attributes for label in attribute.labels]
        return cls(tuple(labels), np.concatenate([np.zeros(0), *shares]), tuple(attributes))

    def __len__(self) -> int:
        """G."""
        return len(self.labels)

    @property
    def choices(self) -> dict[str, list[str]]:
        """Attribute → labels of its groups."""
        return {attribute.name: attribute.labels for attribute in self._attributes}

    def members(self, user_info: Mapping[str, np.ndarray], users: int) -> Floats:
        """(M, G) whether each of ``users`` users is of a group: 1, 0, or NaN for unknown."""
        unknown = np.full(users, None, dtype=object)
        parts = [own.members(user_info.get(own.name, unknown)) for own in self._attributes]
        return np.hstack([np.zeros((users, 0)), *parts])

    def covariates(self, user_info: Mapping[str, np.ndarray], users: int) -> Floats:
        """(M, G) the x: membership less its share, so that they add up to 0 over the users
        that the groups were made of; 0 where the attribute is unknown."""
        return np.nan_to_num(self.members(user_info, users) - self.shares, nan=0.0)

    def covariates_of(self, labels: Collection[str]) -> Floats:
        """(G,) the x of somebody in these groups; 0 for an attribute that none is of.

        Raises
        ------
        ConfigError
            If there is no such group, or two are of one attribute.
        """
        x = np.zeros(len(self))
        unknown = next((label for label in labels if label not in self.labels), None)
        if unknown is not None:
            raise ConfigError(
                f"There is no group {unknown!r}; the groups are {', '.join(self.labels)}."
            )
        start = 0
        for own in self.choices.values():
            of = slice(start, start + len(own))
            start += len(own)
            found = [label for label in own if label in labels]
            if len(found) > 1:
                raise ConfigError(f"Nobody is both {found[0]} and {found[1]}; give one of them.")
            if found:
                x[of] = (np.array(own) == found[0]) - self.shares[of]
        return x

    def on(self, signals: Signals, ratings: Ratings) -> Signals:
        """The signals of these users with their covariates; as they were without groups."""
        if not len(self):
            return signals
        return replace(signals, covariates=self.covariates(ratings.user_info, ratings.n_users))

    def of_user(self, user_info: Mapping[str, np.ndarray], user: int) -> list[str]:
        """Labels of the groups of one user."""
        own = {name: column[user : user + 1] for name, column in user_info.items()}
        member = self.members(own, 1)[0] == 1
        return [label for label, is_member in zip(self.labels, member, strict=True) if is_member]


def _attribute(name: str, column: np.ndarray) -> _Attribute | None:
    """How a column makes groups, None if it does not."""
    known = column[_known(column)]
    numeric = column.dtype.kind in "iuf"
    if numeric and len(np.unique(known)) > MOST_GROUPS:
        cuts = np.unique(np.quantile(known.astype(np.float64), np.arange(1, RANGES) / RANGES))
        if len(known) < RANGES * LEAST_USERS or len(cuts) < 2:
            return None
        return _Attribute(name, edges=tuple(cuts.tolist()))
    texts, counts = np.unique(np.array(_texts(known), dtype=object), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = [k for k in order if LEAST_USERS <= counts[k] < len(known)][:MOST_GROUPS]
    if not kept or counts[kept].sum() < len(known) / 2:
        return None
    # Numbers in their order, texts in that of the alphabet.
    chosen = [str(texts[k]) for k in sorted(kept)]
    return _Attribute(name, texts=tuple(sorted(chosen, key=float) if numeric else chosen))


def _known(column: np.ndarray) -> npt.NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.isfinite(column)
    if column.dtype.kind in "iu":
        return np.ones(len(column), bool)
    return np.array([value is not None and str(value) != "" for value in column], dtype=bool)


def _numbers(column: np.ndarray) -> Floats:
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    return np.array([np.nan if value is None else number_or_nan(str(value)) for value in column])


def _texts(column: np.ndarray) -> list[str]:
    if column.dtype.kind in "iuf":
        return [f"{value:g}" for value in column.tolist()]
    return ["" if value is None else str(value) for value in column.tolist()]
