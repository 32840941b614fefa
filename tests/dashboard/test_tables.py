"""The dashboard's CSV files cannot run anything in a spreadsheet."""

from __future__ import annotations

import pandas as pd
import pytest

from gmc_dashboard.shared.tables import inert, to_csv


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\tx", "\nx", "  =1+1", "\u00a0@x", " +cmd"]
)
def test_text_that_a_spreadsheet_could_run_gets_an_apostrophe(text):
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("text", ["\rx", "\r\nx"])
def test_line_ends_become_those_that_are_put_in_quotes(text):
    assert inert(text) == "'\nx"


@pytest.mark.parametrize("value", ["Heat (1995)", "007", "", " 12", 5, -2.5, None])
def test_everything_else_stays_as_it_is(value):
    assert inert(value) is value or inert(value) == value


def test_headers_cells_and_index_are_inert_and_numbers_exact():
    table = pd.DataFrame({"=title": [" =A1"], "rating": [-2.5]}, index=["@me"])
    text = to_csv(table, index=True).decode("utf-8-sig")
    assert text.splitlines() == [",'=title,rating", "'@me,' =A1,-2.5"]
