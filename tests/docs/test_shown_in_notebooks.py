"""Fits, models, recommendations and explanations as HTML: small, escaped, true."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gmc_core.base import html
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.splits import no_split, weak_split

BAD = '<script>alert(1)</script> & "co"'


class Text(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((30, 6)) < 0.7)
    table = Ratings.from_triplets(
        users, items, rng.integers(1, 6, len(users)).astype(float), RatingScale(1, 5, 1)
    )
    titles = (BAD, *(f"Film {k}" for k in range(1, 6)))
    return replace(table, name="<b>data</b>", item_info=replace(table.item_info, titles=titles))


def test_a_fit_shows_its_curve_and_its_settings(ratings):
    fitted = run_fit(weak_split(ratings, 0), FitSettings(iterations=3, epsilon=0.25))
    page = Text(fitted._repr_html_())
    assert {"svg", "table"} <= set(page.tags) and not {"script", "b"} & set(page.tags)
    assert "0.25" in page.words
    assert f"NMAE {fitted.history[-1].nmae:.4f}" in " ".join(page.words)
    assert [record.iteration for record in fitted.history] == [1, 2, 3]


def test_without_hold_out_it_draws_the_likelihood_and_without_iterations_nothing(ratings):
    page = Text(run_fit(no_split(ratings), FitSettings(iterations=2))._repr_html_())
    assert "log-likelihood by iteration" in page.words
    page = Text(run_fit(no_split(ratings), FitSettings(iterations=0))._repr_html_())
    assert "svg" not in page.tags and "no iteration yet" in " ".join(page.words)


def test_a_model_and_what_it_says_are_escaped_and_add_up(ratings):
    model = run_fit(no_split(ratings), FitSettings(iterations=2)).model()
    belief = model.posterior([0, 1], [5.0, 2.0])
    found = model.recommend(belief, 3)
    why = model.explain(belief, found[0].item)
    assert why.total == pytest.approx(found[0].latent)
    for shown in (model, found, why):
        assert "script" not in Text(shown._repr_html_()).tags
    page = Text(why._repr_html_())
    assert BAD in page.words and f"{why.total:.3f}" in page.words
    assert len(found) == 3 and isinstance(found, list)  # lists as before


def test_a_curve_leaves_gaps_and_needs_two_points():
    assert html.curve([0.5], "e") == "" == html.curve([0.5, math.nan], "e")
    path = html.curve([0.5, math.nan, 0.4, 0.3], "e").split(' d="')[1].split('"')[0]
    assert path.count("M") == 2 and "nan" not in path
    assert "L" in html.curve([0.4, 0.4], "e")


def test_showing_imports_nothing_heavy():
    heavy = "{'numpy', 'plotly', 'IPython'}"
    code = f"import sys, gmc_core.base.html; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
