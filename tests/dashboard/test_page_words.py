"""Remedies of the core that name options are told by the names of the pages' controls."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.affordable import TooLongError, Wanted, check_affordable, cost_and_time
from gmc_core.fitting.shape import Shape
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit
from gmc_dashboard.shared.components import sentence_of
from gmc_dashboard.shared.page_words import CONTROLS, in_page_words
from gmc_dashboard.shared.places import uploads_folder
from tests.tools.serving import ROOT


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("keep fewer (--max-items).", "keep fewer (“Items, at most” on the Data page)."),
        ("keep --max-items 500.", "keep “Items, at most” on the Data page: 500."),
        ("take it (--model factor),", "take it (“Low rank, for large tables” as the model),"),
        ("raise it (--epsilon)", "raise it (“Regularization ε”)"),
        ("compute with --dtype float32.", "compute with “Precision”: float32."),
        ("choose --dtype there", "choose “Precision” there"),
        ("--no-ordered reads it", "“Ratings are ordered values”: off reads it"),
        ("say so (--columns user=NUMBER)", "say so (the columns on the Data page: user=NUMBER)"),
        ("say so (--decimal ,)", "say so (“Decimal sign” on the Data page: ,)"),
        (
            "give --scale LOW,HIGH.",
            "give “Lowest rating” and “Highest rating” on the Data page.",
        ),
        ("--unheard-of stays", "--unheard-of stays"),
        ("Lower min_user_ratings: it", "Lower “Ratings per user, at least” on the Data page: it"),
        ("gmc fit --max-items 5", "gmc fit --max-items 5"),
        ("gmc runs resume 12ab --long starts it.", "gmc runs resume 12ab --long starts it."),
    ],
)
def test_an_option_is_called_as_its_control(told, shown):
    assert in_page_words(told) == shown


def test_an_uploaded_file_has_its_own_name():
    file = uploads_folder() / "0123456789abcdef" / "my ratings.csv"
    assert in_page_words(f"{file}, line 3: no number") == "my ratings.csv, line 3: no number"
    assert in_page_words("/data/uploads/mine.csv, line 3") == "/data/uploads/mine.csv, line 3"


def test_controls_are_called_as_on_their_page():
    sources = [ROOT / "pages" / "data.py", *(ROOT / "gmc_dashboard" / "data").glob("*.py")]
    page = "".join(path.read_text("utf-8") for path in sources).replace(
        "“not rated”", "‘not rated’"
    )
    named = [name for told in CONTROLS.values() for name in re.findall("“([^”]+)”", told)]
    assert len(named) > 8
    assert [name for name in named if name not in page] == []


def test_every_setting_with_a_control_has_its_name():
    for one in settings_of_a_fit().values():
        if one.control is not None:
            assert in_page_words(f"({one.flag})") == f"(“{one.control.label.split(' (')[0]}”)"


def test_a_refusal_on_a_page_names_no_option():
    settings = FitSettings(model="exact", iterations=10).resolved(RatingScale(1, 5, 1), 25_000)
    shape = Shape(np.full(200_000, 300), 25_000)
    with pytest.raises(TooLongError) as refused:
        check_affordable(Wanted(settings), *cost_and_time(settings, shape), memory_limit=10**15)
    assert "--" in str(refused.value)
    shown = sentence_of(refused.value)
    assert not re.search(r"--\w", shown)
    assert "Items, at most" in shown and "Low rank, for large tables" in shown


def test_an_error_is_escaped_after_it_was_translated():
    assert sentence_of(ConfigError("a*b (--max-items)")) == (
        "a\\*b (“Items, at most” on the Data page)"
    )
