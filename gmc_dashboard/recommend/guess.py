"""Guess first: a class guesses hidden ratings; then what was given, and what was predicted.

What is revealed goes to the browser only after the guesses of its round are in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from gmc_core.data.ratings import RatingScale
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.runs.game import (
    MAX_PLAYERS,
    ROUNDS,
    Deck,
    Question,
    Round,
    Standing,
    players_of,
    standings,
)
from gmc_core.runs.store import Run
from gmc_dashboard.covariance import data as covariance_data
from gmc_dashboard.recommend import guess_figures as figures
from gmc_dashboard.recommend.data import deck_of, novel_people
from gmc_dashboard.recommend.rating_rows import rating_text
from gmc_dashboard.recommend.views import beyond_scale
from gmc_dashboard.shared import context, link_state
from gmc_dashboard.shared.components import chart, empty_state, escape, fact
from gmc_dashboard.shared.frames import frame
from gmc_dashboard.shared.theme import is_dark

NAMES = "game_names"  # in the session: what was typed last
MOST_SEED = 1_000_000
BESIDE = 3  # sliders below each other; more stand in two columns


@dataclass
class Play:
    """How far a game has come. at : the round shown, from 0.

    guesses : of the rounds that are revealed, see :data:`gmc_core.runs.game.Guesses`.
    """

    at: int = 0
    guesses: dict[int, dict[str, float]] = field(default_factory=dict)


def draw(run: Run, model: GaussianModel) -> None:
    """The round in play, and the score once there is one."""
    deck = _deck(run, model)
    if deck is None:
        return
    seed = _seed(run)
    rounds = deck.draw(seed)
    play = _play(run, seed)
    players = _top_row(run, seed, len(rounds))
    left, right = st.columns([4, 4], gap="medium")
    with left:
        _round(model, rounds, play, players, f"{run.id}_{seed}")
    with right:
        _known(model, rounds[play.at].question)
    if play.guesses:
        _score(run, standings(rounds, play.guesses, deck.scale), len(play.guesses), len(rounds))


# What there is to guess -----------------------------------------------------------------


def _deck(run: Run, model: GaussianModel) -> Deck | None:
    """The run's held-out ratings; where there are none, what to do about it."""
    if run.config.protocol == "none":
        empty_state(
            "This run learned from all ratings and held none out, so there is nothing to guess. "
            "Fit with the weak or the strong protocol.",
            "pages/fit.py",
            "Fit with held-out ratings",
            query_params={"run": context.NO_RUN, "protocol": "weak"},
        )
        return None
    if model.ratings is None:
        empty_state(
            "This model was saved without its training ratings, so what else a user rated is not "
            "known. Fit it again to play.",
            "pages/fit.py",
            "Fit with held-out ratings",
            query_params={"run": context.NO_RUN},
        )
        return None
    query = None
    if run.config.protocol == "strong":
        people = novel_people(run, model)
        if people is None:
            empty_state(
                "The new users of this run cannot be drawn again: the data are not those that it "
                "was fitted to. Fit the data as they are now to play.",
                "pages/fit.py",
                "Fit again",
                query_params={"run": context.NO_RUN},
            )
            return None
        query = people.ratings
    deck = deck_of(run, model, query)
    if deck is None:
        empty_state(
            "This run stopped before it wrote down which ratings it held out. Resume it to play.",
            "pages/fit.py",
            "Resume the fit",
            query_params={"run": run.id},
        )
        return None
    if not deck.n_users:
        empty_state(
            "Of the users with held-out ratings nothing else is known, so there is nothing to "
            "guess from. Fit with the weak or the strong protocol.",
            "pages/fit.py",
            "Fit with held-out ratings",
            query_params={"run": context.NO_RUN, "protocol": "weak"},
        )
        return None
    return deck


def _seed(run: Run) -> int:
    """The seed of the rounds, in the address and the session."""
    text = link_state.recall("game", run.id)
    seed = int(text) if text.isdecimal() and len(text) < 10 else 0
    link_state.keep("game", str(seed), run.id)
    return seed


def _play(run: Run, seed: int) -> Play:
    """The game as it stands; it begins anew with another model of the run."""
    _, stamp = covariance_data.key_of(run.id)
    found: Play = st.session_state.setdefault(f"game_{run.id}_{stamp}_{seed}", Play())
    return found


# Parts of the page ----------------------------------------------------------------------


def _top_row(run: Run, seed: int, rounds: int) -> tuple[str, ...]:
    """Who plays, and which rounds."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(
            "Players",
            st.session_state.get(NAMES, ""),
            key="game_players",
            placeholder="You; or names with commas: Ann, Ben",
            width="stretch",
        )
        st.button(
            "Other rounds",
            icon=":material/casino:",
            key="game_others",
            help=f"These are the rounds of seed {seed}. The address holds it, so that everybody "
            "who opens the link gets the same users and titles.",
            on_click=_others,
            args=(run.id,),
        )
    st.session_state[NAMES] = typed  # survives a look at another page
    players = players_of(typed)
    if len(players) > MAX_PLAYERS:
        st.warning(
            f"{len(players)} names are given and {MAX_PLAYERS} can play at one screen: "
            f"{escape(', '.join(players[:MAX_PLAYERS]))} do."
        )
    if rounds < ROUNDS:
        fact(f"This run held out ratings of {rounds} users only, so there are {rounds} rounds.")
    return players[:MAX_PLAYERS]


def _others(run: str) -> None:
    seed = int(np.random.default_rng().integers(1, MOST_SEED))
    link_state.keep("game", str(seed), run)


def _round(
    model: GaussianModel,
    rounds: tuple[Round, ...],
    play: Play,
    players: tuple[str, ...],
    key: str,
) -> None:
    """The title, then either the guesses to be made or what is revealed."""
    question = rounds[play.at].question
    genres = ", ".join(model.item_info.genres[question.item])
    fact(f"Round {play.at + 1} of {len(rounds)}" + (f" · {escape(genres)}" if genres else ""))
    st.subheader(escape(model.title(question.item)), anchor=False)
    if play.at not in play.guesses:
        _ask(model.scale, play, players, f"{key}_{play.at}")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        actual = rating_text(model.scale, rounds[play.at].answer.actual)
        st.markdown(f"The user gave it **{actual}**.", width="stretch")
        _go_on(play, len(rounds))
    _reveal(model.scale, rounds[play.at], play.guesses[play.at])


def _go_on(play: Play, rounds: int) -> None:
    """The button that leads on."""
    if play.at + 1 < rounds:
        st.button(
            "Next round",
            icon=":material/arrow_forward:",
            type="primary",
            key="game_next",
            shortcut="N",
            on_click=_next,
            args=(play,),
        )
        return
    st.button(
        "Play these rounds again",
        icon=":material/replay:",
        key="game_again",
        on_click=_again,
        args=(play,),
    )


def _ask(scale: RatingScale, play: Play, players: tuple[str, ...], key: str) -> None:
    """One slider a player; all guesses go in at once.

    A slider that nobody has moved is no guess yet: the first press asks for one, a second one
    without a move says that the middle is meant.
    """
    low, high = float(scale.low), float(scale.high)
    step = (high - low) / 100 if scale.step is None else float(scale.step)
    keys = {player: f"guess_{key}_{player}" for player in players}
    middle = float(scale.project(scale.midpoint))

    state = f"guess_{key}_asked"

    def give() -> None:
        still = [name for name, own in keys.items() if st.session_state.get(own, middle) == middle]
        if set(still) - set(st.session_state.get(state, ())):
            st.session_state[state] = still
            return
        play.guesses[play.at] = {
            player: float(st.session_state.get(own, middle)) for player, own in keys.items()
        }

    with st.form("game_guesses", border=False):
        st.markdown("What did this user give it?")
        # Many sliders stand in two columns, so that the button stays in sight.
        places = st.columns(2) if len(keys) > BESIDE else [st.container()]
        for index, (player, own) in enumerate(keys.items()):
            places[index % len(places)].slider(
                escape(player), low, high, middle, step, format="%g", key=own
            )
        if asked := st.session_state.get(state):
            whose = "" if len(keys) == 1 else f" of {escape(', '.join(asked))}"
            one = len(asked) == 1
            st.markdown(
                f":material/front_hand: The {'slider' if one else 'sliders'}{whose} "
                f"{'has' if one else 'have'} not been moved. Move {'it' if one else 'them'} to "
                f"guess, or press “Reveal” again if {middle:g} is the guess."
            )
        st.form_submit_button("Reveal", type="primary", key="reveal", on_click=give)


def _next(play: Play) -> None:
    play.at += 1


def _again(play: Play) -> None:
    play.at = 0
    play.guesses.clear()


def _reveal(scale: RatingScale, shown: Round, guesses: dict[str, float]) -> None:
    """What the user gave, and what everybody said."""
    answers = figures.said(shown.answer, guesses)
    actual = shown.answer.actual
    words = figures.describe_reveal(answers, actual, scale)
    chart(
        figures.reveal_figure(answers, actual, scale, dark=is_dark()),
        words,
        key="game_revealed",
        config={"displayModeBar": False},
    )
    if outside := beyond_scale(shown.answer.predictions.values(), scale):
        fact(outside)


def _known(model: GaussianModel, question: Question) -> None:
    """What else the user rated, the best liked first."""
    counts = model.item_counts[question.known_items]
    order = np.lexsort((-counts, -question.known_values))
    items, values = question.known_items[order], question.known_values[order]
    noun = "title" if len(items) == 1 else "titles"
    st.markdown(f"**What else this user rated: {len(items):,} {noun}**")
    frame(
        pd.DataFrame({"Title": [model.title(int(item)) for item in items], "Rating": values}),
        hide_index=True,
        height=min(320, 35 * len(items) + 38),
        column_config={
            "Title": st.column_config.TextColumn(width=280),
            "Rating": st.column_config.NumberColumn(format="%g", width=60),
        },
        alt="What else the user rated: "
        + "; ".join(
            f"{model.title(int(item))} {value:g}"
            for item, value in zip(items[:20], values[:20], strict=True)
        ),
    )


def _score(run: Run, found: list[Standing], played: int, rounds: int) -> None:
    """How everybody stands."""
    words = figures.describe_scores(found)
    over = "all rounds" if played == rounds else "1 round" if played == 1 else f"{played} rounds"
    st.markdown(f"**Score after {over}**")
    frame(
        figures.score_table(found),
        hide_index=True,
        height="content",
        column_config={
            "NMAE": st.column_config.NumberColumn(format="%.3f"),
            "Off by": st.column_config.NumberColumn(
                format="%.2f", help="The mean absolute error, in ratings"
            ),
        },
        alt=words,
    )
    nmae = (run.summary or {}).get("nmae")
    n = (run.summary or {}).get("n")
    whole = (
        f" Over all {n:,} held-out ratings of this run the model's is {nmae:.3f}."
        if nmae is not None and n
        else ""
    )
    fact(
        "NMAE: 0 is perfect, 1 is random guessing. Every prediction is rounded to the scale before "
        f"it is compared. A few rounds leave much to chance.{whole}"
    )
