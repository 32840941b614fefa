"""Execute the notebooks of docs/notebooks and store what they show: what the site is built from.

    python -m tests.tools.notebooks              # all
    python -m tests.tools.notebooks fit table    # these

Needs the packages of requirements-dev.txt for the docs. What differs from one machine to the next,
or is shown in a better form as well, is left out: a change in the repository is a change in what
a reader sees.
"""

from __future__ import annotations

import argparse
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
SECONDS = 120


def execute(path: Path) -> None:
    """Run a notebook in a fresh kernel, and write it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(path.parent))
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            if {"text/html", "image/png"} & set(output.get("data", ())):
                output.data.pop("text/plain", None)
    nbformat.write(notebook, path)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="such as fit; all by default")
    names = parser.parse_args().names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        execute(FOLDER / f"{name}.ipynb")
        print(FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main()
