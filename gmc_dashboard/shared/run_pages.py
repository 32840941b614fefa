"""Which page shows a run: fits, sweeps and comparisons have one each."""

from __future__ import annotations

from typing import NamedTuple

from gmc_core.runs.store import Run


class Place(NamedTuple):
    """A page, its parameter that names the run, what the run is called there, and an icon."""

    page: str
    parameter: str
    word: str
    icon: str

    def query(self, run: Run) -> dict[str, str]:
        """For ``st.page_link``."""
        return {self.parameter: run.id}


PLACES = {
    "run": Place("pages/fit.py", "run", "fit", ":material/show_chart:"),
    "sweep": Place("pages/sensitivity.py", "sweep", "sweep", ":material/tune:"),
    "comparison": Place("pages/compare.py", "comparison", "comparison", ":material/balance:"),
}


def place_of(run: Run) -> Place:
    """Where it is shown."""
    return PLACES[run.kind]


def link(run: Run) -> str:
    """The same relative to the dashboard's other pages."""
    page = place_of(run).page.removeprefix("pages/").removesuffix(".py")
    return f"{page}?{place_of(run).parameter}={run.id}"
