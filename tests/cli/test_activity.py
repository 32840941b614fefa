"""A sign of life where nothing else is printed."""

from __future__ import annotations

import io
import sys
import time

import pytest

from gmc_core.cli import activity, main
from gmc_core.cli.activity import ActivityIndicator, doing
from gmc_core.cli.data import ReadingBar
from gmc_core.cli.output import moving_line, note, results_on_a_terminal
from gmc_core.gaussian.linalg.progress import StepProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(activity.time, "monotonic", lambda: now[0])
    moving_line.clear()
    return now


def as_terminal(monkeypatch) -> Terminal:
    """stderr, from here on (a fixture would be too early: pytest puts its own there)."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def lines(stream: io.StringIO) -> list[str]:
    """What has been written since the last time, by the places to which the line went back."""
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    return [part.strip(" ") for part in text.split("\r")]


def test_a_terminal_has_one_line_that_moves_and_goes(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    alive = ActivityIndicator("iteration 1")
    for now in (101.0, 104.0, 160.0):
        alive._tell(now)
    clock[0] = 160.0
    note("iteration 1 is done")
    assert lines(terminal) == [
        "", "iteration 1: 4 s so far", "iteration 1: 60 s so far", "", "iteration 1 is done\n"
    ]  # fmt: skip
    alive.now("iteration 2")
    alive._tell(161.5)
    assert lines(terminal) == [""]


def test_several_short_steps_are_no_long_silence(clock, monkeypatch):
    """What begins anew does not begin the silence anew: of five steps of two seconds each, none
    of which tells anything, a terminal would show nothing for ten."""
    terminal = as_terminal(monkeypatch)
    alive = ActivityIndicator("working")
    clock[0] = 101.5
    alive.now("reading the model")
    alive._tell(101.5)
    assert lines(terminal) == [""]
    alive._tell(102.0)
    assert lines(terminal) == ["", "reading the model"]
    clock[0] = 103.5
    alive.now("predicting")
    alive._tell(103.6)
    assert lines(terminal) == ["", "predicting"]
    alive._tell(104.6)
    assert lines(terminal) == ["", "predicting: 1.1 s so far"]


def test_it_waits_for_what_others_tell(clock, monkeypatch):
    """A bar that moves needs no sign of life beside it; one that stands still does."""
    terminal = as_terminal(monkeypatch)
    alive, bar = ActivityIndicator("reading the ratings"), ReadingBar()
    clock[0] = 104.0
    bar(1_000_000, 3_000_000)
    alive._tell(105.0)
    assert lines(terminal) == ["", "reading: 1.0 MB of 3.0 MB"]
    alive._tell(107.5)
    assert lines(terminal) == ["", "reading the ratings: 7.5 s so far"]
    bar(3_000_000, 3_000_000)
    assert lines(terminal)[-1] == "reading: 3.0 MB of 3.0 MB\n"


def test_a_share_is_told_while_it_is_known(clock, monkeypatch):
    terminal, progress = as_terminal(monkeypatch), StepProgress()
    alive = ActivityIndicator("working")
    alive.now("iteration 3 of 20", progress.now)
    alive._tell(104.0)
    progress.begin("E-step")
    alive._tell(105.0)
    with progress.counting(2.0):
        progress.add(0.82)
        alive._tell(112.0)
    alive.now("finishing")
    alive._tell(113.0)
    assert lines(terminal) == [
        "",
        "iteration 3 of 20: 4 s so far",
        "iteration 3 of 20: E-step, 5 s so far",
        "iteration 3 of 20: 41 % of the E-step, 12 s so far",
        "finishing: 13 s so far",
    ]


def test_a_result_takes_the_place_of_the_line(clock, monkeypatch):
    both = Terminal()
    monkeypatch.setattr(sys, "stderr", both)
    monkeypatch.setattr(sys, "stdout", both)
    with results_on_a_terminal():
        ActivityIndicator("working")._tell(104.0)
        print("NMAE")
    assert sys.stdout is both
    assert lines(both) == ["", "working: 4 s so far", "", "NMAE\n"]


def test_a_log_gets_a_line_a_minute_and_none_after_others(clock, capsys):
    alive = ActivityIndicator("iteration 1")
    for now in range(100, 300):
        alive._tell(float(now))
        clock[0] = float(now)
    assert len(capsys.readouterr().err.splitlines()) == 3
    clock[0] = 310.0
    note("iteration 1 is done")
    alive._tell(350.0)
    assert capsys.readouterr().err == "iteration 1 is done\n"


def test_every_command_has_it_and_it_ends_with_the_command(monkeypatch):
    """Without a line for seconds, a command tells what it is at."""
    terminal = as_terminal(monkeypatch)
    monkeypatch.setattr(activity, "SILENCE", 0.05)
    monkeypatch.setattr(activity, "_TICK", 0.01)

    def slow(name):
        assert ActivityIndicator.current is not None
        shows("working: ")
        doing("looking it up")
        shows("looking it up: ")
        raise KeyboardInterrupt

    def shows(text):
        until = time.monotonic() + 60  # its thread may have to wait for a core
        while text not in terminal.getvalue():
            assert time.monotonic() < until, f"{text!r} was not told"
            time.sleep(0.01)

    monkeypatch.setattr("gmc_core.data.datasets.info", slow)
    assert main(["data", "info", "sample"]) == 130
    assert lines(terminal)[-1] == "gmc: stopped\n"
    assert ActivityIndicator.current is None
