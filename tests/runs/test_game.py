"""The guessing game: what a seed draws, what a question holds, and how guesses are scored."""

from __future__ import annotations

import numpy as np
import pytest

from gmc_core.base.errors import ConfigError, DataError, NotFiniteError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.protocol.baselines import bias, item_mean
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import strong_split, weak_split
from gmc_core.runs.game import BIAS, MODEL, NOBODY, TITLE_MEAN, Deck, players_of, standings
from gmc_core.runs.store import HeldOut

SCALE = RatingScale(1, 5)


@pytest.fixture(scope="module")
def ratings():
    draw = np.random.default_rng(3)
    users, items = np.nonzero(draw.random((40, 25)) < 0.4)
    values = draw.integers(1, 6, len(users)).astype(float)
    return Ratings.from_triplets(users + 100, items + 500, values, scale=SCALE)


@pytest.fixture(scope="module", params=["weak", "strong"])
def dealt(request, ratings):
    """A deck, and the split that it is of."""
    split = weak_split(ratings, 0) if request.param == "weak" else strong_split(ratings, 0, 20, 15)
    predictions = np.random.default_rng(4).uniform(0, 6, split.n_test)
    return Deck.of(HeldOut.of(split, predictions), split.train, split.query), split, predictions


def drawn(rounds):
    return [(one.question.user, one.question.item, one.answer.actual) for one in rounds]


def test_a_seed_draws_the_same_rounds_and_another_seed_others(dealt):
    deck, _, _ = dealt
    assert drawn(deck.draw(5)) == drawn(deck.draw(5))
    assert drawn(deck.draw(5)) != drawn(deck.draw(6))
    with pytest.raises(ConfigError, match="whole number"):
        deck.draw(-1)


def test_each_round_is_a_held_out_rating_of_another_user(dealt):
    deck, split, predictions = dealt
    held = {
        (u, m): (y, x)
        for u, m, y, x in zip(
            split.test_users, split.test_items, split.test_values, predictions, strict=True
        )
    }
    for seed in range(20):
        rounds = deck.draw(seed)
        assert len({one.question.user for one in rounds}) == len(rounds) == 10
        for one in rounds:
            actual, predicted = held[one.question.user, one.question.item]
            assert (one.answer.actual, one.answer.predictions[MODEL]) == (actual, predicted)


def test_a_question_holds_all_that_is_known_of_the_user_but_not_what_is_asked(dealt):
    deck, split, _ = dealt
    for one in deck.draw(1, rounds=1000):
        items, values = split.known.of_user(one.question.user)
        assert one.question.known_items.tolist() == items.tolist()
        assert one.question.known_values.tolist() == values.tolist()
        assert one.question.item not in one.question.known_items


def test_every_user_with_a_held_out_rating_comes_up(dealt):
    deck, split, _ = dealt
    assert deck.n_users == split.n_test
    assert {one.question.user for one in deck.draw(0, rounds=1000)} == set(split.test_users)
    often = [user for seed in range(60) for user, _, _ in drawn(deck.draw(seed))]
    assert set(often) == set(split.test_users)


def test_a_deck_of_few_users_has_few_rounds(dealt):
    deck, split, predictions = dealt
    held = HeldOut.of(split, predictions)
    few = HeldOut(*(part[:3] for part in vars(held).values()))
    assert len(Deck.of(few, split.train, split.query).draw(0)) == 3
    none = HeldOut(*(part[:0] for part in vars(held).values()))
    assert Deck.of(none, split.train, split.query).draw(0) == ()


def test_a_user_draws_any_of_several_held_out_ratings(ratings):
    held = HeldOut(
        np.full(3, 3.0),
        np.array([1.0, 2.0, 3.0]),
        np.zeros(3, bool),
        np.full(3, 100),
        np.array([500, 501, 502]),
    )
    deck = Deck.of(held, ratings)
    assert {deck.draw(seed)[0].answer.actual for seed in range(40)} == {1.0, 2.0, 3.0}


def test_users_and_items_of_whom_nothing_is_known_are_left_out(ratings):
    held = HeldOut(
        np.full(3, 3.0),
        np.array([1.0, 2.0, 3.0]),
        np.zeros(3, bool),
        np.array([100, 999_999, 101]),
        np.array([500, 500, 999_999]),
    )
    deck = Deck.of(held, ratings)
    assert drawn(deck.draw(0)) == [(ratings.users.index(100), ratings.items.index(500), 1.0)]


def test_over_the_whole_deck_the_standings_are_the_split_s_own_scores(dealt):
    deck, split, predictions = dealt
    rounds = deck.draw(0, rounds=1000)
    guesses = {
        index: {"Right": one.answer.actual, "Three": 3.0} for index, one in enumerate(rounds)
    }
    found = standings(rounds, guesses, deck.scale)
    assert [one.scores.nmae for one in found] == sorted(one.scores.nmae for one in found)
    nmae = {one.name: one.scores.nmae for one in found}
    expected = {TITLE_MEAN: item_mean(split), BIAS: bias(split), MODEL: predictions}
    for name, own in expected.items():
        assert nmae[name] == pytest.approx(score(own, split.test_values, SCALE).nmae)
    three = score(np.full(split.n_test, 3.0), split.test_values, SCALE)
    assert nmae["Three"] == pytest.approx(three.nmae)
    assert nmae["Right"] == 0
    assert {one.name for one in found if one.player} == {"Right", "Three"}


def test_a_late_player_counts_over_the_own_rounds(dealt):
    deck, _, _ = dealt
    rounds = deck.draw(0)
    late = rounds[4].answer.actual
    guesses = {2: {"Ann": 1.0}, 4: {"Ann": 5.0, MODEL: late}}
    found = standings(rounds, guesses, deck.scale)
    counts = {(one.name, one.player): one.scores.n for one in found}
    assert counts == {
        ("Ann", True): 2,
        (MODEL, True): 1,
        (TITLE_MEAN, False): 2,
        (BIAS, False): 2,
        (MODEL, False): 2,
    }
    ann = next(one for one in found if one.name == "Ann")
    actual = [rounds[2].answer.actual, rounds[4].answer.actual]
    assert ann.scores == score([1.0, 5.0], actual, deck.scale)


def test_before_the_first_guess_nobody_stands_anywhere(dealt):
    deck, _, _ = dealt
    assert standings(deck.draw(0), {}, deck.scale) == []


def test_guesses_that_are_none_are_refused(dealt):
    deck, _, _ = dealt
    rounds = deck.draw(0)
    with pytest.raises(DataError, match="no round 11"):
        standings(rounds, {10: {"Ann": 3.0}}, deck.scale)
    with pytest.raises(NotFiniteError):
        standings(rounds, {0: {"Ann": float("nan")}}, deck.scale)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", (NOBODY,)),
        (" , ;\n", (NOBODY,)),
        ("Ann, Ben", ("Ann", "Ben")),
        (" Ann  Lee ;ben\nBEN, ann lee", ("Ann Lee", "ben")),
    ],
)
def test_names(text, names):
    assert players_of(text) == names
