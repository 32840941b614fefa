"""Guess first: people guess held-out ratings before the model and two baselines are revealed.

    deck = Deck.of(store.held_out(run.id), model.ratings)
    rounds = deck.draw(seed=7)             # ten rounds, the same for everybody with this seed
    rounds[0].question                     # what may be shown before the guesses
    rounds[0].answer                       # what may not
    standings(rounds, {0: {"Ann": 4.0}}, deck.scale)

A round is one held-out rating of one user, with all that the model knew of that user. Errors
are those of :mod:`gmc_core.protocol.metrics`, so a guess counts as a prediction does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.protocol.baselines import bias, item_mean
from gmc_core.protocol.draws import bounded, choose, word_stream
from gmc_core.protocol.metrics import Scores, score
from gmc_core.protocol.splits import Split
from gmc_core.runs.store import HeldOut

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Guesses = Mapping[int, Mapping[str, float]]
"""Of each round that has been revealed, by its index from 0: each player's guess."""

ROUNDS = 10
MAX_PLAYERS = 6
NOBODY = "You"  # the one player where no names are given
TITLE_MEAN, BIAS, MODEL = "Mean of the title", "User and item bias", "Model"


@dataclass(frozen=True, eq=False)
class Question:
    """What may be shown before the guesses.

    user : position in the users of whom something is known. item : position of the title
    whose rating is asked for.
    known_items, known_values : (n,) what else the user rated, n ≥ 1; never ``item``.
    """

    user: int
    item: int
    known_items: Positions
    known_values: Floats


@dataclass(frozen=True)
class Answer:
    """What is revealed after the guesses.

    actual : the rating that the user gave.
    predictions : of :data:`TITLE_MEAN`, :data:`BIAS` and :data:`MODEL`, unprojected.
    """

    actual: float
    predictions: dict[str, float]


@dataclass(frozen=True, eq=False)
class Round:
    """A question and its answer."""

    question: Question
    answer: Answer


@dataclass(frozen=True, eq=False)
class Deck:
    """Held-out ratings to draw rounds from.

    split : with the held-out ratings of users of whom something else is known.
    predictions : (n_test,) of each of :data:`TITLE_MEAN`, :data:`BIAS` and :data:`MODEL`.
    """

    split: Split
    predictions: dict[str, Floats]

    @classmethod
    def of(cls, held_out: HeldOut, train: Ratings, query: Ratings | None = None) -> Deck:
        """The held-out ratings of a run.

        Parameters
        ----------
        held_out : with the model's predictions; ratings of users of whom nothing is known, and
            of items outside the vocabulary, are left out, as there is nothing to guess from.
        train : what the model was fitted to. query : the query set, ratings of novel users
            (strong generalization); None where the test users are those of ``train``.

        Raises
        ------
        DataError
            If there are no training ratings.
        """
        known = train if query is None else query
        users, items = known.users.find(held_out.user_ids), known.items.find(held_out.item_ids)
        usable = (users >= 0) & (items >= 0)
        usable[usable] = known.user_counts[users[usable]] > 0
        split = Split(
            protocol="weak" if query is None else "strong",
            train=train,
            query=query,
            test_users=users[usable].astype(np.int64),
            test_items=items[usable].astype(np.int64),
            test_values=held_out.actual[usable].astype(np.float64),
        )
        return cls(
            split,
            {
                TITLE_MEAN: item_mean(split),
                BIAS: bias(split),
                MODEL: held_out.predictions[usable].astype(np.float64),
            },
        )

    @property
    def scale(self) -> RatingScale:
        """Of the ratings and the guesses."""
        return self.split.train.scale

    @property
    def n_users(self) -> int:
        """Users with a held-out rating, of each of whom one round can be made."""
        return len(np.unique(self.split.test_users))

    def draw(self, seed: int, rounds: int = ROUNDS) -> tuple[Round, ...]:
        """Rounds of as many different users, one held-out rating each.

        The same seed gives the same rounds on every machine; fewer where the deck has fewer
        users.

        Raises
        ------
        ConfigError
            If the seed is not a whole number of 0 or more.
        """
        split, words = self.split, word_stream(seed)
        users, counts = np.unique(split.test_users, return_counts=True)
        drawn = choose(words, len(users), min(rounds, len(users)))
        places = bounded(words, counts[drawn])
        return tuple(
            self._round(int(np.flatnonzero(split.test_users == users[user])[place]))
            for user, place in zip(drawn, places, strict=True)
        )

    def _round(self, test: int) -> Round:
        user = int(self.split.test_users[test])
        items, values = self.split.known.of_user(user)
        return Round(
            Question(
                user,
                int(self.split.test_items[test]),
                items.astype(np.int64),
                values.astype(np.float64),
            ),
            Answer(
                float(self.split.test_values[test]),
                {name: float(own[test]) for name, own in self.predictions.items()},
            ),
        )


@dataclass(frozen=True)
class Standing:
    """How well one player, baseline or the model has done.

    player : whether it is a person, whose name may be that of a baseline.
    scores : over the rounds in which there was a guess; ``scores.n`` says how many.
    """

    name: str
    player: bool
    scores: Scores


def standings(rounds: Sequence[Round], guesses: Guesses, scale: RatingScale) -> list[Standing]:
    """All players, both baselines and the model, the smallest NMAE first.

    A player counts over the rounds in which they guessed, the others over all rounds in
    ``guesses``. Empty before the first round.

    Raises
    ------
    DataError
        If a guess is of a round that does not exist.
    NotFiniteError
        If a guess is NaN or infinite.
    """
    beyond = [index for index in guesses if not 0 <= index < len(rounds)]
    if beyond:
        raise DataError(f"There is no round {beyond[0] + 1}; the game has {len(rounds)}.")
    played = sorted(guesses)
    answers = {index: rounds[index].answer for index in played}
    names = dict.fromkeys(name for index in played for name in guesses[index])
    found = []
    for name in names:
        own = [index for index in played if name in guesses[index]]
        said = [guesses[index][name] for index in own]
        actual = [answers[index].actual for index in own]
        found.append(Standing(name, True, score(said, actual, scale)))
    actual = [answer.actual for answer in answers.values()]
    for name in (TITLE_MEAN, BIAS, MODEL) if played else ():
        said = [answer.predictions[name] for answer in answers.values()]
        found.append(Standing(name, False, score(said, actual, scale)))
    return sorted(found, key=lambda standing: standing.scores.nmae)


def players_of(text: str) -> tuple[str, ...]:
    """The names in a text with commas, each once; :data:`NOBODY` where there is none.

    Names that differ only in capitals and spaces are one player, written as at first.
    """
    names = (" ".join(part.split()) for part in re.split(r"[,;\n]", text))
    found: dict[str, str] = {}
    for name in names:
        if name:
            found.setdefault(name.casefold(), name)
    return tuple(found.values()) or (NOBODY,)
