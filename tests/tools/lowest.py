"""The lowest versions that pyproject.toml allows, pinned: ``python -m tests.tools.lowest``.

On the standard library alone, since it runs before anything is installed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lowest(requirements: Iterable[str]) -> list[str]:
    """Each "name>=1.2,<2" as "name==1.2"; references to extras of this project are left out.

    Raises
    ------
    ValueError
        If a requirement has no lower bound.
    """
    pinned = []
    for line in requirements:
        match = re.match(r"([\w.-]+)>=([\w.]+)", line)
        if match is not None:
            pinned.append(f"{match[1]}=={match[2]}")
        elif "[" not in line:
            raise ValueError(f"{line} has no lower bound in {PROJECT.name}.")
    return pinned


def main() -> None:
    """Print them, one a line, for ``pip install -r``."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    print(
        *lowest([*project["dependencies"], *(one for extra in extras for one in extra)]), sep="\n"
    )


if __name__ == "__main__":
    main()
