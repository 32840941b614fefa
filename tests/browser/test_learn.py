"""The lesson: by keyboard in the dark theme, and taken hold of in both."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from browser.steps import button
from gmc_core import lesson
from gmc_dashboard.learn import plane
from gmc_dashboard.shared.theme import palette
from tests.tools.screenshots import open_page, settle

STEPS = '[aria-label^="Step "]'
CALLS = """async ([source, calls]) => {
    const file = new Blob([source], {type: 'text/javascript'})
    const module = await import(URL.createObjectURL(file))
    return calls.map(([name, ...given]) => module[name](...given))
}"""
# The belief as the picture draws it, and as the core has computed it.
DRAWN = "Number(document.querySelector('.gmc-plane').dataset.mean)"
RUG = """[
    document.querySelector('.gmc-plane .field').getBoundingClientRect().left,
    Math.min(...[...document.querySelectorAll('.gmc-plane .rug.a')].map(
        mark => mark.getBoundingClientRect().left)),
]"""
COLOUR = "getComputedStyle(document.querySelector('.gmc-plane .rating')).stroke"


def test_the_steps_of_em_by_keyboard(app, new_page):
    page = new_page("dark")
    open_page(page, f"{app.url}/learn")
    page.get_by_role("radio", name="1 Two movies").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Start: every gap holds a 3").wait_for()
    settle(page)
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="M-step 1: measure the ellipse").wait_for()
    settle(page)
    # Above the slider stand the buttons: Play, Back, Step, Reset.
    for _ in range(6):
        page.keyboard.press("Shift+Tab")
        if "Step" in page.evaluate("document.activeElement.innerText"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="E-step 1: fill in with the ellipse").wait_for()
    expect(page.locator(STEPS).first).to_have_attribute(
        "aria-label", "Step 2: the learned ellipse has smallest variance 0.380, the planted 0.200."
    )
    page.wait_for_url("**learn_step=2*")


def test_the_pictures_own_arithmetic_is_the_cores(page):
    points = lesson.two_movies(30, 1.0, 0.6).complete
    source, target = lesson.gaussian_of(points), lesson.pair_gaussian(-0.7, (0.5, 1.4), (2.0, 4.0))
    plain = [
        {"mean": one.mean.tolist(), "cov": lesson.matrix(one).tolist()} for one in (source, target)
    ]
    page.goto("about:blank")
    ratings = [(0, 4.5, 0.0), (1, 1.5, 0.4)]
    calls = [
        ["moments", points.tolist()],
        *(["conditional", plain[1], noise, movie, rating] for movie, rating, noise in ratings),
        ["axes", plain[1]["cov"]],
        *(["carry", point, *plain] for point in points[:3].tolist()),
    ]
    measured, first, second, axes, *carried = page.evaluate(CALLS, [plane.script(), calls])
    np.testing.assert_allclose(measured["mean"], source.mean)
    np.testing.assert_allclose(measured["cov"], lesson.matrix(source))
    for (movie, rating, noise), found in zip(ratings, (first, second), strict=True):
        core = lesson.model_of(target, lesson.PAIR, noise).posterior([movie], [rating])
        assert found["mean"] == pytest.approx(core.mean[1 - movie])
        assert found["sd"] == pytest.approx(core.variance[1 - movie] ** 0.5)
    variances = sorted(axis["sd"] ** 2 for axis in axes)
    np.testing.assert_allclose(variances, lesson.eigenvalues(target))
    rising, falling = axes
    built = ["covariance", rising["sd"], rising["angle"], falling["sd"]]
    (covariance,) = page.evaluate(CALLS, [plane.script(), [built]])
    np.testing.assert_allclose(covariance, lesson.matrix(target), atol=1e-12)
    np.testing.assert_allclose(carried, lesson.carried(points[:3], source, target))


def test_two_movies_are_taken_hold_of(app, page):
    open_page(page, f"{app.url}/learn")
    fill = page.get_by_test_id("stMetricValue").first
    correlation = page.get_by_role("slider", name="Correlation")
    rating = page.get_by_role("slider", name="and gave it")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # the picture follows without another run
        colour = rgb(palette(theme == "dark").contrast)
        page.wait_for_function(f"{COLOUR} === '{colour}'")
        if theme == "light":
            before = value(correlation)
            drag(page, page.locator(".grip.axis0 .hit"), 60, 30)
            follows(page, fill, correlation, before)
            before = value(correlation)
            drag(page, page.locator(".user .hit").nth(5), -90, -120)
            page.wait_for_url("**learn_cloud_users=*")
            follows(page, fill, correlation, before)
        else:
            page.get_by_role("slider", name="Rating of Star Harbour").focus()
            for _ in range(3):
                page.keyboard.press("ArrowLeft")
            follows(page, fill, rating, 4.5)
            assert value(rating) == pytest.approx(4.2)
            # And the other way: the picture follows its slider.
            rating.focus()
            page.keyboard.press("ArrowRight")
            expect(page.get_by_role("slider", name="Rating of Star Harbour")).to_have_attribute(
                "aria-valuetext", "4.3 stars"
            )
    button(page, "First data").click()
    expect(correlation).to_have_value("0.8")
    # Ratings that lie beyond the picture have no mark in the words beside it.
    open_page(page, f"{app.url}/learn?learn_mean_a=1&learn_sd_a=1.6")
    expect(page.locator(".gmc-plane .rug.a").first).to_be_attached()
    left, first = page.evaluate(RUG)
    assert first >= left


def drag(page, handle, right, down):
    """By mouse, on the way to where it is let go."""
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for share in (0.3, 0.7, 1.0):
        page.mouse.move(x + share * right, y + share * down)
    page.mouse.up()


def follows(page, fill, slider, before):
    """What is drawn becomes what the core has computed, and the slider has moved."""
    drawn = page.evaluate(DRAWN)
    expect(page.locator(".gmc-plane.still")).to_have_count(0)  # all that was moved is answered
    expect(slider).not_to_have_value(f"{before:g}")
    settle(page)
    number = float(fill.inner_text())
    assert number == pytest.approx(page.evaluate(DRAWN), abs=0.006)
    assert number == pytest.approx(drawn, abs=0.02)  # sliders have steps of .01


def value(slider):
    return float(slider.input_value())


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))
