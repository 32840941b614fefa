"""Small comparisons of baselines in a real store, computed in the test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gmc_core.comparison.comparators import BASELINES
from gmc_core.comparison.comparators.method import Baseline
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Run, Store
from gmc_core.runs.worker import work

CONFIG = ExperimentConfig(data="ratings.csv", filter=Filter(1, 1))
NAMES = ("bias", "item", "user")


def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A home of the test's own, beside a few ratings of 40 users and 12 items."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    lines = [f"{u},{i},{1 + (3 * u + i * i + u * i) % 5}" for u in range(40) for i in range(12)]
    Path("ratings.csv").write_text("user,item,rating\n" + "\n".join(lines[::2] + lines[1::4]))
    return Store()


def plan(*names: str, seeds: tuple[int, ...] = (0, 1)) -> ComparisonPlan:
    return ComparisonPlan.of([BASELINES[name] for name in names or NAMES], seeds)


def submitted(store: Store, *names: str, again: bool = False) -> Run:
    return store.submit_comparison(CONFIG, plan(*names), again=again)[0]


def computed(store: Store, *names: str) -> Run:
    run = submitted(store, *names)
    work(store, idle_seconds=0, polite=False)
    return store.run(run.id)


class Counting:
    """Counts the fits of each baseline, and does something at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fits: list[tuple[str, int]] = []
        self.at: tuple[str, int] | None = None
        self.do = lambda: None
        original = Baseline.predict

        def predict(method: Baseline, split, team):
            self.fits.append((method.name, split.seed))
            if (method.name, split.seed) == self.at:
                self.do()
            return original(method, split, team)

        patch.setattr(Baseline, "predict", predict)
