"""The part of the Data page that chooses where the ratings come from."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data import datasets, sample
from gmc_core.data.readers import DelimitedOptions, Preview
from gmc_dashboard.data import own_file
from gmc_dashboard.shared import context, sources
from gmc_dashboard.shared.components import escape, fact, guard, told
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.units import bytes_text

MODES = {"sample": "Sample", "named": "Named data set", "own": "My own file"}
NONE = "none"
PREVIEW_ROWS = 6


def choose_source() -> str:
    """Three ways to ratings; the choice takes effect for the rest of the page.

    Returns
    -------
    What is shown here to be chosen and is not the selected data (yet), in words that
    follow "instead of"; "" if what is shown is what is selected.
    """
    chosen = context.current()
    if st.session_state.get("gmc_dashboard.data_drawn") != chosen.data:
        # A link or another page has selected other data since these boxes were drawn.
        st.session_state["gmc_dashboard.data_drawn"] = chosen.data
        st.session_state["data_mode"] = mode = _mode_of(chosen.data)
        if mode == "named" and chosen.data in datasets.DATASETS:
            st.session_state["data_named"] = chosen.data
    shown = st.segmented_control(
        "Where the ratings come from",
        list(MODES),
        format_func=MODES.__getitem__,
        key="data_mode",
        required=True,
        on_change=_take_mode,
        persist_state="session",
    )
    shown = shown or "sample"
    # What cannot be read is no more selected than what was not read yet.
    pending = "" if _mode_of(chosen.data) == shown == "sample" else "the data chosen above"
    with guard():
        pending = {"sample": _sample, "named": _named, "own": _own}[shown]()
    return pending


def _mode_of(data: str) -> str:
    if data == "sample":
        return "sample"
    return "own" if sources.is_own(data) else "named"


def _take_mode() -> None:
    if st.session_state.data_mode == "sample":
        context.choose(data="sample", run="")


def _select(data: str) -> None:
    """Make a source the selected one, but only if it can be read."""
    context.loaded(data)
    context.choose(data=data, run="")
    st.rerun()


# The sample --------------------------------------------------------------------------


def _sample() -> str:
    entry = datasets.info("sample")
    if presenting():  # the numbers below say it, and a tab there has the licence
        return ""
    st.markdown(
        f"{entry.ratings:,} half-star ratings of {entry.items:,} movies by {entry.users:,} users "
        "of MovieLens. It comes with this program: nothing to download."
    )
    with st.expander("Licence and acknowledgement"):
        st.markdown(re.sub(r"(?m)^#+ (.*)$", r"**\1**", sample.notice()))
    return ""


# Named data sets -----------------------------------------------------------------------


def _named() -> str:
    names = [name for name in datasets.DATASETS if name != "sample"]
    current = context.current().data
    name = st.selectbox(
        "Data set",
        names,
        index=names.index(current) if current in names else names.index("ml-1m"),
        format_func=_label,
        key="data_named",
        persist_state="session",
    )
    entry = datasets.info(name)
    st.markdown(f"{entry.description} [Home page]({entry.homepage})")
    st.markdown(f"**Licence** {escape(entry.licence)}  \n**Please cite** {escape(entry.citation)}")
    if name == current:
        st.success("These ratings are selected.", icon=":material/check:")
    elif sources.is_ready(name):
        if st.button("Use this data set", type="primary", key="data_use_named"):
            _select(name)
        fact("It is on this machine already.")
    elif entry.downloadable:
        _download(entry)
    else:
        st.info(
            "This set cannot be downloaded by a program. Choose “My own file” above and give the "
            "path of your copy.",
            icon=":material/folder_open:",
        )
    return "" if name == current else entry.title


def _label(name: str) -> str:
    entry = datasets.info(name)
    here = "on this machine" if sources.is_ready(name) else None
    size = bytes_text(entry.size) + " to download" if entry.size else "bring your own copy"
    return f"{entry.title}: {entry.ratings:,} ratings ({here or size})"


def _download(entry: datasets.Dataset) -> None:
    size = f" ({bytes_text(entry.size)})" if entry.size else ""
    with st.container(horizontal=True):
        start = st.button(
            f"I accept the licence: download{size}",
            type="primary",
            icon=":material/download:",
            key="data_download",
        )
        place = st.empty()
    fact("Nothing leaves or reaches this machine before you press the button.")
    if not start:
        return
    # Any click stops a download: Streamlit interrupts the script at the next progress call.
    place.button("Cancel", key="data_download_cancel")
    bar = st.progress(0.0, f"Connecting to {entry.homepage.split('/')[2]} …")

    def show(done: int, total: int) -> None:
        total = total or entry.size or 0
        share = min(done / total, 1.0) if total else 0.0
        bar.progress(share, f"{bytes_text(done)} of {bytes_text(total) if total else 'unknown'}")

    try:
        datasets.fetch(entry.name, progress=show)
    finally:
        bar.empty()
        place.empty()
    _select(entry.name)


# A person's own file -------------------------------------------------------------------


def _own() -> str:
    current = context.current().data
    if sources.is_own(current):
        st.success(f"Selected: {escape(sources.title(current))}", icon=":material/check:")
    left, right = st.columns(2, gap="medium")
    upload = left.file_uploader(
        f"Upload a zip, csv, xlsx, json or text file (at most {sources.UPLOAD_LIMIT_MB} MB)",
        max_upload_size=sources.UPLOAD_LIMIT_MB,
        key="data_upload",
        help="It is kept in this program's own folder on this machine, so that reloading works.",
    )
    typed = right.text_input(
        "… or the path of a file or folder on this machine",
        placeholder="~/data/ml-1m.zip",
        key="data_path",
        persist_state="session",
        help="A folder or zip of MovieLens, EachMovie, Netflix or Jester, or any table with a "
        "user, an item and a rating per row. The file stays where it is; there is no size limit.",
    )
    with right:
        fact("Known layouts are recognised; for other tables you choose the columns next.")
    if upload is not None:
        path = _kept(upload)
    elif typed and typed.strip():
        path = own_file.clean_path(typed)
    else:
        return "" if sources.is_own(current) else "a file of your own"
    found = own_file.inspect(path)
    token = _known(found) if found.preview is None else _table(found, found.preview)
    return "" if token == current else path.name


def _kept(upload: UploadedFile) -> Path:
    """Where an upload was saved; done once an upload, not once a rerun."""
    key = f"gmc_dashboard.upload.{upload.file_id}"
    path = st.session_state.get(key)
    if path is None or not path.exists():
        path = st.session_state[key] = sources.keep_upload(upload.name, upload.getvalue())
    return path


def _known(found: own_file.Inspection) -> str:
    """A known layout; returns the token of the file read as it is said here."""
    st.markdown(f"This looks like **{own_file.FORMAT_NAMES.get(found.format, found.format)}**.")
    policy = _policy()
    reading = own_file.reading(DelimitedOptions(), policy, format=found.format)
    token = sources.token_of(found.path, reading)
    if _use("Use these ratings", token):
        _select(sources.register(found.path, reading))
    return token


def _use(label: str, token: str, disabled: bool = False) -> bool:
    """The button that makes the shown file the selected data; idle if it is already."""
    there = token == context.current().data
    return bool(
        st.button(
            "These ratings are selected" if there else label,
            type="secondary" if there else "primary",
            key="data_use_own",
            disabled=there or disabled,
        )
    )


def _table(found: own_file.Inspection, first: Preview) -> str:
    """Column mapping: what was found is the default, and a preview follows each change.

    Returns the token of the file read as it is said here; "" if that has no meaning.
    """
    st.markdown("**Which column is which?** Check what was found, and change it where it is wrong.")
    fault = st.container()  # in sight, above what mends it
    identity = f"{found.path}"
    layout = _layout(first, identity)
    shown = own_file.inspect(found.path, layout).preview or first
    roles = _roles(shown, f"{identity}-{layout}")
    ends = _scale(identity)
    not_rated = _not_rated(identity)
    policy = _policy()
    try:
        options = DelimitedOptions(
            separator=shown.options.separator,
            header=shown.options.header,
            decimal=shown.options.decimal,
            encoding=shown.options.encoding,
            **roles,  # type: ignore[arg-type]
            **ends,  # type: ignore[arg-type]
            not_rated=not_rated,
        )
        shown = own_file.inspect(found.path, options).preview or shown
        problem = shown.problem
    except (ConfigError, DataError) as error:
        problem, options = str(error), None
    st.dataframe(
        own_file.preview_frame(shown).head(PREVIEW_ROWS),
        hide_index=True,
        alt="The first rows of the file, with the role of each column in its heading",
    )
    if problem:
        fault.warning(told(problem), icon=":material/warning:")
    reading = {} if options is None else own_file.reading(options, policy)
    token = "" if options is None else sources.token_of(found.path, reading)
    if _use("Read the file", token, disabled=bool(problem)) and options is not None:
        _select(sources.register(found.path, reading))
    return token


def _layout(first: Preview, identity: str) -> DelimitedOptions:
    """Separator, header, decimal sign and encoding."""
    found = first.options
    columns = st.columns(4)
    known = list(own_file.SEPARATORS)
    separators: list[str | None] = [*known]
    if found.separator not in known:
        separators.insert(0, found.separator)
    separator = columns[0].selectbox(
        "Separator",
        separators,
        index=separators.index(found.separator),
        format_func=lambda sign: own_file.SEPARATORS.get(str(sign), repr(sign)),
        key=f"data_separator_{identity}",
    )
    header = columns[1].selectbox(
        "First line",
        [True, False],
        index=0 if found.header else 1,
        format_func=lambda yes: "column names" if yes else "a rating",
        key=f"data_header_{identity}",
    )
    decimal = columns[2].selectbox(
        "Decimal sign",
        [".", ","],
        index=1 if found.decimal == "," else 0,
        key=f"data_decimal_{identity}",
    )
    encodings = list(dict.fromkeys([found.encoding or "utf-8", "utf-8", "cp1252", "utf-16"]))
    encoding = columns[3].selectbox("Encoding", encodings, key=f"data_encoding_{identity}")
    return DelimitedOptions(separator=separator, header=header, decimal=decimal, encoding=encoding)


def _roles(shown: Preview, identity: str) -> dict[str, int | None]:
    """Which column holds what; None leaves an optional role out."""
    chosen: dict[str, int | None] = {}
    places = list(range(len(shown.columns)))
    for column, (role, label) in zip(
        st.columns(len(own_file.ROLES)), own_file.ROLES.items(), strict=True
    ):
        required = role in own_file.REQUIRED
        options: list[int | None] = [*places] if required else [None, *places]
        found = shown.roles.get(role)
        chosen[role] = column.selectbox(
            label,
            options,
            index=options.index(found)
            if found is not None and found in options
            else (None if required else 0),
            format_func=lambda place: (
                NONE if place is None else shown.columns[place] or f"column {place + 1}"
            ),
            placeholder="choose a column",
            key=f"data_role_{role}_{identity}",
        )
    return chosen


def _scale(identity: str) -> dict[str, float | str | None]:
    """The ends and step of the rating scale, found from the ratings unless given."""
    how = st.checkbox(
        "Find the rating scale from the ratings",
        value=True,
        key=f"data_find_scale_{identity}",
        help="Take this off if the ratings do not use the whole scale: NMAE depends on it.",
    )
    if how:
        return {}
    low, high, step = st.columns(3)
    steps: list[float | str] = [1.0, 0.5, 0.25, 0.1, "continuous"]
    return {
        "low": low.number_input("Lowest rating", value=1.0, key=f"data_low_{identity}"),
        "high": high.number_input("Highest rating", value=5.0, key=f"data_high_{identity}"),
        "step": step.selectbox(
            "Step",
            steps,
            format_func=str,
            key=f"data_step_{identity}",
        ),
    }


def _not_rated(identity: str) -> tuple[str, ...]:
    """Values of the rating column that stand for no rating."""
    typed = st.text_input(
        "Values that mean “not rated” (optional)",
        placeholder="-1; 99",
        key=f"data_not_rated_{identity}",
        help="Their rows are left out and counted. Divide several by semicolons.",
        width=320,
    )
    return tuple(part.strip() for part in (typed or "").split(";") if part.strip())


def _policy() -> str:
    return st.selectbox(
        "If a user rated an item more than once, count",
        list(own_file.POLICIES),
        format_func=own_file.POLICIES.__getitem__,
        key="data_policy",
        persist_state="session",
        width=320,
    )
