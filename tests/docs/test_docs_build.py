"""The site builds as ``make docs`` builds it, where a warning is an error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Those of docs/conf.py without the pages of source code, which are half of the site's and warn of
# nothing of their own.
EXTENSIONS = "extensions=myst_nb,sphinx.ext.autodoc,sphinx.ext.napoleon"

# Of Sphinx about its own extensions.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::DeprecationWarning"
)


def build(source: Path, folder: Path) -> int:
    """Build a site in ``folder`` with the settings of docs/conf.py; returns the exit code.

    Pages that have not changed are taken from the last build that was sound. Of any other build
    nothing is kept: a page that is not read again does not repeat its warnings.
    """
    from sphinx.cmd.build import build_main

    sound = folder / "sound"
    if not sound.exists():
        shutil.rmtree(folder, ignore_errors=True)
    sound.unlink(missing_ok=True)
    options = ["--fail-on-warning", "--keep-going", "-q", "-b", "html", "-c", str(DOCS)]
    options += ["-D", EXTENSIONS]
    code = build_main([*options, str(source), str(folder / "site")])
    if code == 0:
        sound.touch()
    return code


@pytest.fixture(autouse=True)
def _needs_the_packages_of_the_docs():
    for name in ("sphinx", "myst_nb", "furo"):
        pytest.importorskip(name, reason="the docs need the packages of requirements-dev.txt")


def test_the_site_builds_without_a_warning(request, tmp_path, capfd):
    cache = getattr(request.config, "cache", None)  # None without pytest's own plugin for it
    folder = tmp_path if cache is None else cache.mkdir("docs")
    code = build(DOCS, folder / "build")
    assert code == 0, capfd.readouterr().err
    assert (folder / "build" / "site" / "getting-started.html").is_file()


def test_a_warning_fails_the_build_every_time(tmp_path, capfd):
    source = tmp_path / "docs"
    source.mkdir()
    page = source / "index.md"
    page.write_text("# One page\n\n[elsewhere](no-such-page.md)\n", encoding="utf-8")
    for _ in range(2):
        assert build(source, tmp_path / "build") != 0
        assert "no-such-page.md" in capfd.readouterr().err
    page.write_text("# One page\n\nWithout a link.\n", encoding="utf-8")
    assert build(source, tmp_path / "build") == 0
