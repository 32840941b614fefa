"""``gmc app``: what it starts, with which folder and port, and what it refuses."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from commands import refused, run

import gmc_dashboard
from gmc_core.base import ports
from gmc_core.cli import app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def started(monkeypatch):
    """(command, environment) of what would have been started."""
    calls = []

    def record(command, environment):
        calls.append((command, environment))
        return 0

    monkeypatch.setattr(app, "_become", record)
    return calls


@pytest.fixture
def taken():
    """A port at which somebody listens."""
    with socket.socket() as server:
        server.bind((ports.ADDRESS, 0))
        server.listen()
        yield server.getsockname()[1]


def option(command, name):
    return command[command.index(name) + 1]


def test_it_starts_the_dashboard_on_the_usual_port(capsys, started, monkeypatch):
    monkeypatch.setattr(app, "first_free", lambda: ports.DEFAULT_PORT)
    code, out, err = run(capsys, "app")
    ((command, environment),) = started
    assert (code, out) == (0, "")
    assert err == "The dashboard is at http://127.0.0.1:8501 (Ctrl-C ends it)\n"
    assert command[:4] == [sys.executable, "-P", "-m", "gmc_dashboard"]
    assert option(command, "--server.port") == "8501"
    assert "--server.headless" not in command
    assert environment.get("GMC_HOME") == os.environ.get("GMC_HOME")
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)


def test_options_reach_it(capsys, started, tmp_path, taken):
    home = tmp_path / "a" / "study"
    free = ports.first_free(taken + 1)
    run(capsys, "app", "--port", free, "--no-browser", "--home", home)
    ((command, environment),) = started
    assert option(command, "--server.port") == str(free)
    assert option(command, "--server.headless") == "true"
    assert environment["GMC_HOME"] == str(home)
    assert home.is_dir()
    assert not list(home.iterdir())


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(capsys, started, taken):
    message = refused(capsys, "app", "--port", taken)
    assert f"--port: {taken} is taken" in message
    assert "leave --port out" in message
    assert not started


def test_without_one_the_next_free_port_is_taken(capsys, started, monkeypatch, taken):
    monkeypatch.setattr(app, "DEFAULT_PORT", taken)
    monkeypatch.setattr(app, "first_free", lambda: ports.first_free(taken))
    _, _, err = run(capsys, "app")
    port = int(option(started[0][0], "--server.port"))
    assert taken < port < taken + ports.TRIED
    assert f"Port {taken} is taken, so this is {port}." in err


def test_if_all_are_taken_it_says_so(capsys, started, monkeypatch):
    monkeypatch.setattr(app, "first_free", lambda: None)
    assert "8501 to 8520 are all taken; give a free one" in refused(capsys, "app")
    assert not started


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "8501.0", "٣"])
def test_no_port_is_refused(capsys, started, port):
    assert "is no port" in refused(capsys, "app", f"--port={port}")


def test_a_home_that_is_no_folder_is_refused(capsys, started, tmp_path):
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        message = refused(capsys, "app", "--home", home)
        assert message.startswith(f"gmc: error: --home: {home} cannot be used")
    assert not started


def test_a_free_port_is_free_and_a_taken_one_is_not(taken):
    assert not ports.is_free(taken)
    assert ports.first_free(taken) != taken
    assert ports.first_free(65536) is None


def test_the_checkout_and_the_package_have_the_app_in_their_places(monkeypatch, tmp_path):
    assert gmc_dashboard.app_folder() == ROOT
    package = tmp_path / "gmc_dashboard"
    (package / "_app").mkdir(parents=True)
    monkeypatch.setattr(gmc_dashboard, "__file__", str(package / "__init__.py"))
    assert gmc_dashboard.app_folder() == package / "_app"
