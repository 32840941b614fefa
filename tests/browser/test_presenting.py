"""For the projector: at 1280 × 720 nothing is too small to be read from the back row."""

from __future__ import annotations

import pytest
from computed_runs import computed, small
from stored_runs import stored_comparison

from gmc_core.runs.store import Store
from tests.tools.screenshots import open_page, settle

LEAST = 18  # px
LEARN = ("two", "steps", "many")
SLIDER = '[data-testid="stMain"] [data-testid="stSlider"]'
PICTURE = '.gmc-plane svg, [data-testid="stPlotlyChart"]'
CHARTS = '[data-testid="stPlotlyChart"]'
SMALL = f"""() => {{
    const small = []
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {{
        const words = node.textContent.trim(), parent = node.parentElement
        if (!words || !parent.checkVisibility({{opacityProperty: true, visibilityProperty: true}}))
            continue
        const box = parent.getBoundingClientRect()
        if (box.width < 2 || box.height < 2 || parent.closest('script, style, .katex-mathml'))
            continue
        // Icons are letters of a font, and subscripts of a formula are smaller than its text.
        if (parent.closest('[data-testid="stIconMaterial"], .katex')) continue
        const size = parseFloat(getComputedStyle(parent).fontSize)
        if (size < {LEAST} - .05) small.push(`${{words.slice(0, 40)}}: ${{size}}`)
    }}
    return small
}}"""
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.timeout(240)
def test_no_small_text_on_the_projector(app, page):
    page.set_viewport_size({"width": 1280, "height": 720})
    learn = [f"learn?chapter={chapter}" for chapter in LEARN]
    with Store(app.home) as store:
        run = computed(store, small(items=60, iterations=3)).id
        compare = f"compare?comparison={stored_comparison(store).id}"
    others = (f"covariance?run={run}&view=titles", "runs?states=")
    for address in (f"fit?run={run}", compare, *learn, *others):
        open_page(page, f"{app.url}/{address}&present=1")
        settle(page)
        assert page.evaluate(SMALL) == [], address
        assert not page.evaluate(WIDER), address
        if address in learn:
            # The picture, and all that moves it, without scrolling.
            for seen in (page.locator(PICTURE).first, *page.locator(SLIDER).all()):
                box = seen.bounding_box()
                assert box["y"] + box["height"] <= 720, address
        if address == compare:  # what is chosen, the result, and both pictures
            for seen in (page.get_by_text("Lowest:"), *page.locator(CHARTS).all()):
                box = seen.bounding_box()
                assert box["y"] + box["height"] <= 720
