"""The wheel as it would be given away, and an environment that has it and no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def build(tree: Path, target: Path, *kinds: str) -> list[Path]:
    """The archives ("wheel", "sdist") of a source tree."""
    pytest.importorskip("hatchling", reason="the build backend, of requirements-dev.txt")
    options = [word for kind in kinds for word in ("-t", kind)]
    _run(sys.executable, "-m", "hatchling", "build", *options, "-d", str(target), cwd=tree)
    return sorted(target.iterdir())


def unpacked(sdist: Path, target: Path) -> Path:
    """The only folder of a source distribution."""
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder


def environment_with(wheel: Path, folder: Path) -> Path:
    """The folder of programs of an environment that has this wheel.

    The packages that it needs are those of this process, which takes a second instead of
    minutes. What is installed here as an editable checkout is not seen from there.
    """
    venv.create(folder, with_pip=False, symlinks=os.name == "posix")
    programs = folder / ("bin" if os.name == "posix" else "Scripts")
    python = str(programs / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    _run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(_run(python, "-c", code).strip())
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return programs


def without_checkout() -> dict[str, str]:
    """The environment's variables, none of which leads back to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
