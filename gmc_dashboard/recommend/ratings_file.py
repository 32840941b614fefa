"""On Recommend: the visitor's own list from a file, matched to the model's titles."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.one_person import PersonList, read_person
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.person_ratings import Matched, match
from gmc_dashboard.recommend.one_user import MAX_IN_URL
from gmc_dashboard.recommend.rating_rows import listed, take_away
from gmc_dashboard.shared.components import escape, fact, guard

LIMIT_MB = 10  # a list of 50,000 titles takes less


def upload(name: str, model: GaussianModel) -> None:
    """Take a file of ratings; what matches is put on the list kept under ``name``, once a file."""
    key = f"{name}_file"
    with st.expander(
        "Ratings from a file", icon=":material/upload_file:", expanded=key in st.session_state
    ):
        given = st.file_uploader(
            "Your export of IMDb, Letterboxd, MovieLens or Goodreads, or a table with titles and "
            "ratings",
            max_upload_size=LIMIT_MB,
            key=f"{key}_upload",
            help="It is read once and not kept. Titles are matched whole, with their year; what "
            "the model does not know is listed.",
        )
        if given is None:
            st.session_state.pop(key, None)
            return
        with guard():
            _take(given, name, key, model)


def _take(given: UploadedFile, name: str, key: str, model: GaussianModel) -> None:
    """Read and match a file; put the ratings on the list the first time it is seen."""
    scale = None
    found = _read(given)
    if found.scale is None and not _fits(found, model.scale):
        scale = _scale(found, f"{key}_{given.file_id}")
        if scale is None:
            return
    done = match(found, model, scale)
    _report(done)
    identity = (given.file_id, None if scale is None else (scale.low, scale.high))
    if st.session_state.get(key) == identity or not done.ratings:
        return
    for item, value in done.ratings.items():
        take_away(name, item)  # with the control that shows an older rating
        listed(name)[item] = value
    st.session_state[key] = identity
    st.rerun()  # the list above and the address follow


def _read(given: UploadedFile) -> PersonList:
    """The list of an upload, which is on the disk for as long as reading it takes."""
    with tempfile.TemporaryDirectory(prefix="gmc-list-") as folder:
        path = Path(folder) / (Path(given.name).name or "ratings.csv")
        path.write_bytes(given.getvalue())
        try:
            return read_person(path)
        except DataError as error:
            text = str(error).replace(f"{folder}/", "")
    raise DataError(text)


def _fits(found: PersonList, scale: RatingScale) -> bool:
    return all(scale.low <= entry.rating <= scale.high for entry in found.entries)


def _scale(found: PersonList, key: str) -> RatingScale | None:
    """The scale of a list that does not tell it, as the visitor says; None until they have."""
    values = [entry.rating for entry in found.entries]
    if f"{key}_said" not in st.session_state:
        st.info(
            "These ratings are on another scale than the model's. Say from where to where it goes.",
            icon=":material/straighten:",
        )
    left, right = st.columns(2)
    low = left.number_input(
        "Lowest possible rating", value=min(1.0, *values), key=f"{key}_low", format="%g"
    )
    high = right.number_input(
        "Highest possible rating", value=float(max(values)), key=f"{key}_high", format="%g"
    )
    if st.button("Use this scale", type="primary", key=f"{key}_use"):
        st.session_state[f"{key}_said"] = (float(low), float(high))
    said = st.session_state.get(f"{key}_said")
    return None if said is None else RatingScale(said[0], said[1], None)


def _report(done: Matched) -> None:
    """How many were matched, what became of the values, and which were not."""
    show = st.success if done.ratings else st.warning
    icon = ":material/check:" if done.ratings else ":material/warning:"
    summary = done.summary()
    show(escape(f"{summary[:1].upper()}{summary[1:]}."), icon=icon)
    fact(escape(f"{done.scaling[:1].upper()}{done.scaling[1:]}."))
    if len(done.ratings) > MAX_IN_URL:
        fact(
            f"More than {MAX_IN_URL} ratings do not fit into the page's address: after a reload, "
            "give the file again."
        )
    if done.unmatched:
        st.markdown(f"**Not matched: {len(done.unmatched):,}**")
        st.dataframe(
            pd.DataFrame(
                [
                    (
                        entry.title or entry.id,
                        str(entry.year or ""),
                        f"{entry.rating:g}",
                        reason,
                        entry.line,
                    )
                    for entry, reason in done.unmatched
                ],
                columns=["Title", "Year", "Rating", "Why", "Line"],
            ),
            hide_index=True,
            height="content" if len(done.unmatched) <= 6 else 245,
            alt=f"The {len(done.unmatched)} titles of the file that the model does not know",
        )
