"""The lesson by keyboard, in the dark theme."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.tools.screenshots import open_page, settle

STEPS = '[aria-label^="Step "]'


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
    # From the slider one comes to the buttons: the help, Back, Forward.
    for _ in range(6):
        page.keyboard.press("Tab")
        if "Forward" in page.evaluate("document.activeElement.innerText"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="E-step 1: fill in with the ellipse").wait_for()
    expect(page.locator(STEPS).first).to_have_attribute(
        "aria-label", "Step 2: the learned ellipse has smallest variance 0.380, the planted 0.200."
    )
    page.wait_for_url("**learn_step=2*")
