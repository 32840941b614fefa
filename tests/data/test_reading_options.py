"""The options that say how to read a file: declared once, checked wherever they come from."""

from __future__ import annotations

import pytest

from gmc_core.base.errors import ConfigError
from gmc_core.cli.values import typed
from gmc_core.data.reading_options import (
    OPTIONS,
    Columns,
    DelimitedOptions,
    options_of,
    reading_of,
    sensible,
)
from gmc_core.tables.wide_reader import TableOptions

READING = {
    "format": "delimited",
    "separator": "\t",
    "header": False,
    "decimal": ",",
    "encoding": "cp1252",
    "not_rated": (-1, "NR"),
    "user": 2,
    "item": "what",
    "low": 1.0,
    "high": 10.0,
    "step": "continuous",
    "duplicates": "mean",
}


def test_a_reading_is_written_as_options_and_read_again():
    given = options_of(READING)
    assert given["columns"] == {"user": 2, "item": "what"}
    assert given["scale"] == (1.0, 10.0, "continuous")
    assert reading_of(given) == READING
    words = [word for name, value in given.items() for word in OPTIONS[name].words(value)]
    assert {"--separator=tab", "--no-header", "--columns=user=3,item=what"} <= set(words)
    assert {"--not-rated=-1", "--not-rated=NR", "--scale=1,10,continuous"} <= set(words)


def test_of_a_foreign_description_only_what_has_sense_is_taken():
    odd = {
        "separator": "ab", "decimal": 3, "header": "yes", "user": None, "low": float("nan"),
        "not_rated": [[1]], "format": "nonesuch", "other": "x", 3: "y",
    }  # fmt: skip
    assert sensible(odd) == {}
    listed = {**READING, "not_rated": [-1, "NR"]}
    assert sensible({**odd, **listed}) == listed


@pytest.mark.parametrize("options", [DelimitedOptions, TableOptions])
def test_ratings_and_tables_refuse_the_same_separators_and_signs(options):
    for separator in ("::", "whitespace", ";", " "):
        assert options(separator=separator).separator == separator
    for separator in ("", "ab", '"', "\n", 3):
        with pytest.raises(ConfigError, match="separator must be one character"):
            options(separator=separator)
    with pytest.raises(ConfigError, match=r"decimal sign must be '\.' or ',', not ';'"):
        options(decimal=";")


def test_only_tables_may_be_separated_by_what_arrow_cannot_read():
    assert TableOptions(separator="§").separator == "§"
    with pytest.raises(ConfigError, match="one character"):
        DelimitedOptions(separator="§")


@pytest.mark.parametrize("text", ["user", "user=0", "who=1", "user=1,,item=2"])
def test_columns_without_sense_are_refused(text):
    with pytest.raises(Exception, match="is no ROLE=COLUMN"):
        typed(Columns())(text)
