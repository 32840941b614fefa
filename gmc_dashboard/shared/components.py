"""The building blocks of every page: header, cards, charts, downloads, errors."""

from __future__ import annotations

import errno
import json
import logging
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from gmc_core.base.errors import GmcError
from gmc_core.runs.store.errors import explain
from gmc_dashboard import app_folder
from gmc_dashboard.shared import history, presenting, tour, warm_up
from gmc_dashboard.shared.page_words import in_page_words
from gmc_dashboard.shared.places import home_folder
from gmc_dashboard.shared.theme import waiting
from gmc_dashboard.shared.units import minus

LOG_BYTES = 1_000_000
PAGES = app_folder() / "pages"

# What the toolbar of a chart offers; SVG keeps text sharp in a slide.
_CHART_CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg"},
}


# Words and picture side by side need the width of a small screen.
# A link's padding is for its background; its text stands in line with the text around it.
# A cell's text may use the width that its column has anyway.
# Without a pointer that hovers, a chart's toolbar would stand over its legend for good.
_STYLE = """<style>
[data-testid="stMain"] h1 { padding: 0 }
@media (min-width: 900px) and (max-width: 1500px) {
    [data-testid="stMainBlockContainer"] { padding-inline: 2.5rem }
}
@media (min-width: 900px) {
    [data-testid="stTable"] td [data-testid="stMarkdownContainer"] { max-width: 50rem }
}
[data-testid="stMain"] [data-testid="stPageLink-NavLink"] { position: relative; left: -0.5rem }
@media (max-width: 640px) { .st-key-present_start { display: none } }
@media (hover: none) { .js-plotly-plot .modebar-container { display: none !important } }
</style>"""

_TO_THE_TOP = """<script>
{ const main = document.querySelector('[data-testid="stMain"]')
  main.scrollTo(0, 0); main.focus({preventScroll: true}) } // %s
</script>"""

# What appears may grow for a moment, until its chart is drawn.
_INTO_VIEW = """<script>
{ const come = () => document.querySelector('.st-key-%s')?.scrollIntoView({block: 'nearest',
      behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'})
  requestAnimationFrame(come); setTimeout(come, 400) } // %s
</script>"""


def page_header(title: str, lead: str = "", formula: str | None = None) -> None:
    """A page's title and its one-sentence purpose, with the formula it is about.

    lead : "" where the page says it itself, by :func:`page_lead`, or has something to show instead.
    """
    _enter_through_app()
    warm_up.begin()
    st.html(_STYLE)
    history.install()
    history.restore()
    presenting.begin()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.title(title, anchor=False, width="stretch")
        presenting.bar()
    with guard():
        tour.banner(title)
    if lead:
        page_lead(lead, formula)


def page_lead(text: str, formula: str | None = None) -> None:
    """A page's purpose; not where the picture needs the room, on a projector and in a tour."""
    if presenting.presenting() or tour.asked() is not None:
        return
    st.markdown(text)
    if formula:
        st.latex(formula)


def _enter_through_app() -> None:
    """Start again through ``app.py`` if this page was run without it.

    Until a process has called ``st.navigation`` once, Streamlit runs a file of the
    ``pages`` folder on its own when it is opened by its URL. Any call ends that.
    """
    if "gmc_dashboard.entered" in st.session_state:
        return
    st.session_state["gmc_dashboard.entered"] = True
    # Every page is listed, so that the one in the URL is found again after the restart.
    names = [file.stem for file in PAGES.glob("*.py") if file.stem != "home"]
    pages = [st.Page(_nothing, title=name, url_path=name) for name in names]
    home = st.Page(_nothing, title="home", default=True)
    st.navigation([home, *pages], position="hidden")
    st.rerun()


def _nothing() -> None:
    """A page without content."""


def to_the_top(what: str) -> None:
    """Scroll to the page's beginning, and put the focus there, so that Tab leads on from it.

    what : is shown now; another one than before scrolls again.
    """
    st.html(_TO_THE_TOP % json.dumps(what), unsafe_allow_javascript=True)


def into_view(key: str, what: str) -> None:
    """Scroll no further than it takes to see a part of the page; the focus stays where it is.

    key : of its container. what : is shown in it now.
    """
    st.html(_INTO_VIEW % (key, json.dumps(what)), unsafe_allow_javascript=True)


def empty_state(
    text: str,
    page: str,
    label: str,
    *,
    icon: str = ":material/arrow_forward:",
    query_params: Mapping[str, str] | None = None,
) -> None:
    """Say why there is nothing to see, and link the next step.

    Parameters
    ----------
    text : a sentence.
    page : file of the page that helps, such as ``"pages/fit.py"``.
    label : of the link. query_params : what the page shall show.
    """
    with st.container(border=True):
        st.markdown(text)
        st.page_link(page, label=label, icon=icon, query_params=query_params)


@contextmanager
def links_to_this_page(title: str) -> Iterator[None]:
    """A list of links under a heading; none of them is marked as the current page."""
    st.subheader(title, anchor=False)
    plain = ".st-key-earlier a, .st-key-earlier a * { background: none; font-weight: 400 }"
    st.html(f"<style>{plain}</style>")
    with st.container(key="earlier", gap="xsmall"):
        yield


@contextmanager
def guard() -> Iterator[None]:
    """Turn errors into sentences; as ``with guard():`` or as a decorator.

    See :func:`sentence_of`.
    """
    try:
        yield
    except Exception as error:
        st.error(sentence_of(error), icon=":material/error:")


def sentence_of(error: BaseException) -> str:
    """What a visitor reads about an error, as Markdown.

    A ``GmcError`` is shown as it is; a disk that is full, broken or closed to us is called
    that. Anything else is a defect: the visitor sees an error number, and the traceback
    goes to the log file under that number.
    """
    if isinstance(error, GmcError):
        return told(str(error))
    if (problem := _disk_problem(error)) is not None:
        return escape(problem)
    number = secrets.token_hex(4)
    with suppress(OSError):
        _logger().error("error %s", number, exc_info=error)
    return (
        f"Sorry, this part of the page failed through a mistake of the program (error {number}). "
        "Your data and runs are safe. Reload the page; if it happens again, report the number "
        f"with the file `{log_file()}`."
    )


_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def _disk_problem(error: BaseException) -> str | None:
    """The sentence for a disk that does not do what was asked; None for other errors."""
    if isinstance(error, sqlite3.OperationalError):
        return str(explain(error, home_folder()))
    if not isinstance(error, OSError):
        return None
    place = error.filename or home_folder()
    if error.errno in _FULL:
        return (
            f"The disk that holds {place} is full. Delete runs on the Runs page, or other files "
            "there, and try again."
        )
    if error.errno in _CLOSED:
        return (
            f"{place} cannot be used ({error.strerror}). Give yourself the right to read and write "
            "there, or set GMC_HOME (runs, uploads) or GMC_CACHE (downloads) to another folder."
        )
    if error.errno == errno.EIO:
        return f"The disk that holds {place} reports an error. Check it, and save what is on it."
    return None


def log_file() -> Path:
    """Where unexpected errors are written."""
    return home_folder() / "logs" / "dashboard.log"


def _logger() -> logging.Logger:
    logger = logging.getLogger("gmc_dashboard.errors")
    target = log_file()
    current = [h for h in logger.handlers if isinstance(h, RotatingFileHandler)]
    if not any(Path(handler.baseFilename) == target for handler in current):
        for handler in current:
            logger.removeHandler(handler)
            handler.close()
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(target, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    return logger


def told(text: str) -> str:
    """What the core says, in the words of the pages, as Markdown."""
    return escape(in_page_words(text))


def escape(text: str) -> str:
    """Text that Markdown shows as it is: names of files and titles hold ``_``, ``*``, ``$``."""
    # Control characters, and those that turn the direction of all that follows.
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "\ufffd", text)
    text = re.sub(r"([\\`*_{}\[\]<>#$~|&])", r"\\\1", text)
    # "1. " and "- " at the start of a line would begin a list.
    text = re.sub(r"(?m)^(\s*\d+)([.)])(?=\s|$)", r"\1\\\2", text)
    text = re.sub(r"(?m)^(\s*)([-+=])", r"\1\\\2", text)
    # Streamlit finds :emoji: and :material/icon: after Markdown has taken backslashes away;
    # an invisible word joiner keeps them apart.
    return re.sub(r":(?=[\w+/-]+:)", ":\u2060", text).replace("\n", "  \n")


def chart(
    fig: go.Figure,
    alt: str,
    *,
    key: str,
    waits: str = "Nothing to draw yet",
    config: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Draw a figure with its text alternative.

    Parameters
    ----------
    alt : what the chart shows, with its numbers, for those who cannot see it.
    key : stable over reruns, so that the chart keeps its place and zoom.
    waits : what a figure without data says instead of empty axes.
    options : of ``st.plotly_chart``.
    """
    if presenting.presenting():
        fig = presenting.enlarge(fig)
    # theme=None: `style` has set every colour already, for the theme in use.
    return st.plotly_chart(
        waiting(fig, waits),
        key=key,
        alt=minus(alt),
        theme=None,
        config={**_CHART_CONFIG, **(config or {})},
        **options,
    )


def number_row(
    numbers: Sequence[tuple[str, str] | tuple[str, str, str]], *, equal: bool = False
) -> None:
    """A row of cards: (label, value) or (label, value, help).

    equal : all of one width, for a few cards across the page; else as their words need.
    On a projector, where a row of cards would push the picture off, they are one line.
    """
    if presenting.presenting():
        st.markdown(" · ".join(f"{label} **{value}**" for label, value, *_ in numbers))
        return
    row = st.container(horizontal=True, gap="small")
    places = st.columns(len(numbers), gap="small") if equal else [row] * len(numbers)
    for place, (label, value, *help_text) in zip(places, numbers, strict=True):
        place.metric(label, value, border=True, help=help_text[0] if help_text else None)


def download(
    label: str, data: Callable[[], str | bytes] | str | bytes, name: str, mime: str, **options: Any
) -> None:
    """A button whose file is made when it is clicked."""
    st.download_button(
        label,
        data,
        file_name=name,
        mime=mime,
        on_click="ignore",
        icon=":material/download:",
        **options,
    )


def fact(text: str) -> None:
    """A short remark that explains a number or a choice; none on a projector."""
    if not presenting.presenting():
        st.caption(text)
