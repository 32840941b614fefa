"""What is known of users besides their ratings (age, gender, …), as groups of users.

A user's signal is then f = μ + B x + g with g ~ N(0, Σ): the covariates x say which
groups the user belongs to, and a column of B (N × G) is what a group likes more than
others do. That is the conditional form of a Gaussian whose signal has x appended as
coordinates that are always observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import Ratings
from gmc_core.data.readers.text import number_or_nan
from gmc_core.data.user_info import attribute_column, row_of
from gmc_core.gaussian.signals import Signals

Floats = npt.NDArray[np.float64]

# A group of fewer users says little that their ratings do not.
LEAST_USERS = 20
# Groups of one attribute; of more only the largest.
MOST_GROUPS = 30
# Characters of a text that names a group.
_LONGEST = 80
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

    shares : (G,) of the users whose attribute is known.

    Raises
    ------
    ConfigError
        If labels or attributes repeat, there are too many, or a share is none.
    """

    _attributes: tuple[_Attribute, ...]
    shares: Floats

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """(G,) such as "gender F"."""
        return tuple(label for own in self._attributes for label in own.labels)

    def __post_init__(self) -> None:
        names, labels = [own.name for own in self._attributes], self.labels
        right = self.shares.shape == (len(labels),)
        right &= len(set(labels)) == len(labels) <= MOST_IN_ALL and len(set(names)) == len(names)
        if not (right and np.all((self.shares > 0) & (self.shares < 1))):
            raise ConfigError("The groups of users and their shares do not fit together.")

    @classmethod
    def of(cls, user_info: Mapping[str, np.ndarray]) -> UserGroups:
        """The groups that these users (attribute name → (M,) array) fall into.

        A text makes a group of the users who have it, a number with few values as well;
        one with many is cut into ranges. Groups of fewer than ``LEAST_USERS`` are none,
        nor those of texts too long for a name, nor is an attribute that puts most users
        into no group, as a zip code does. Attributes are taken by the alphabet; one whose
        labels are those of one before, or with which there are more than ``MOST_IN_ALL``
        groups, is left out.
        """
        attributes: list[_Attribute] = []
        shares: list[Floats] = [np.zeros(0)]
        labels: list[str] = []
        for name, values in sorted(user_info.items()):
            column = attribute_column(values)
            attribute = _attribute(name, column)
            if attribute is None or not set(attribute.labels).isdisjoint(labels):
                continue
            if len(labels) + len(attribute.labels) > MOST_IN_ALL:
                continue
            attributes.append(attribute)
            labels += attribute.labels
            shares.append(np.nanmean(attribute.members(column), axis=0))
        return cls(tuple(attributes), np.concatenate(shares))

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
        if not attributes:
            raise ConfigError("There are no groups of users where some were described.")
        return cls(attributes, shares)

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
        columns = [attribute_column(user_info.get(own.name, unknown)) for own in self._attributes]
        parts = [own.members(column) for own, column in zip(self._attributes, columns, strict=True)]
        return np.hstack([np.zeros((users, 0)), *parts])

    def covariates(self, user_info: Mapping[str, np.ndarray], users: int) -> Floats:
        """(M, G) the x: membership less its share, so that they add up to 0 over the users
        that the groups were made of; 0 where the attribute is unknown."""
        x = self.members(user_info, users)
        x -= self.shares
        return np.nan_to_num(x, copy=False, nan=0.0)

    def of_user(self, user_info: Mapping[str, np.ndarray], user: int) -> list[str]:
        """Labels of the groups of one user."""
        member = self.members(row_of(user_info, user), 1)[0] == 1
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
    numeric = column.dtype.kind in "if"
    if numeric:
        numbers = _numbers(column)
        numbers = numbers[np.isfinite(numbers)]
        if len(np.unique(numbers)) > MOST_GROUPS:
            edges = _edges(numbers)
            return _Attribute(name, edges=edges) if edges else None
        texts = [_text(x) for x in numbers]
    else:
        texts = [text for text in _texts(column) if text]
    found, counts = np.unique(np.array(texts, dtype=object), return_counts=True)
    order = [k for k in np.argsort(-counts, kind="stable") if len(found[k]) <= _LONGEST]
    kept = [k for k in order if LEAST_USERS <= counts[k] < len(texts)][:MOST_GROUPS]
    if not kept or counts[kept].sum() < len(texts) / 2:
        return None
    chosen = [str(found[k]) for k in sorted(kept)]  # in the order of the alphabet
    return _Attribute(
        name, texts=tuple(sorted(chosen, key=float) if numeric else chosen), numeric=numeric
    )


def _edges(numbers: Floats) -> tuple[float, ...]:
    """Where numbers are cut into about ``RANGES`` ranges, none of few users."""
    shares = np.arange(1, RANGES) / RANGES
    kept: list[float] = []
    below = 0
    for cut in np.unique(np.quantile(numbers, shares, method="inverted_cdf")).tolist():
        up_to = int(np.count_nonzero(numbers <= cut))
        if min(up_to - below, len(numbers) - up_to) >= LEAST_USERS:
            kept.append(cut)
            below = up_to
    return tuple(kept)


def _numbers(column: np.ndarray) -> Floats:
    """(M,) the numbers, NaN where there is none."""
    if column.dtype.kind in "if":
        return column.astype(np.float64)
    return np.array([np.nan if text is None else number_or_nan(text) for text in column])


def _texts(column: np.ndarray) -> list[str]:
    """The texts, "" where there is none."""
    if column.dtype.kind in "if":
        return [_text(number) for number in _numbers(column)]
    return ["" if text is None else text for text in column]


def _text(number: float) -> str:
    """A number in the fewest digits that tell it from all others, "" for none."""
    return repr(float(number)).removesuffix(".0") if np.isfinite(number) else ""
