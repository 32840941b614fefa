"""A sign of life where nothing else is printed."""

from __future__ import annotations

import pytest

from gmc_core.cli import heartbeat
from gmc_core.cli.heartbeat import Heartbeat


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_moves_and_goes(clock, monkeypatch, capsys):
    monkeypatch.setattr(heartbeat.sys.stderr, "isatty", lambda: True, raising=False)
    alive = Heartbeat("iteration 1")
    for now in (101.0, 104.0, 160.0):
        alive._tell(now)
    alive.clear()
    shown = capsys.readouterr().err.split("\r")
    assert [one.strip() for one in shown] == [
        "", "iteration 1: 4 s so far", "iteration 1: 60 s so far", "", ""
    ]  # fmt: skip
    clock[0] = 160.0
    alive.now("iteration 2")
    alive._tell(162.0)
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_a_minute(clock, capsys):
    alive = Heartbeat("iteration 1")
    for now in range(100, 300):
        alive._tell(float(now))
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_it_ends_with_what_it_watches(capsys):
    with Heartbeat("preparing") as alive:
        thread = alive._thread
    assert not thread.is_alive()
