"""Options for reading a person's own file, each declared once for the command line and Python.

In Python each is a field of :class:`DelimitedOptions`; on the command line the columns are one
option (``--columns``) and the rating scale is another (``--scale``). NumPy is not imported, so that
help texts come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import Kind, Number, OneOf, Plain, Words, YesNo, shortest_text
from gmc_core.base.setting import Setting, check, declared, setting

# By name, in the order of gmc_core.data.readers.loading, whose modules NumPy comes with.
FORMATS = (
    "movielens-dat",
    "movielens-100k",
    "movielens-csv",
    "eachmovie",
    "netflix",
    "matrix-market",
    "jester-dat",
    "jester",
    "delimited",
)
DuplicatePolicy = Literal["last", "first", "mean", "error"]
POLICIES: tuple[DuplicatePolicy, ...] = ("last", "first", "mean", "error")
ROLES = ("user", "item", "rating", "timestamp", "title")
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_NAMES = {"\t": "tab", " ": "space"}  # of what is hard to read in a command


@dataclass(frozen=True)
class Separator(Plain):
    """One character, "::", or "whitespace" for runs of blanks.

    ascii : only a character of ASCII; Arrow, which reads ratings, takes no other.
    """

    ascii: bool = True
    metavar: str = "CHAR"
    range = "one character, '::' or 'whitespace'"

    def holds(self, value: Any) -> bool:
        if not isinstance(value, str) or value in ("::", "whitespace"):
            return isinstance(value, str)
        known = value.isascii() or not self.ascii
        return len(value) == 1 and known and value not in '"\r\n'

    def parse(self, text: str) -> str:
        return _NAMED.get(text, text)

    def write(self, value: Any) -> str:
        return _NAMES.get(value, value)


@dataclass(frozen=True)
class ColumnOf(Plain):
    """A column's name, or its number from 0."""

    range = "a column's name, or its number from 0"

    def holds(self, value: Any) -> bool:
        return isinstance(value, str | int) and not isinstance(value, bool)

    def parse(self, text: str) -> str | int:
        """People count from 1."""
        return int(text) - 1 if text.isdecimal() else text

    def write(self, value: Any) -> str:
        return str(value + 1) if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class Columns(Plain):
    """Role → column, written ROLE=COLUMN with commas between."""

    metavar: str = "ROLE=COLUMN,…"
    range = f"columns of {', '.join(ROLES)}"

    def holds(self, value: Any) -> bool:
        return isinstance(value, dict) and set(value) <= set(ROLES)

    def parse(self, text: str) -> dict[str, str | int]:
        found: dict[str, str | int] = {}
        for part in text.split(","):
            role, equals, column = (piece.strip() for piece in part.partition("="))
            if role not in ROLES or not equals or not column or column == "0":
                raise ValueError(
                    f"{part.strip()!r} is no ROLE=COLUMN; roles are {', '.join(ROLES)}, and a "
                    "column is its name or its number from 1"
                )
            found[role] = ColumnOf().parse(column)
        return found

    def write(self, value: Any) -> str:
        return ",".join(f"{role}={ColumnOf().write(column)}" for role, column in value.items())


@dataclass(frozen=True)
class Step(Plain):
    """The step of a rating scale, or "continuous"."""

    range = "a number above 0, or continuous"

    def holds(self, value: Any) -> bool:
        return value == "continuous" or Number(0).holds(value)

    def parse(self, text: str) -> float | str:
        return text if text == "continuous" else Number().parse(text)

    def write(self, value: Any) -> str:
        return shortest_text(value)


@dataclass(frozen=True)
class Scale(Plain):
    """The ends of a rating scale and its step, or None where that is to be found."""

    metavar: str = "LOW,HIGH[,STEP]"
    range = "two ends and perhaps a step"

    def holds(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == 3

    def parse(self, text: str) -> tuple[float, float, float | str | None]:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) not in (2, 3):
            raise ValueError(f"{text!r} is no LOW,HIGH[,STEP] such as 0.5,5,0.5")
        step = Step().parse(parts[2]) if len(parts) == 3 else None
        return Number().parse(parts[0]), Number().parse(parts[1]), step

    def write(self, value: Any) -> str:
        return ",".join(shortest_text(part) for part in value if part is not None)


@dataclass(frozen=True)
class Codes(Plain):
    """Values of a column, each a number or a text; the option is repeated."""

    metavar: str = "VALUE"
    repeated = True
    range = "a list of values, each a number or a text"

    def holds(self, value: Any) -> bool:
        return isinstance(value, tuple) and all(isinstance(one, str | int | float) for one in value)

    def normal(self, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def parse(self, text: str) -> str:
        return text

    def write(self, value: Any) -> str:
        return shortest_text(value)


SEPARATOR = Setting(
    name="separator",
    kind=Separator(),
    noun="The separator",
    flag="--separator",
    about="between columns: a character, '::', tab, comma, semicolon, pipe or whitespace",
)
DECIMAL = Setting(
    name="decimal",
    kind=OneOf((".", ","), metavar="SIGN"),
    noun="The decimal sign",
    flag="--decimal",
    about="decimal sign of the numbers: . or ,",
)
ENCODING = Setting(
    name="encoding",
    kind=Words("NAME"),
    noun="The encoding",
    flag="--encoding",
    about="such as utf-8 or cp1252",
)


def _part(kind: Kind, noun: str) -> Any:
    """A field that is a part of an option, and has none of its own."""
    return setting(None, Setting(kind=kind, noun=noun, about="", flag=""))


@dataclass(frozen=True)
class DelimitedOptions:
    """How to read a delimited text; what is None is found from the first rows.

    Attributes
    ----------
    separator : one character, ``"::"``, or ``"whitespace"`` for runs of blanks.
    header : whether the first line holds column names.
    decimal : ``"."`` or ``","``.
    encoding : a Python encoding name, such as ``"utf-8"`` or ``"cp1252"``.
    user, item, rating, timestamp, title : each a column name or 0-based index.
    low, high : the ends of the rating scale; both or neither.
    step : the step of the scale, or ``"continuous"``.
    not_rated : values of the rating column that mean "not rated", such as -1, 99 or "NR"
        ("": a blank); their rows are left out and counted.

    Raises
    ------
    ConfigError
        If a value is out of its range, or has no meaning beside the others.
    """

    separator: str | None = setting(None, SEPARATOR)
    header: bool | None = setting(
        None,
        Setting(
            kind=YesNo(),
            noun="Whether there is a header",
            flag="--header",
            about="whether the first line holds the columns' names",
        ),
    )
    decimal: str | None = setting(None, DECIMAL)
    encoding: str | None = setting(None, ENCODING)
    user: str | int | None = _part(ColumnOf(), "The column of users")
    item: str | int | None = _part(ColumnOf(), "The column of items")
    rating: str | int | None = _part(ColumnOf(), "The column of ratings")
    timestamp: str | int | None = _part(ColumnOf(), "The column of times")
    title: str | int | None = _part(ColumnOf(), "The column of titles")
    low: float | None = _part(Number(), "The low end of the rating scale")
    high: float | None = _part(Number(), "The high end of the rating scale")
    step: float | Literal["continuous"] | None = _part(Step(), "The step of the rating scale")
    not_rated: tuple[str | float, ...] = setting(
        (),
        Setting(
            kind=Codes(),
            noun="What means “not rated”",
            flag="--not-rated",
            about='a value of the rating column that means "not rated", such as -1 or 99; can be '
            "repeated. Its rows are left out and counted",
        ),
    )

    def __post_init__(self) -> None:
        check(self)
        if (self.low is None) != (self.high is None):
            raise ConfigError("Give both ends of the rating scale, or neither.")
        if self.low is not None and self.high is not None and self.step != "continuous":
            from gmc_core.data.ratings import RatingScale

            RatingScale(self.low, self.high, self.step or None)  # checks the ends and the step
        chosen = [column for role in ROLES if (column := getattr(self, role)) is not None]
        for column in chosen:
            if chosen.count(column) > 1:
                raise ConfigError(f"The column {column!r} is given for two purposes.")


def _options() -> Iterator[Setting]:
    yield Setting(
        name="format",
        kind=OneOf(FORMATS, metavar="NAME"),
        noun="The format",
        flag="--format",
        about=" | ".join(FORMATS),
    )
    yield from (one for one in declared(DelimitedOptions).values() if one.flag)
    yield Setting(
        name="columns",
        kind=Columns(),
        noun="The columns",
        flag="--columns",
        about="which column is what, by name or number from 1; roles: " + ", ".join(ROLES),
    )
    yield Setting(
        name="scale",
        kind=Scale(),
        noun="The rating scale",
        flag="--scale",
        about="rating scale, such as 0.5,5,0.5 or 1,5; STEP may be 'continuous'. With a negative "
        "LOW write --scale=-10,10,continuous",
    )
    yield Setting(
        name="beside",
        kind=YesNo(),
        noun="Whether files beside the ratings are used",
        flag="--beside",
        about="take titles, genres and users' attributes of a table of one's own, such as u1.base, "
        "from the files of MovieLens or EachMovie in its folder",
        usual_words="off",
    )
    yield Setting(
        name="duplicates",
        kind=OneOf(POLICIES),
        noun="The choice among repeated ratings",
        flag="--duplicates",
        about="which of several ratings of one item by one user counts",
        usual_words="last",
    )


# Name → option of the command line.
OPTIONS: Mapping[str, Setting] = {one.name: one for one in _options()}
_WHOLE = {name: one for name, one in OPTIONS.items() if name not in ("columns", "scale")}


def reading_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """``ExperimentConfig.reading`` from values of :data:`OPTIONS`, None for what is not given."""
    reading = {name: given[name] for name in _WHOLE if given.get(name) is not None}
    reading |= given.get("columns") or {}
    if given.get("scale") is not None:
        parts = zip(("low", "high", "step"), given["scale"], strict=True)
        reading |= {name: value for name, value in parts if value is not None}
    return reading


def options_of(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The way back from :func:`reading_of`."""
    given = {name: reading[name] for name in _WHOLE if reading.get(name) not in (None, ())}
    columns = {role: reading[role] for role in ROLES if reading.get(role) is not None}
    if columns:
        given["columns"] = columns
    if reading.get("low") is not None and reading.get("high") is not None:
        given["scale"] = (reading["low"], reading["high"], reading.get("step"))
    return given


def sensible(reading: Mapping[Any, Any]) -> dict[str, Any]:
    """What of a foreign description of a reading has sense; the rest is left out."""
    known = {**declared(DelimitedOptions), **_WHOLE}
    return {
        name: value
        for name, value in reading.items()
        if name in known and known[name].kind.holds(known[name].kind.normal(value))
    }
