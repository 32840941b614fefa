"""What is known of users besides their ratings (age, gender, …), as groups of users.

A user's signal is then f = μ + B x + g with g ~ N(0, Σ): the covariates x say which
groups the user belongs to, and a column of B (N × G) is what a group likes more than
others do. That is the conditional form of a Gaussian whose signal has x appended as
coordinates that are always observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
# Groups in all, which bounds the memory of x.
MOST_IN_ALL = 500
# A number with more than MOST_GROUPS values is cut into that many ranges with as many users.
RANGES = 8


@dataclass(frozen=True)
class _Attribute:
    """One attribute: the texts of its groups, or where a number is cut into ranges.

    numeric : whether the texts are those of numbers.
    """

    name: str
    texts: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    numeric: bool = False

    @property
    def labels(self) -> list[str]:
        if self.texts:
            return [f"{self.name} {text}" for text in self.texts]
        ends = [_text(edge) for edge in self.edges]
        inner = [f"above {a} to {b}" for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return [f"{self.name} {text}" for text in (f"to {ends[0]}", *inner, f"above {ends[-1]}")]

    def members(self, column: np.ndarray) -> Floats:
        """(M, groups) 1 or 0; NaN where the attribute is unknown."""
        if self.edges:
            numbers = _numbers(column)
            known, own = np.isfinite(numbers), np.searchsorted(self.edges, numbers)
        else:
            place = {text: index for index, text in enumerate(self.texts)}
            texts = [_text(x) for x in _numbers(column)] if self.numeric else _texts(column)
            known = np.array([text != "" for text in texts], dtype=bool)
            own = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        members = (own[:, None] == np.arange(len(self.labels))).astype(np.float64)
        members[~known] = np.nan
        return members


@dataclass(frozen=True, eq=False)
class UserGroups:
    """Groups of users by their attributes.

    labels : (G,) such as "gender F". shares : (G,) of the users whose attribute is known.

    Raises
    ------
    ConfigError
        If labels or attributes repeat, there are too many, or a share is none.
    """

    labels: tuple[str, ...]
    shares: Floats
    _attributes: tuple[_Attribute, ...]

    def __post_init__(self) -> None:
        names = [own.name for own in self._attributes]
        labels = tuple(label for own in self._attributes for label in own.labels)
        right = labels == self.labels and self.shares.shape == (len(labels),)
        right &= len(set(labels)) == len(labels) <= MOST_IN_ALL and len(set(names)) == len(names)
        if not (right and np.all((self.shares > 0) & (self.shares < 1))):
            raise ConfigError("The groups of users and their shares do not fit together.")

    @classmethod
    def of(cls, user_info: Mapping[str, np.ndarray]) -> UserGroups:
        """The groups that these users (attribute name → (M,) array) fall into.

        A text makes a group of the users who have it, a number with few values as well;
        one with many is cut into ranges. Groups of fewer than ``LEAST_USERS`` are none,
        nor is an attribute that puts most users into no group, as a zip code does, or
        whose labels are those of one before.
        """
        attributes: list[_Attribute] = []
        shares: list[Floats] = [np.zeros(0)]
        labels: list[str] = []
        for name, column in user_info.items():
            attribute = _attribute(str(name), np.asarray(column))
            if attribute is None or not set(attribute.labels).isdisjoint(labels):
                continue
            if len(labels) + len(attribute.labels) > MOST_IN_ALL:
                break
            attributes.append(attribute)
            labels += attribute.labels
            shares.append(np.nanmean(attribute.members(np.asarray(column)), axis=0))
        return cls(tuple(labels), np.concatenate(shares), tuple(attributes))

    @classmethod
    def from_description(
        cls, description: Sequence[Mapping[str, Any]], shares: Floats
    ) -> UserGroups:
        """Read what :meth:`describe` wrote.

        Raises
        ------
        ConfigError
            If the parts are not those of groups.
        """
        try:
            attributes = tuple(
                _Attribute(
                    str(own["name"]),
                    tuple(map(str, own["texts"])),
                    tuple(map(float, own["edges"])),
                    bool(own["numeric"]),
                )
                for own in description
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError("The groups of users are not described as such.") from error
        for own in attributes:
            rising = np.all(np.isfinite(own.edges)) and np.all(np.diff(own.edges) > 0)
            if bool(own.texts) == bool(own.edges) or not rising:
                raise ConfigError("A group of users needs either texts or rising numbers.")
        labels = tuple(label for own in attributes for label in own.labels)
        if not labels:
            raise ConfigError("There are no groups of users where some were described.")
        return cls(labels, shares, attributes)

    def describe(self) -> list[dict[str, Any]]:
        """The groups as plain values, without their shares."""
        return [asdict(own) for own in self._attributes]

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
        x = self.members(user_info, users)
        x -= self.shares
        return np.nan_to_num(x, copy=False, nan=0.0)

    def of_user(self, user_info: Mapping[str, np.ndarray], user: int) -> list[str]:
        """Labels of the groups of one user."""
        own = {name: column[user : user + 1] for name, column in user_info.items()}
        member = self.members(own, 1)[0] == 1
        return [label for label, is_member in zip(self.labels, member, strict=True) if is_member]

    def covariates_of(self, labels: Collection[str]) -> Floats:
        """(G,) the x of somebody in these groups; 0 for an attribute that none is of.

        Raises
        ------
        ConfigError
            If there is no such group, or two are of one attribute.
        """
        unknown = next((label for label in labels if label not in self.labels), None)
        if unknown is not None:
            raise ConfigError(
                f"There is no group {unknown!r}; the groups are {', '.join(self.labels)}."
            )
        x = np.zeros(len(self))
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


def _attribute(name: str, column: np.ndarray) -> _Attribute | None:
    """How a column makes groups, None if it does not."""
    numeric = _is_numeric(column)
    if numeric:
        numbers = _numbers(column)
        numbers = numbers[np.isfinite(numbers)]
        if len(np.unique(numbers)) > MOST_GROUPS:
            if len(numbers) < RANGES * LEAST_USERS:
                return None
            shares = np.arange(1, RANGES) / RANGES
            # Values that occur, so that no range between two of them is empty.
            cuts = np.unique(np.quantile(numbers, shares, method="inverted_cdf"))
            cuts = cuts[cuts < numbers.max()]
            return _Attribute(name, edges=tuple(cuts.tolist())) if len(cuts) else None
        texts = [_text(x) for x in numbers]
    else:
        texts = [text for text in _texts(column) if text]
    found, counts = np.unique(np.array(texts, dtype=object), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = [k for k in order if LEAST_USERS <= counts[k] < len(texts)][:MOST_GROUPS]
    if not kept or counts[kept].sum() < len(texts) / 2:
        return None
    chosen = [str(found[k]) for k in sorted(kept)]  # in the order of the alphabet
    return _Attribute(
        name, texts=tuple(sorted(chosen, key=float) if numeric else chosen), numeric=numeric
    )


def _is_numeric(column: np.ndarray) -> bool:
    """Whether all that is known is numbers; a text of digits, such as a zip code, is none."""
    if column.dtype.kind in "iuf":
        return True
    known = column[~pd.isna(column)]
    return len(known) > 0 and all(
        isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in known
    )


def _numbers(column: np.ndarray) -> Floats:
    """(M,) the numbers, NaN where there is none."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    missing = pd.isna(column)
    return np.array(
        [np.nan if gone else number_or_nan(str(v)) for v, gone in zip(column, missing, strict=True)]
    )


def _texts(column: np.ndarray) -> list[str]:
    """The texts, "" where there is none."""
    missing = pd.isna(column)
    return ["" if gone else str(value) for value, gone in zip(column, missing, strict=True)]


def _text(number: float) -> str:
    """A number in the fewest digits that tell it from all others, "" for none."""
    return repr(float(number)).removesuffix(".0") if np.isfinite(number) else ""
