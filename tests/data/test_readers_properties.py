"""What holds for any delimited text: round trips, and no traceback for any bytes."""

from __future__ import annotations

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st
from reader_files import cells, text_file

from gmc_core.base.errors import GmcError
from gmc_core.data.readers import DelimitedOptions, load, preview, read_pairs

IDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
RATINGS = st.floats(-1e6, 1e6).map(lambda value: value + 0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.tuples(IDS | st.integers().map(str), IDS), RATINGS, min_size=1),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_is_written_is_read(tmp_path_factory, table, separator):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator)
    writer.writerow(["user", "item", "rating"])
    writer.writerows((user, item, repr(value)) for (user, item), value in table.items())
    path = text_file(tmp_path_factory.mktemp("round"), out.getvalue())
    options = DelimitedOptions(
        separator=separator, header=True, decimal=".", encoding="utf-8", step="continuous"
    )
    loaded = load(path, options=options)
    read = {(str(u), str(i)): value for (u, i), value in cells(loaded.ratings).items()}
    assert read == table


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 10**9), st.integers(0, 10**18)),
        st.integers(1, 5),
        min_size=2,
    ),
    st.sampled_from([",", ";", "::", "\t", " "]),
    st.booleans(),
    st.randoms(),
)
def test_integer_tables_are_found_in_any_order(tmp_path_factory, table, separator, header, random):
    rows = [separator.join(map(str, (*key, value))) for key, value in table.items()]
    random.shuffle(rows)
    if header:
        rows.insert(0, separator.join(["user", "item", "rating"]))
    path = text_file(tmp_path_factory.mktemp("round"), "\n".join(rows))
    loaded = load(path)
    assert cells(loaded.ratings) == table
    assert loaded.report.rows_read == len(table)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=60) | st.text("0123456789,;:\t|. -\n\"'abué\r", max_size=60).map(str.encode),
    st.sampled_from(["a.csv", "ratings.dat", "u.data", "vote.txt", "ratings.csv", "jester.csv"]),
)
def test_any_bytes_give_ratings_or_a_clear_error(tmp_path_factory, data, name):
    path = text_file(tmp_path_factory.mktemp("fuzz"), data, name)
    for attempt in (load, preview, read_pairs):
        try:
            attempt(path)
        except GmcError as error:
            assert str(path) in str(error)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["1", "2", "", "a", "3.5", "3,5", "nan", '"', " "]), max_size=8))
def test_no_row_is_lost_silently(tmp_path_factory, values):
    text = "".join(f"{row};x;{value}\n" for row, value in enumerate(values))
    path = text_file(tmp_path_factory.mktemp("fuzz"), text)
    try:
        loaded = load(path)
    except GmcError:
        return
    assert len(loaded.ratings) == len(values)
