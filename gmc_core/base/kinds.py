"""Kinds of values that a setting can have: how each is checked, read from text and written.

A kind knows nothing of what the value is for. It never changes a number: one that is stored as 1
stays 1, since the keys of stored runs are hashes of what was written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol


class Kind(Protocol):
    """What all kinds can do.

    range : what is allowed, as the end of "ε must be …". metavar : for a value in a help text.
    repeated : a value is a tuple, and the option is given once for each of its parts, which
    :meth:`parse` and :meth:`write` are about.
    """

    @property
    def range(self) -> str: ...
    @property
    def metavar(self) -> str: ...
    @property
    def repeated(self) -> bool: ...
    def holds(self, value: Any) -> bool:
        """Whether it is one of these, whatever JSON or a caller has put there."""
        ...

    def parse(self, text: str) -> Any:
        """The value that a text stands for; its range is not checked.

        Raises
        ------
        ValueError
            If the text is none; the message says what is expected.
        """
        ...

    def write(self, value: Any) -> str:
        """The text that :meth:`parse` reads as this value."""
        ...

    def normal(self, value: Any) -> Any:
        """The value as it is kept: a list from JSON becomes a tuple."""
        ...


def shortest_text(value: float | str) -> str:
    """The shortest text that reads back as the same number; a text stays as it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def listed(words: Sequence[str], last: str = "or") -> str:
    """ "a, b or c"."""
    head, tail = list(words[:-1]), list(words[-1:])
    return f" {last} ".join([", ".join(head), *tail] if head else tail)


_COUNTS = {2: "two", 3: "three", 4: "four"}


def _between(what: str, low: float, high: float, *, above: bool = False) -> str:
    """ "a number of at least 0", "a whole number from 1 to 20"."""
    if low > -math.inf and high < math.inf and not above:
        return f"{what} from {low:g} to {high:g}"
    least = f" {'above' if above else 'of at least'} {low:g}" if low > -math.inf else ""
    most = f"at most {high:g}" if high < math.inf else ""
    return f"{what}{least}{' and' if least and most else ' of' if most else ''} {most}".rstrip()


class Plain:
    """What most kinds have in common: a value is kept and written as it is."""

    metavar = "VALUE"
    repeated = False

    def normal(self, value: Any) -> Any:
        return value

    def write(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Number(Plain):
    """A finite number; ``above`` : the lower end itself is not allowed."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    metavar: str = "NUMBER"

    @property
    def range(self) -> str:
        return _between("a number", self.low, self.high, above=self.above)

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # JSON knows whole numbers that no float can hold
            return False
        inside = self.low < number if self.above else self.low <= number
        return math.isfinite(number) and inside and number <= self.high

    def parse(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{text!r} is no number") from None

    def write(self, value: Any) -> str:
        return shortest_text(value)


@dataclass(frozen=True)
class Whole(Plain):
    """A whole number; the texts 5_000 and 5e3 are refused."""

    low: int = 0
    high: int = 2**63 - 1
    metavar: str = "N"

    @property
    def range(self) -> str:
        low = -math.inf if self.low == -(2**63) else self.low
        high = math.inf if self.high == 2**63 - 1 else self.high
        return _between("a whole number", low, high)

    def holds(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high

    def normal(self, value: Any) -> Any:
        """NumPy's whole numbers become Python's; True is refused, though an int in Python."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            return value
        return int(value)

    def parse(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{text!r} is no whole number") from None


@dataclass(frozen=True)
class WholeOrWord(Plain):
    """A whole number of at least ``low``, or the word ``word``."""

    low: int
    word: str
    metavar: str = "N"

    @property
    def range(self) -> str:
        return f"{Whole(self.low).range} or {self.word}"

    def holds(self, value: Any) -> bool:
        return Whole(self.low).holds(value) or (isinstance(value, str) and value == self.word)

    def normal(self, value: Any) -> Any:
        return Whole().normal(value)

    def parse(self, text: str) -> int | str:
        return text if text == self.word else Whole().parse(text)


@dataclass(frozen=True)
class OneOf(Plain):
    """One of a few words."""

    choices: tuple[str, ...]
    metavar: str = ""

    @property
    def range(self) -> str:
        return listed([word if word.isalnum() else repr(word) for word in self.choices])

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def parse(self, text: str) -> str:
        if text not in self.choices:
            raise ValueError(f"{text!r} is none of {', '.join(self.choices)}")
        return text


@dataclass(frozen=True)
class YesNo(Plain):
    """True or false; on the command line ``--option`` and ``--no-option``."""

    range = "true or false"

    def holds(self, value: Any) -> bool:
        return isinstance(value, bool)

    def parse(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"

    def write(self, value: Any) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Words(Plain):
    """A text, such as the path of a file."""

    metavar: str = "TEXT"
    range = "a text"

    def normal(self, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    def holds(self, value: Any) -> bool:
        return isinstance(value, str)

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Numbers(Plain):
    """``count`` numbers of at least ``low``, written with commas between them."""

    count: int
    low: float = 0.0
    metavar: str = "NUMBER,…"
    example: str = ""

    @property
    def range(self) -> str:
        return f"{_COUNTS.get(self.count, self.count)} numbers of at least {self.low:g}"

    def holds(self, value: Any) -> bool:
        one = Number(self.low)
        return isinstance(value, tuple) and len(value) == self.count and all(map(one.holds, value))

    def normal(self, value: Any) -> Any:
        if isinstance(value, list | tuple) and all(map(Number().holds, value)):
            return tuple(map(float, value))
        return value

    def parse(self, text: str) -> tuple[float, ...]:
        parts = text.split(",")
        if len(parts) != self.count:
            raise ValueError(f"{text!r} is no list of {self.count} numbers such as {self.example}")
        return tuple(Number().parse(part) for part in parts)

    def write(self, value: Any) -> str:
        return ",".join(map(shortest_text, value))


@dataclass(frozen=True)
class Size(Plain):
    """Height and width, each at least 1, written HxW."""

    metavar: str = "HxW"
    range = "two whole numbers of at least 1, height and width"

    def holds(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == 2 and all(map(Whole(1).holds, value))

    def normal(self, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def parse(self, text: str) -> tuple[int, int]:
        height, _, width = text.lower().partition("x")
        if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
            raise ValueError(f"{text!r} is no HEIGHTxWIDTH such as 16x16")
        return int(height), int(width)

    def write(self, value: Any) -> str:
        return "x".join(map(str, value))


@dataclass(frozen=True)
class NumberOrFile(Plain):
    """A number of at least ``low``, or the path of a file with one of the suffixes."""

    low: float
    suffixes: tuple[str, ...]
    metavar: str = "NUMBER|FILE"

    @property
    def range(self) -> str:
        return f"a number of at least {self.low:g} or a file ({listed(self.suffixes)})"

    def holds(self, value: Any) -> bool:
        # The file's content is checked by its reader, whose errors name the file.
        return isinstance(value, str) or Number(self.low).holds(value)

    def normal(self, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    def parse(self, text: str) -> float | str:
        try:
            return float(text)
        except ValueError:
            if text.endswith(self.suffixes):
                return text
        raise ValueError(f"{text!r} is no number and no file ({listed(self.suffixes)})")

    def write(self, value: Any) -> str:
        return shortest_text(value)
