"""The Data page and its figures."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gmc_core.base.errors import DataError, FetchError
from gmc_core.data import datasets, sample
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.readers import DelimitedOptions
from gmc_core.data.sessions import months, sessions
from gmc_core.fitting.cost import estimate
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.random_splits import random_split
from gmc_core.protocol.splits import strong_split, weak_split
from gmc_dashboard.data import figures as figures
from gmc_dashboard.data import overview, own_file, time_figures
from gmc_dashboard.shared import context, sources, units

APP = str(Path(__file__).parents[2] / "app.py")
GOOD = "who,what,stars\n" + "".join(
    f"u{user},film {item},{1 + (user + item) % 5}\n" for user in range(30) for item in range(25)
)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return sample.load().ratings


def opened(**query: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=60)
    for name, value in query.items():
        at.query_params[name] = value
    return at.switch_page("pages/data.py").run()


def own() -> AppTest:
    at = opened()
    return at.segmented_control(key="data_mode").set_value("own").run()


def numbers(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def selected(at: AppTest):
    return at.session_state["gmc_dashboard.selection"]


# The page ----------------------------------------------------------------------------


def test_the_sample_is_described():
    at = opened()
    shown = numbers(at)
    assert (shown["Users"], shown["Items"], shown["Ratings"]) == ("671", "9,066", "100,004")
    assert shown["Fill ratio"] == "1.64 %"
    assert shown["NMAE divisor"] == "1.65"
    assert "CC" not in at.markdown[1].value
    assert any("GroupLens" in text.value for text in at.markdown)


def test_filter_controls_change_the_table_and_the_url(ratings):
    at = opened()
    at.number_input(key="data_min_user").set_value(100).run()
    at.number_input(key="data_max_items").set_value(50).run()
    _, report = apply_filter(ratings, Filter(100, 2, 50))
    steps = next(table.value for table in at.dataframe if "Step" in table.value)
    assert steps["Users"].iloc[-1] == f"{report.after.users:,}"
    assert steps["Items"].iloc[-1] == "50"
    assert at.query_params["min_user"] == "100"
    assert selected(at).max_items == 50


def test_a_filter_that_leaves_nothing_is_explained_and_can_be_undone():
    at = opened(min_user="5000")
    assert "Lower “Ratings per user, at least”" in at.error[0].value
    assert not at.exception
    at.number_input(key="data_min_user").set_value(20).run()
    assert not at.error


def test_an_emptied_field_keeps_the_selection():
    at = opened(min_user="30")
    at.number_input(key="data_min_user").set_value(None).run()
    assert not at.exception
    assert selected(at).min_user == 30


@pytest.mark.parametrize("protocol", ["weak", "strong", "none"])
def test_protocol_numbers_are_those_of_the_split(protocol, ratings):
    at = opened()
    at.segmented_control(key="data_protocol").set_value(protocol).run()
    filtered, _ = apply_filter(ratings, Filter())
    shown = numbers(at)
    if protocol == "none":
        assert shown["Hidden ratings"] == "0"
        assert shown["Training ratings"] == f"{len(filtered):,}"
        return
    split = (weak_split if protocol == "weak" else strong_split)(filtered, 0)
    assert shown["Training ratings"] == f"{len(split.train):,}"
    assert shown["Hidden ratings"] == f"{split.n_test:,}"
    assert ("Novel users" in shown) == (protocol == "strong")
    assert any("scaled down" in note.value for note in at.caption)


def test_titles_are_searchable():
    at = opened()
    at.text_input(key="find").set_value("star wars").run()
    table = next(table.value for table in at.dataframe if "Title" in table.value)
    assert len(table)
    assert table["Title"].str.contains("Star Wars").all()
    at.text_input(key="find").set_value("no such [title").run()
    assert "No title holds" in at.info[0].value


@pytest.mark.parametrize("tab", ["titles", "Most rated titles"])
def test_open_tab_and_search_are_in_the_link(tab):
    """By its key; links of earlier versions have the words."""
    at = opened(tab=tab, find="star wars")
    assert [tab.label for tab in at.tabs][1] == "Most rated titles"
    assert at.session_state["tab"] == "Most rated titles"
    assert at.query_params["tab"] in ("titles", ["titles"])
    assert at.text_input(key="find").value == "star wars"


@pytest.mark.parametrize("tab", ["", "no such tab", "charts"])
def test_the_first_tab_is_not_in_the_link(tab):
    at = opened(tab=tab)
    assert at.session_state["tab"] == "Charts"
    assert "tab" not in at.query_params


def test_continue_goes_to_the_fit_page():
    at = opened(protocol="strong")
    at.button(key="leave_to_fit_top").click().run()
    assert not at.exception
    assert at.title[0].value != "Data"
    assert selected(at).protocol == "strong"


def test_every_chart_and_table_has_a_text_twin():
    at = opened()
    charts = at.get("plotly_chart")
    assert len(charts) == 6
    assert all(len(element.proto.alt) > 40 for element in charts)
    assert all(table.proto.alt for table in at.dataframe)


def test_a_link_to_an_unknown_file_is_explained():
    at = opened(data="own-0123456789ab")
    assert "does not know" in at.error[0].value
    assert not at.exception


def test_a_link_to_an_unknown_name_lists_the_names():
    at = opened(data="netflix")
    assert "ml-1m" in at.error[-1].value
    assert not at.exception


def test_continue_shows_the_settings_and_not_the_last_run():
    at = opened(run="0123456789")
    at.button(key="leave_to_fit_top").click().run()
    assert not at.exception
    assert at.button(key="start_fit")
    assert selected(at).run == ""


def test_a_link_to_other_data_moves_the_choice_of_source():
    at = opened()
    assert at.segmented_control(key="data_mode").value == "sample"
    at.query_params["data"] = "ml-100k"
    at.run()
    assert at.segmented_control(key="data_mode").value == "named"
    assert at.selectbox(key="data_named").value == "ml-100k"


# Named data sets ---------------------------------------------------------------------


def test_conditions_come_before_the_download():
    at = opened()
    at.segmented_control(key="data_mode").set_value("named").run()
    assert at.selectbox(key="data_named").value == "ml-1m"
    assert any("no redistribution" in text.value for text in at.markdown)
    assert any("Harper" in text.value for text in at.markdown)
    assert "I accept the licence" in at.button(key="data_download").label
    assert selected(at).data == "sample"


def test_a_failed_download_names_the_remedy(monkeypatch):
    def offline(name, *, progress=None, **_):
        progress(1000, 0)
        raise FetchError("ml-1m.zip could not be downloaded. Download it by hand.")

    monkeypatch.setattr(datasets, "fetch", offline)
    at = opened()
    at.segmented_control(key="data_mode").set_value("named").run()
    at.button(key="data_download").click().run()
    assert "by hand" in at.error[0].value
    assert selected(at).data == "sample"
    assert numbers(at)["Users"] == "671"


def test_a_set_without_download_points_to_the_own_file():
    at = opened()
    at.segmented_control(key="data_mode").set_value("named").run()
    at.selectbox(key="data_named").set_value("eachmovie").run()
    assert "My own file" in at.info[0].value


# A person's own file -----------------------------------------------------------------


def test_an_upload_is_mapped_read_and_survives_a_reload(tmp_path):
    at = own()
    at.file_uploader[0].set_value(("my file.csv", GOOD.encode(), "text/csv")).run()
    assert not at.exception
    shown = next(table.value for table in at.dataframe if len(table.value.columns) == 3)
    assert list(shown.columns) == ["who  →  user", "what  →  item", "stars  →  rating"]
    at.button(key="data_use_own").click().run()
    assert not at.error
    assert numbers(at)["Ratings"] == "750"
    again = opened(data=at.query_params["data"])
    assert numbers(again)["Users"] == "30"
    assert list((tmp_path / "home" / "uploads").glob("*/my file.csv"))


def test_a_workbook_is_read_like_its_text():
    book = openpyxl.Workbook()
    for line in GOOD.splitlines():
        book.active.append([int(c) if c.isdigit() else c for c in line.split(",")])
    file = io.BytesIO()
    book.save(file)
    at = own()
    at.file_uploader[0].set_value(("mine.xlsx", file.getvalue(), "")).run()
    assert not at.exception
    shown = next(table.value for table in at.dataframe if len(table.value.columns) == 3)
    assert list(shown.columns) == ["who  →  user", "what  →  item", "stars  →  rating"]
    at.button(key="data_use_own").click().run()
    assert not at.error
    assert numbers(at)["Ratings"] == "750"


def test_columns_can_be_assigned_by_hand():
    text = "a,b,c,d,e\n1,10,5,3,x\n2,10,4,2,y\n1,11,3,1,z\n2,12,2,5,x\n"
    at = own()
    at.file_uploader[0].set_value(("wide.csv", text.encode(), "text/csv")).run()
    assert not at.exception
    roles = {box.label: box for box in at.selectbox}
    assert at.warning
    assert at.button(key="data_use_own").disabled
    roles["User"].set_value(0)
    roles["Item"].set_value(1)
    roles["Rating"].set_value(3).run()
    assert not at.warning
    at.button(key="data_use_own").click().run()
    assert numbers(at)["Ratings"] == "4"
    # The paper's filter needs 20 ratings a user; the sentence says so.
    assert "“Ratings per user, at least”" in at.error[0].value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"user,item,rating\n1,2,3\n1,3,good\n", "good"),
        (b"\x00\x01\x02\xff" * 50, ""),
        (b"PK\x03\x04 broken", ""),
    ],
)
def test_bad_uploads_are_answered_with_a_sentence(content, words):
    at = own()
    at.file_uploader[0].set_value(("ratings.csv", content, "text/csv")).run()
    read = [button for button in at.button if button.key == "data_use_own"]
    if read and not read[0].disabled:
        read[0].click().run()
    said = [message.value for message in [*at.error, *at.warning]]
    assert said
    assert words in said[0]
    assert "mistake of the program" not in said[0]
    assert not at.exception
    assert numbers(at)["Users"] == "671"


@pytest.mark.parametrize(
    ("text", "words"),
    [("/no/such/file.csv", "no such file"), ("\0", "no path"), ("{folder}", "text file")],
)
def test_bad_paths_are_answered_with_a_sentence(text, words, tmp_path):
    at = own()
    at.text_input(key="data_path").set_value(text.format(folder=tmp_path)).run()
    assert words in at.error[0].value
    assert not at.exception


def test_a_known_layout_is_recognised_by_path(tmp_path):
    folder = tmp_path / "ml"
    folder.mkdir()
    rows = [f"{u}::{i}::{1 + (u * i) % 5}::9{i:05}" for u in range(1, 26) for i in range(1, 26)]
    (folder / "ratings.dat").write_text("\n".join(rows) + "\n")
    at = own()
    at.text_input(key="data_path").set_value(f' "{folder}" ').run()
    assert any("MovieLens with ratings.dat" in text.value for text in at.markdown)
    at.button(key="data_use_own").click().run()
    assert not at.error
    assert numbers(at)["Users"] == "25"


# What the page is made of ------------------------------------------------------------


def test_a_token_stands_for_place_and_reading(tmp_path):
    file = tmp_path / "r.csv"
    file.write_text(GOOD)
    token = sources.register(file, own_file.reading(DelimitedOptions(user=0), "mean"))
    assert sources.location(token) == (str(file), {"duplicates": "mean", "user": 0})
    assert sources.load(token).report.duplicate_policy == "mean"
    before = sources.stamp(token)
    file.write_text(GOOD + "u0,another,3\n")
    assert sources.stamp(token) != before


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "", "a/b.csv", ".hidden", "ä ö.csv"])
def test_uploads_stay_in_their_folder(name, tmp_path):
    path = sources.keep_upload(name, b"1,2,3\n")
    assert path.resolve().parent.parent == (tmp_path / "home" / "uploads").resolve()
    assert path.read_bytes() == b"1,2,3\n"


def test_paths_are_understood_as_people_paste_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b.csv").write_text("x")
    for text in (f"  {tmp_path}/a b.csv ", f"'{tmp_path}/a b.csv'", "~/a b.csv"):
        assert own_file.clean_path(text) == tmp_path / "a b.csv"
    assert own_file.clean_path(f"file://{tmp_path}/a b.csv") == tmp_path / "a b.csv"
    with pytest.raises(DataError, match="exists"):
        own_file.clean_path(f"{tmp_path}/missing.csv")


def test_histogram_counts_every_rating(ratings):
    centres, counts, width = figures.rating_counts(ratings)
    assert counts.sum() == len(ratings)
    assert (len(centres), width) == (10, 0.5)
    assert counts[-1] == (ratings.values == 5).sum()
    fig = figures.rating_histogram(ratings, dark=True)
    assert isinstance(fig, go.Figure)
    assert f"{ratings.values.mean():.2f}" in figures.rating_histogram_alt(ratings)


def test_histogram_of_a_continuous_scale_has_bins():
    values = np.linspace(-10, 10, 101)
    table = Ratings.from_triplets(
        np.arange(101), np.zeros(101, int), values, RatingScale(-10, 10, None)
    )
    centres, counts, _ = figures.rating_counts(table)
    assert len(centres) == figures.CONTINUOUS_BINS
    assert counts.sum() == 101


def test_rank_curve_is_thin_and_keeps_its_ends():
    counts = np.arange(0, 100_000)
    ranks, values = figures.rank_curve(counts)
    assert len(ranks) <= figures.RANK_POINTS
    assert (ranks[0], ranks[-1]) == (1, 99_999)
    assert (values[0], values[-1]) == (99_999, 1)
    assert np.all(np.diff(ranks) > 0)


def test_rank_curve_of_nothing_is_empty():
    ranks, _ = figures.rank_curve(np.zeros(5, int))
    assert not len(ranks)
    assert isinstance(figures.activity(np.zeros(5, int), "item"), go.Figure)
    assert "No item" in figures.activity_alt(np.zeros(5, int), "item")


def test_activity_has_log_axes_and_the_threshold(ratings):
    fig = figures.activity(ratings.user_counts, "user", 20)
    assert (fig.layout.xaxis.type, fig.layout.yaxis.type) == ("log", "log")
    assert fig.layout.shapes[0].y0 == 20
    assert fig.layout.annotations[0].y == pytest.approx(np.log10(20))
    assert not figures.activity(ratings.user_counts, "user", 0).layout.shapes


def test_work_curve_rises_to_everything(ratings):
    users, work = figures.work_curve(ratings.user_counts)
    assert (users[0], work[0]) == (0, 0)
    assert (users[-1], work[-1]) == (1, pytest.approx(1))
    assert np.all(np.diff(work) >= 0)
    assert work[20] > 0.5  # the tenth with most ratings does more than half of the work
    assert isinstance(figures.work_by_user(ratings.user_counts), go.Figure)


def test_titles_table_matches_the_ratings(ratings):
    table = overview.titles_table(ratings)
    top = int(np.argmax(ratings.item_counts))
    own = ratings.values[ratings.indices == top]
    assert table["Title"].iloc[0] == ratings.title(top)
    assert table["Mean"].iloc[0] == pytest.approx(own.mean())
    assert table["Spread"].iloc[0] == pytest.approx(own.std())
    assert table["Ratings"].sum() == len(ratings)


def test_cost_text_compares_with_the_paper(ratings):
    needed = estimate(ratings.user_counts, ratings.n_items)
    factor = needed.solve_flops / needed.paper_flops
    assert f"{factor:,.1f} times larger" in overview.cost_text(needed)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.001, "under 0.1 s"),
        (0.5, "0.5 s"),
        (2.0, "2 s"),
        (12.2, "12 s"),
        (600, "10 min"),
        (6000, "1 h 40 min"),
    ],
)
def test_durations_are_readable(seconds, text):
    assert units.duration(seconds) == text


def test_bytes_are_readable():
    assert [units.bytes_text(b) for b in (12, 4.2e6, 2.5e9)] == ["12 bytes", "4.2 MB", "2.5 GB"]


# Half-chosen data --------------------------------------------------------------------


def continues(at):
    """Whether each button that goes on to the fit is a primary one, and its label."""
    found = [at.button(key=f"leave_to_fit_{place}") for place in ("top", "bottom")]
    assert len({(button.proto.type, button.label) for button in found}) == 1
    return found[0].proto.type == "primary", found[0].label


def test_no_primary_button_means_other_data_than_those_being_chosen():
    at = opened()
    assert continues(at) == (True, "Continue: fit this")
    at = own()
    assert continues(at) == (False, "Continue with Sample (MovieLens latest-small, 2016)")
    at.file_uploader[0].set_value(("my file.csv", GOOD.encode(), "text/csv")).run()
    assert not at.exception
    assert continues(at)[0] is False
    assert "my file.csv" in at.button(key="leave_to_fit_top").help
    at.button(key="data_use_own").click().run()
    assert continues(at) == (True, "Continue: fit this")
    assert at.button(key="data_use_own").disabled
    # Read in another way, it is another choice again.
    at.selectbox(key="data_policy").set_value("mean").run()
    assert continues(at) == (False, "Continue with my file.csv")
    assert not at.button(key="data_use_own").disabled
    # What cannot be read is not what a primary button goes on with either.
    at.file_uploader[0].set_value(("bad.csv", b"", "text/csv")).run()
    assert at.error and continues(at)[0] is False
    at.segmented_control(key="data_mode").set_value("named").run()
    assert continues(at) == (False, "Continue with my file.csv")
    at.segmented_control(key="data_mode").set_value("sample").run()
    assert continues(at) == (True, "Continue: fit this")


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ((2, 3, 4), {}, "ends and step"),
        ((1, 2, 3, 4, 5), {}, None),
        ((2, 3, 4), {"low": 1.0, "high": 10.0}, "its step"),
        ((2, 3, 4), {"low": 1.0, "high": 10.0, "step": 1.0}, None),
    ],
)
def test_a_scale_that_was_only_derived_says_so(values, options, said, tmp_path):
    rows = [f"u{u},i{i},{values[(u + i) % len(values)]}" for u in range(25) for i in range(25)]
    file = tmp_path / "r.csv"
    file.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    token = sources.register(file, own_file.reading(DelimitedOptions(**options), "last"))
    at = opened(data=token)
    assert not at.exception and not at.error
    told = " ".join(info.value for info in at.info)
    if said is None:
        assert "values that occur" not in told
    else:
        assert said in told and "--scale LOW,HIGH,STEP" in told
        assert "divisor, 0.8889," in told or "divisor, 3.3," in told


def test_an_upload_keeps_the_name_given_as_far_as_files_can():
    for name, kept in (
        ("meine Größe (2).csv", "meine Größe (2).csv"),
        ("a<b>:c.csv", "a_b_c.csv"),
        ("C:\\x.csv", "C_x.csv"),
        ("...", "ratings.csv"),
        ("ü" * 200 + ".csv", "ü" * 58 + ".csv"),
    ):
        assert sources.keep_upload(name, b"1,2,3\n").name == kept


# Times, and the protocols of everyone ---------------------------------------------------


def test_times_are_shown_by_month_and_in_sessions(ratings):
    found, by_month = sessions(ratings), months(ratings)
    at = opened(tab="times")
    assert not at.exception
    shown = numbers(at)
    assert shown["Sessions"] == f"{len(found.sizes):,}"
    assert shown["Largest session"] == f"{found.sizes.max():,}"
    assert found.sizes.sum() == by_month.counts.sum() == len(ratings)
    figure = time_figures.by_month(by_month)
    assert sum(figure.data[0].y) == len(ratings)
    assert figure.data[0].x[0] == "1995-01-01" and "1995-01 to 2016-10" in (
        time_figures.by_month_alt(by_month)
    )
    labels, counts = time_figures.session_bars(found)
    assert labels[0] == "1" and labels[-1] == "101+" and counts.sum() == len(ratings)
    assert counts[0] == (found.sizes == 1).sum()


def test_data_without_times_say_so(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(GOOD)
    at = opened(data=sources.register(str(path)), protocol="latest")
    assert any("No time of a rating is known" in info.value for info in at.info)
    assert "needs the times of the ratings" in at.error[0].value and not at.exception


def test_random_hold_out_and_its_options():
    at = opened(min_user="0", min_item="0", protocol="random", held="20%")
    assert numbers(at)["Hidden ratings"] == "20,001"
    at.segmented_control(key="data_held_random").set_value("folds").run()
    assert selected(at).held == "10-folds"
    at.number_input(key="data_held_amount_-folds").set_value(4).run()
    assert numbers(at)["Hidden ratings"] == "25,001"  # 100,004 in four
    assert any(note.value == "Fold 1 of 4 is held out." for note in at.caption)
    assert any("No user, item or rating was filtered out" in note.value for note in at.caption)
    assert dict(at.query_params)["held"] in ("4-folds", ["4-folds"])


def test_hold_out_by_time_and_its_options(ratings):
    at = opened(protocol="latest", held="3")
    assert numbers(at)["Hidden ratings"] == f"{3 * ratings.n_users:,}"
    assert any("each user's last 3 ratings" in note.value for note in at.caption)
    at.segmented_control(key="data_held_latest").set_value("share").run()
    assert selected(at).held == "10%"
    at.segmented_control(key="data_protocol").set_value("weak").run()
    assert selected(at).held == "" and not at.exception


def test_a_link_with_no_such_hold_out_shows_the_usual_one():
    at = opened(protocol="random", held="x-folds")
    assert not at.exception and selected(at).held == ""
    assert "held" not in at.query_params
    for held in ("0%", "100%", "1-folds", "-3", "0", "nonsense", "x%", "²", "nan%", "10 %"):
        with pytest.raises(ValueError, match=re.escape(held)):
            context.held_text(held)
    for held in ("10%", "2.5%", "5-folds", "published", "12", ""):
        assert context.held_text(held) == held


def test_published_folds_are_offered_where_the_data_have_them(tmp_path):
    ratings = sample.load().ratings
    folds = np.repeat(np.arange(1, 6, dtype=np.int8), 20_001)[: len(ratings)]
    split = random_split(replace(ratings, folds=folds), 4, folds="published")
    assert split.n_test == 20_000
    at = opened(protocol="random", held="published")
    assert at.segmented_control(key="data_held_random").value == "published"
    assert "came without published folds" in at.error[0].value


def test_a_filter_that_leaves_nothing_is_told_once_and_by_its_control(tmp_path):
    file = tmp_path / "few.csv"
    file.write_text("user,item,rating\n1,2,3\n2,3,4\n")
    at = read_own(file)
    (said,) = [error.value for error in at.error]
    assert (
        "Lower “Ratings per user, at least” on the Data page: the most active user has 1 " in said
    )
    assert "1 ratings" not in said and "min_user" not in said
    assert [part.value for part in at.subheader][-1] == "Filter"


def test_what_is_wrong_with_a_table_stands_above_what_mends_it(tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("user,item\n1,2\n2,3\n")
    at = read_own(file)
    kinds = [part.type for part in list(at.main)]
    fault = next(i for i, part in enumerate(at.main) if part.type == "warning")
    assert "no column left for the rating" in list(at.main)[fault].value
    assert fault < kinds.index("selectbox")


def read_own(file):
    """The page after a file was named by its path and, where it can be, read."""
    at = AppTest.from_file(APP, default_timeout=60)
    at.session_state["gmc_dashboard.entered"] = True
    at = at.switch_page("pages/data.py").run()
    at = at.segmented_control(key="data_mode").set_value("own").run()
    at = at.text_input(key="data_path").set_value(str(file)).run()
    if not at.button(key="data_use_own").disabled:
        at = at.button(key="data_use_own").click().run()
    assert not at.exception
    return at
