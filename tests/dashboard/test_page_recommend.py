"""The Recommend page: empty, running and finished; one's own ratings and users of the data."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from computed_runs import computed, opened, small, texts
from making import movielens_folder

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.models import settings_for
from gmc_core.model.model_file import load_model, save_model
from gmc_core.runs.store import Store
from gmc_dashboard.recommend import one_user, ratings_file, views
from gmc_dashboard.recommend.figures import (
    KNOWN,
    SIMILAR,
    describe_contributions,
    explained_path,
    recommendations_json,
)
from gmc_dashboard.recommend.views import WIDEST, title_width
from gmc_dashboard.shared.components import escape

pytestmark = pytest.mark.usefixtures("fresh")

PAGE = "pages/recommend.py"
USER = "user"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with Store(folder) as store:
        ids = {
            "weak": computed(store, small()).id,
            "strong": computed(store, small("strong")).id,
            "columns": computed(store, small(signals="columns")).id,
            "bare": computed(store, small(iterations=2)).id,
        }
        path = store.model_path(ids["bare"])
        model = load_model(path)
        save_model(model, path, with_ratings=False)
    return folder, ids


@pytest.fixture
def ids(home, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(home[0]))
    return home[1]


@pytest.fixture
def model(ids):
    with Store() as store:
        return store.model(ids["weak"])


def shown(at):
    """The table of recommendations."""
    return next(frame.value for frame in at.dataframe if "Interval" in frame.value.columns)


def box(at, label):
    return next(element for element in at.selectbox if element.label == label)


def add(at, title):
    return box(at, "Search a title and rate it").select(title).run()


def rate(at, title, label):
    control = box(at, f"Rating of {title}")
    return control.select(label).run()


def test_a_table_that_no_memory_holds_is_left_to_the_command_line(ids, monkeypatch):
    """60,000 users by 34,000 titles would be 16 GB in the memory of the dashboard."""
    whole = "Completed table (Parquet)"
    at = opened(PAGE, run=ids["weak"])
    assert whole in [button.label for button in at.get("download_button")]
    monkeypatch.setattr(views, "LARGEST_TABLE", 1e3)
    at = opened(PAGE, run=ids["weak"])
    assert whole not in [button.label for button in at.get("download_button")]
    assert "`gmc complete --model FILE --out table.parquet`" in texts(at)


def test_without_runs_it_leads_to_the_fit(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    at = opened(PAGE)
    assert not at.exception
    assert "There is no fitted model yet" in texts(at)


def test_it_waits_for_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    with Store(tmp_path) as store:
        run = store.submit(small())
    at = opened(PAGE, run=run.id)
    assert not at.exception
    assert "this page then shows recommendations by itself" in texts(at)


def test_columns_as_signals_are_explained(ids):
    at = opened(PAGE, run=ids["columns"])
    assert not at.exception
    assert "a new user is no signal of it" in texts(at)


def test_nobody_gets_the_average_users_list(ids, model):
    at = opened(PAGE, run=ids["weak"])
    assert not at.exception
    assert not at.error
    assert "average user" in texts(at)
    table = shown(at)
    eligible = model.item_counts >= at.number_input(key="least").value
    np.testing.assert_allclose(
        table["Prediction"], np.sort(model.gaussian.mean[eligible])[::-1][: len(table)]
    )
    assert "Rate next" in texts(at)


def give(at, name, text):
    """Upload a list of ratings."""
    return at.file_uploader[0].set_value((name, text.encode(), "text/csv")).run()


def test_a_list_from_a_file_rates_once(ids, model):
    at = opened(PAGE, run=ids["weak"])
    text = "title,rating\n" + "".join(
        f'"{model.title(item)}",{value}\n' for item, value in ((4, 5), (9, 2), (17, 5))
    )
    at = give(at, "mine.csv", text + "Nowhere <b>,4\n")
    assert not at.exception
    assert [error.value for error in at.error] == []
    assert "4 ratings: 3 matched to titles of the model, 1 not" in at.success[0].value
    left = next(frame.value for frame in at.dataframe if "Why" in frame.value.columns)
    assert left.values.tolist()[0][0] == "Nowhere <b>"
    assert (left["Why"].item(), left["Line"].item()) == ("no such title", 5)
    expected = model.recommend(
        model.posterior([4, 9, 17], [5, 2, 5]), 10, min_ratings=at.number_input(key="least").value
    )
    assert list(shown(at)["Title"]) == [r.title for r in expected]
    assert "rated" in at.query_params
    # The list is the visitor's from then on: a change stays, whatever the file says.
    at = rate(at, model.title(4), "★★ 2")
    assert "from 3 rating" in texts(at)
    changed = model.recommend(
        model.posterior([4, 9, 17], [2, 2, 5]), 10, min_ratings=at.number_input(key="least").value
    )
    assert list(shown(at)["Title"]) == [r.title for r in changed]


def test_a_long_list_says_that_it_is_not_in_the_address(ids, model, monkeypatch):
    monkeypatch.setattr(one_user, "MAX_IN_URL", 2)
    monkeypatch.setattr(ratings_file, "MAX_IN_URL", 2)
    at = opened(PAGE, run=ids["weak"])
    at = give(
        at,
        "mine.csv",
        "title,rating\n" + "".join(f'"{model.title(item)}",4\n' for item in (4, 9, 17)),
    )
    assert "from 3 rating" in texts(at)
    assert "rated" not in at.query_params
    assert any("after a reload, give the file again" in c.value for c in at.caption)


def test_a_list_on_another_scale_asks_for_it(ids, model):
    at = opened(PAGE, run=ids["weak"])
    at = give(at, "mine.csv", f'title,rating\n"{model.title(4)}",90\n"{model.title(9)}",10\n')
    assert not at.exception
    assert [error.value for error in at.error] == []
    assert "on another scale" in at.info[0].value
    assert "average user" in texts(at)  # nothing is rated yet
    numbers = {box.label: box for box in at.number_input}
    numbers["Lowest possible rating"].set_value(0.0)
    numbers["Highest possible rating"].set_value(100.0)
    at = next(b for b in at.button if b.label == "Use this scale").click().run()
    assert not at.exception
    assert [error.value for error in at.error] == []
    assert any("from 0..100 to the model's 0.5..5, end to end" in c.value for c in at.caption)
    # 90 of 100 is 4.55 on the model's half stars, and 10 is .95.
    expected = model.recommend(
        model.posterior([4, 9], [4.5, 1]), 10, min_ratings=at.number_input(key="least").value
    )
    assert list(shown(at)["Title"]) == [r.title for r in expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("who,what\n1,2\n", "column 'title'"),
        ("title,rating\nHeat,4\nUp,good\n", "mine.csv, line 3: The rating is no number"),
        ("title,rating\nNowhere at all,4\nUp there,3\n", "0 matched"),
    ],
)
def test_lists_that_do_not_help_are_answered_with_a_sentence(ids, text, words):
    at = give(opened(PAGE, run=ids["weak"]), "mine.csv", text)
    assert not at.exception
    said = [element.value for element in (*at.error, *at.warning)]
    assert any(words in one.replace("\\", "") for one in said)
    assert not any("gmc-list" in one for one in said)  # of the folder that is gone
    assert "average user" in texts(at)


def test_five_ratings_fold_in_one_by_one(ids, model):
    at = opened(PAGE, run=ids["weak"])
    before = shown(at)
    for count, item in enumerate((4, 9, 17, 23, 31), start=1):
        title = model.title(item)
        at = add(at, title)
        at = rate(at, title, "★★★★★ 5" if count % 2 else "★★ 2")
        assert not at.exception
        assert f"from {count} rating" in texts(at)
    posterior = model.posterior([4, 9, 17, 23, 31], [5, 2, 5, 2, 5])
    table = shown(at)
    assert list(table["Title"]) != list(before["Title"])
    expected = model.recommend(posterior, 10, min_ratings=at.number_input(key="least").value)
    assert list(table["Title"]) == [r.title for r in expected]
    rated = at.query_params["rated"]
    text = rated if isinstance(rated, str) else rated[0]
    linked = opened(PAGE, run=ids["weak"], rated=text)
    assert list(shown(linked)["Title"]) == list(table["Title"])


def test_a_suggested_title_can_be_rated_at_once(ids):
    at = opened(PAGE, run=ids["weak"])
    at = at.feedback[0].set_value(3).run()
    assert not at.exception
    assert "from 1 rating." in texts(at)


def test_titles_can_be_taken_away_and_cleared(ids, model):
    at = opened(PAGE, run=ids["weak"], rated=f"{model.items.ids[3]}:4,{model.items.ids[5]}:2")
    assert "from 2 ratings" in texts(at)
    at = next(b for b in at.button if b.key.endswith("_rate_3_off")).click().run()
    assert "from 1 rating." in texts(at)
    at = next(b for b in at.button if b.label == "Clear").click().run()
    assert "average user" in texts(at)
    assert "rated" not in at.query_params


def test_ratings_of_other_data_in_the_link_are_counted(ids):
    at = opened(PAGE, run=ids["weak"], rated="999999999:3,x")
    assert "2 of the ratings in the address" in at.warning[0].value


def test_filters(ids, model):
    genre = next(genres[0] for genres in model.item_info.genres if genres)
    at = opened(PAGE, run=ids["weak"])
    at = at.multiselect(key="genres").set_value([genre]).run()
    assert all(genre in genres for genres in shown(at)["Genres"])
    at = at.number_input(key="top").set_value(3).run()
    assert len(shown(at)) == 3
    least = at.number_input(key="least")
    at = least.set_value(least.max).run()
    assert not at.exception


def test_chosen_genres_are_said_beside_the_folded_filter(ids, model):
    genre = next(genres[0] for genres in model.item_info.genres if genres)
    at = opened(PAGE, run=ids["weak"], genres=genre)
    said = [part.value for part in at.markdown if part.value.startswith("Best titles for")]
    assert said[0].endswith(f"Only {escape(genre)}.")
    assert "Only" not in texts(opened(PAGE, run=ids["weak"])).split("Best titles for")[1][:120]


def test_titles_are_whole(ids):
    at = opened(PAGE, run=ids["weak"])
    longest = max(len(title) for title in shown(at)["Title"])
    frame = next(frame for frame in at.dataframe if "Interval" in frame.value.columns)
    columns = json.loads(frame.proto.columns)
    # Letters of the table's type, 13 px, are 6.5 px wide on average, and a cell has 16 px of rim.
    assert columns["Title"]["width"] >= 6.5 * longest + 16
    assert columns["Title"]["width"] == title_width(shown(at)["Title"])
    # Where a window is narrow there is a table whose words wrap.
    (plain,) = at.table
    assert list(plain.value["Title"]) == list(shown(at)["Title"])


def test_the_widest_title_of_the_sample_fits():
    longest = (
        "Neon Genesis Evangelion: The End of Evangelion (Shin seiki Evangelion Gekijô-ban: "
        "Air/Magokoro wo, kimi ni) (1997)"
    )
    assert 762 + 16 <= title_width([longest]) <= WIDEST  # 762 px in DejaVu Sans
    # With more wide letters than most: 511 px.
    title = "Dr. Strangelove or: How I Learned to Stop Worrying and Love the Bomb (1964)"
    assert title_width([title]) >= 511 + 16
    assert title_width(["M" * 500]) == WIDEST
    assert title_width([]) > 0


def test_the_explanation_follows_the_choice(ids, model):
    at = opened(PAGE, run=ids["weak"], rated=f"{model.items.ids[3]}:5")
    why = at.selectbox(key="explained_title")
    at = why.select(why.options[4]).run()
    assert not at.exception
    item = at.selectbox(key="explained_title").value
    asked = at.query_params["why"]
    assert asked in (str(model.items.ids[item]), [str(model.items.ids[item])])
    rated = f"{model.items.ids[3]}:5"
    linked = opened(PAGE, run=ids["weak"], rated=rated, why=str(model.items.ids[item]))
    assert linked.selectbox(key="explained_title").value == item


def marked_rows(at):
    """The rows of the recommendations that look different from the others."""
    table = next(frame for frame in at.dataframe if "Interval" in frame.value.columns)
    return sorted(
        {int(row) for row in re.findall(r"_row(\d+)_col", table.proto.arrow_data.styler.styles)}
    )


def test_the_row_that_is_explained_is_the_marked_one(ids, model):
    at = opened(PAGE, run=ids["weak"], rated=f"{model.items.ids[3]}:5")
    assert marked_rows(at) == [0]
    why = at.selectbox(key="explained_title")
    at = why.select(why.options[4]).run()
    assert marked_rows(at) == [4]


def test_a_linked_user_and_the_hidden_rating(ids, model):
    with Store() as store:
        held_out = store.held_out(ids["weak"])
    user = str(held_out.user_ids[0])
    at = opened(PAGE, run=ids["weak"], who=USER, user=user)
    assert not at.exception
    assert f"user {user}" in texts(at)
    at = at.toggle(key="reveal").set_value(True).run()
    assert "hidden from the fit" in texts(at)
    hidden = next(f.value for f in at.dataframe if "Hidden rating" in f.value.columns)
    own = held_out.user_ids == held_out.user_ids[0]
    np.testing.assert_allclose(hidden["Prediction"], held_out.predictions[own])
    np.testing.assert_allclose(hidden["Hidden rating"], held_out.actual[own])


def test_an_unknown_user_is_a_sentence(ids):
    at = opened(PAGE, run=ids["weak"], who=USER, user="nobody")
    assert "There is no user nobody" in at.warning[0].value
    assert len(shown(at))


def test_random_user_and_the_filter(ids, model):
    at = opened(PAGE, run=ids["weak"], who=USER)
    at = next(b for b in at.button if b.label == "Random").click().run()
    assert not at.exception
    counts = model.ratings.user_counts
    slider = next(s for s in at.slider if s.label == "Number of ratings")
    high = int(counts.max())
    at = slider.set_value((high, high)).run()
    assert not at.exception
    user = box(at, "User").value
    assert counts[user] == high
    assert at.query_params["user_ratings"] in (f"{high}-{high}", [f"{high}-{high}"])
    linked = opened(PAGE, run=ids["weak"], who=USER, user_ratings=f"{high}-{high}")
    assert box(linked, "User").value == user
    linked = opened(PAGE, run=ids["weak"], who=USER, user_ratings="x-", user_hidden="1")
    assert not linked.exception
    assert next(t for t in linked.toggle if t.label.startswith("Only users")).value
    linked = linked.segmented_control(key="who").set_value("yourself").run()
    assert not {"user", "user_hidden"} & set(linked.query_params)


def test_ratings_stay_with_another_model_of_the_same_titles(ids, model):
    at = opened(PAGE, run=ids["weak"])
    for item in (4, 9):
        at = rate(add(at, model.title(item)), model.title(item), "★★★★★ 5")
    del at.query_params["rated"]  # as with more ratings than a link can hold
    at = at.selectbox(key=f"chosen_run_{ids['weak']}_finished").set_value(ids["bare"]).run()
    assert not at.exception
    assert "from 2 ratings" in texts(at)


def test_a_stopped_run_does_not_claim_that_nothing_was_hidden(ids, monkeypatch):
    monkeypatch.setattr(Store, "held_out", lambda *_: None)
    at = opened(PAGE, run=ids["weak"], who=USER)
    assert "is not known" in texts(at)
    assert "No rating of this user was hidden" not in texts(at)
    at = opened(PAGE, run=ids["strong"], who=USER)
    at = at.segmented_control(key="group").set_value("training").run()
    assert "No rating of this user was hidden" in texts(at)


def test_the_recommendations_with_their_explanations_as_json(model):
    posterior = model.posterior([4, 9], [5.0, 2.0])
    found = model.recommend(posterior, 3)
    content = json.loads(recommendations_json(model, posterior, found))
    assert [rating["rating"] for rating in content["ratings"]] == [5.0, 2.0]
    assert [r["title"] for r in content["recommendations"]] == [r.title for r in found]
    for entry in content["recommendations"]:
        total = entry["mean_of_all_users"] + sum(share["share"] for share in entry["shares"])
        assert total == pytest.approx(entry["prediction"])


def test_what_if_adds_a_title_and_undoes_it(ids, model):
    at = opened(PAGE, run=ids["weak"], who=USER)
    before = shown(at)
    user = box(at, "User").value
    mine = set(model.ratings.of_user(user)[0].tolist())
    item = next(m for m in range(len(model.items)) if m not in mine)
    at = box(at, "What if … also rated").select(model.title(item)).run()
    at = rate(at, model.title(item), "½ 0.5")
    assert not at.exception
    assert not np.allclose(shown(at)["Prediction"], before["Prediction"])
    at = next(b for b in at.button if b.label == "Undo all changes").click().run()
    np.testing.assert_allclose(shown(at)["Prediction"], before["Prediction"])


def test_novel_users_of_a_strong_run(ids):
    at = opened(PAGE, run=ids["strong"], who=USER)
    assert not at.exception
    assert at.segmented_control(key="group").value == "novel"
    assert at.toggle(key="reveal")
    at = at.segmented_control(key="group").set_value("training").run()
    assert not at.exception


def test_a_model_without_ratings_knows_no_users(ids):
    at = opened(PAGE, run=ids["bare"])
    assert not at.exception
    assert len(shown(at))
    at = at.segmented_control(key="who").set_value(USER).run()
    assert not at.exception
    assert "knows no users" in texts(at)


def test_what_if_changes_are_in_the_link(ids, model):
    at = opened(PAGE, run=ids["weak"], who=USER)
    before = shown(at)
    user = box(at, "User").value
    mine = set(model.ratings.of_user(user)[0].tolist())
    item = next(m for m in range(len(model.items)) if m not in mine)
    at = box(at, "What if … also rated").select(model.title(item)).run()
    at = rate(at, model.title(item), "½ 0.5")
    edits = at.query_params["edits"]
    text = edits if isinstance(edits, str) else edits[0]
    id = str(model.ratings.users.ids[user])
    linked = opened(PAGE, run=ids["weak"], who=USER, user=id, edits=text)
    np.testing.assert_allclose(shown(linked)["Prediction"], shown(at)["Prediction"])
    linked = next(b for b in linked.button if b.label == "Undo all changes").click().run()
    np.testing.assert_allclose(shown(linked)["Prediction"], before["Prediction"])
    assert "edits" not in linked.query_params


def test_what_if_text_keeps_changed_added_and_left_out_ratings(model):
    base = {0: 3.0, 1: 4.0, 2: 5.0}
    edited = {0: 2.5, 2: 5.0, 7: 1.0}
    text = one_user.changes_to_text(model, "u;1", base, edited)
    assert one_user.changed_by_text(model, "u;1", base, text) == edited
    assert one_user.changed_by_text(model, "another", base, text) == base
    assert one_user.changes_to_text(model, "u;1", base, dict(base)) == ""
    assert one_user.changed_by_text(model, "u;1", base, "u%3B1;nonsense,:-,x:9") == base


# What else is known of users ------------------------------------------------------------


@pytest.fixture(scope="module")
def knowing(tmp_path_factory):
    """A home with runs that know of users' gender, age and occupation."""
    folder = tmp_path_factory.mktemp("knowing")
    data = str(movielens_folder(folder / "ml-1m"))
    fit = replace(settings_for("exact"), iterations=6)
    with Store(folder / "home") as store:
        runs = {
            protocol: computed(store, ExperimentConfig(data=data, protocol=protocol, fit=fit)).id
            for protocol in ("weak", "strong")
        }
    return folder / "home", runs


@pytest.fixture
def known(knowing, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(knowing[0]))
    return knowing[1]


def test_visitors_can_say_what_they_are_of(known):
    at = opened(PAGE, run=known["weak"])
    assert not at.exception
    before = shown(at)
    first = [row in range(1, 16) for row in before["Title"].str.split().str[1].astype(int)]
    assert box(at, "Gender").value == "(not given)"
    box(at, "Gender").select("F").run()
    assert not at.exception
    titles = shown(at)["Title"].str.split().str[1].astype(int)
    assert (titles <= 15).all() and not all(first)
    assert "what this user's groups like more or less" in texts(at)
    box(at, "Gender").select("M").run()
    assert (shown(at)["Title"].str.split().str[1].astype(int) > 15).all()
    linked = opened(PAGE, run=known["weak"], about_gender="F")
    assert list(shown(linked)["Title"].str.split().str[1].astype(int)) == list(titles)


@pytest.mark.parametrize("protocol", ["weak", "strong"])
def test_what_is_known_of_a_user_is_said_and_counts(known, protocol):
    at = opened(PAGE, run=known[protocol], who=USER)
    assert not at.exception
    assert "Also known: age " in texts(at)
    with Store() as store:
        model = store.model(known[protocol])
    assert model.groups is not None
    assert "what this user's groups like more or less" in texts(at)


def test_new_users_of_data_that_have_changed_are_missed(known, knowing):
    file = knowing[0].parent / "ml-1m" / "ratings.dat"
    content = file.read_bytes()
    file.write_bytes(b"\n".join(content.splitlines()[:-200]) + b"\n")
    try:
        at = opened(PAGE, run=known["strong"], who=USER)
    finally:
        file.write_bytes(content)
    assert not at.exception
    assert "cannot be drawn again" in texts(at)
    assert "saved without its training ratings" not in texts(at)


def test_models_without_groups_do_not_ask(ids):
    at = opened(PAGE, run=ids["weak"])
    assert "Gender" not in [element.label for element in at.selectbox]
    assert "what this user's groups" not in texts(at)


def test_the_explanation_adds_up_with_what_else_is_known(known):
    with Store() as store:
        model = store.model(known["weak"])
    posterior = model.posterior([3, 20], [5, 2], model.groups.covariates_of(["gender F"]))
    found = model.recommend(posterior, 3)
    told = json.loads(recommendations_json(model, posterior, found))["recommendations"]
    for entry in told:
        shares = sum(part["share"] for part in entry["shares"])
        assert entry["before_any_rating"] + shares == pytest.approx(entry["prediction"])
        assert entry["before_any_rating"] != pytest.approx(entry["mean_of_all_users"], abs=0.01)
    item = found[0].item
    steps = [value for _, _, value in explained_path(model, posterior, item)]
    assert sum(steps[:-1]) == pytest.approx(steps[-1]) == pytest.approx(posterior.mean[item])
    assert KNOWN in describe_contributions(model, posterior, item)


# Two sides -----------------------------------------------------------------------------


def test_similar_users_are_one_part_of_the_explanation(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path))
    config = small(model="two-sided", noise=0.5, iterations=4, user_rank=3, user_start=3)
    with Store(tmp_path) as store:
        run = computed(store, config).id
        model = store.model(run)
    at = opened(PAGE, run=run, who=USER)
    assert not at.exception
    assert "plus what similar users do" in texts(at)
    user = int(np.flatnonzero(model.ratings.user_counts > 2)[0])
    items, values = model.ratings.of_user(user)
    posterior = model.posterior(items, values, model.covariates_of(model.ratings, user))
    item = model.recommend(posterior, 1)[0].item
    path = explained_path(model, posterior, item)
    steps = [value for kind, _, value in path if kind != "total"]
    assert sum(steps) == pytest.approx(path[-1][2])
    assert any(SIMILAR.split()[1] in label for _, label, _ in path)
    assert SIMILAR in describe_contributions(model, posterior, item)
    for view in ("titles", "axes"):
        assert not opened("pages/covariance.py", run=run, view=view).exception
