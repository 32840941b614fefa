"""The Recommend page: rate a few titles, or look at a user, and see why each title follows; or
guess hidden ratings before the model's predictions are shown.

Sections: constants, the two ways to come by ratings, layout.
"""

from __future__ import annotations

import streamlit as st

from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.store import Run
from gmc_dashboard.recommend import guess, picks, ratings_file
from gmc_dashboard.recommend import views as recommend_views
from gmc_dashboard.recommend import who as recommend_who
from gmc_dashboard.recommend.data import fold_in
from gmc_dashboard.recommend.figures import select
from gmc_dashboard.recommend.rating_rows import rated
from gmc_dashboard.shared import link_state
from gmc_dashboard.shared.chosen_run import choose_run_and_view, model_or_wait, rows_only
from gmc_dashboard.shared.components import guard, page_header

# Constants ---------------------------------------------------------------------------

LEAD = (
    "A few ratings are enough: the model takes them in at once (by one small linear solve) and is "
    "not fitted anew, and each title says why."
)
PURPOSE = "recommendations"
WHO = {recommend_who.YOURSELF: "Yourself", "user": "A user of the data", "guess": "Guess first"}
# What each way keeps in the URL beside the widgets that do so themselves.
OF_YOURSELF = ("rated",)
OF_USERS = ("user", "edits", "user_ratings", "user_hidden")
OF_GAME = ("game",)
KEPT = dict(zip(WHO, (OF_YOURSELF, OF_USERS, OF_GAME), strict=True))


# Two ways to come by ratings -----------------------------------------------------------


def yourself(run: Run, model: GaussianModel) -> None:
    """The visitor rates; the list follows."""
    left, right = st.columns([5, 11], gap="medium")
    with left:
        name = recommend_who.own_ratings(run, model)
        newest = recommend_who.newest_row(name, model)
        offered, mine, more = st.container(), st.container(), st.container()
        with more:
            ratings_file.upload(name, model)
            known = recommend_who.about_you(model)
        ratings = rated(name)
        posterior = fold_in(run, model, ratings, known)
        with offered:
            picks.draw(run, name, model, posterior)
        with mine:
            recommend_who.own_rows(name, model, known is not None, newest)
    with right:
        said = recommend_views.sentence("you", len(ratings), known is not None)
        top, least, genres = recommend_views.filters(model, said)
        found = select(model, posterior, top, min_ratings=least, genres=genres)
        recommend_views.recommendations(run, model, posterior, found, least)
        recommend_views.files(model, posterior, found, "you")


def user_of_data(run: Run, model: GaussianModel) -> None:
    """A user's ratings, possibly changed, and what follows."""
    left, right = st.columns([5, 11], gap="medium")
    with left:
        picked = recommend_who.pick_user(run, model)
        if picked is None:
            return
        people, user = picked
        known = recommend_who.about_user(model, people, user)
        ratings, changed = recommend_who.edited_ratings(run, model, people, user)
        if changed:  # what the training found in this user's ratings is no longer so
            known = model.besides_ratings(known)
        posterior = fold_in(run, model, ratings, known, people.times(user, ratings))
    with right:
        who = str(people.ratings.users.ids[user])
        said = recommend_views.sentence(f"user {who}", len(ratings), known is not None)
        top, least, genres = recommend_views.filters(model, said)
        found = select(model, posterior, top, min_ratings=least, genres=genres)
        recommend_views.recommendations(run, model, posterior, found, least)
        recommend_views.hidden_ratings(model, posterior, people, user, changed)
        recommend_views.files(model, posterior, found, f"user-{who}")


# Layout --------------------------------------------------------------------------------


def draw(run: Run, who: str) -> None:
    """The chosen way."""
    model = model_or_wait(run, PURPOSE)
    if model is None or not rows_only(model, PURPOSE):
        return
    link_state.hide(*(name for way in WHO if way != who for name in KEPT[way]))
    {recommend_who.YOURSELF: yourself, "user": user_of_data, "guess": guess.draw}[who](run, model)


page_header("Recommend", LEAD)
with guard():
    chosen = choose_run_and_view(PURPOSE, "For whom", WHO, "who")
    if chosen is not None:
        draw(*chosen)
