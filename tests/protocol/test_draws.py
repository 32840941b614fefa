"""Random draws: the recorded stream, no bias, no dependence on blocks."""

import numpy as np
import pytest
from scipy import stats

from gmc_core.protocol.draws import bounded, choose, word_stream


def test_words_are_the_raw_stream_of_pcg64():
    """PCG XSL-RR 128/64 (O'Neill 2014), written out here from the starting state."""
    start = np.random.PCG64(2026).state["state"]
    state, increment = start["state"], start["inc"]
    expected = []
    for _ in range(200):
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % 2**128
        word, turn = (state >> 64) ^ (state % 2**64), state >> 122
        expected.append((word >> turn | word << (64 - turn)) % 2**64)
    words = word_stream(2026)
    assert words(150).tolist() + words(50).tolist() == expected


def test_seeding_is_as_recorded():
    assert word_stream(0)(3).tolist() == [
        11749869230777074271,
        4976686463289251617,
        755828109848996024,
    ]


def test_bounded_takes_the_remainder_and_rejects_the_biased_tail():
    tail = 2**64 - 1  # 2^64 = 1 (mod 3): of the words only the last favours a remainder.
    script = iter([7, tail, 5, tail, tail, 9, 11])
    taken = []

    def words(count):
        block = [next(script) for _ in range(count)]
        taken.extend(block)
        return np.array(block, dtype=np.uint64)

    assert bounded(words, [3, 3, 10]).tolist() == [7 % 3, 5 % 3, 9]
    # Nothing beyond the last accepted word was drawn, so the next draw starts there.
    assert taken == [7, tail, 5, tail, tail, 9]


def test_bounded_rejects_nothing_when_the_bound_divides_the_range():
    words = lambda count: np.full(count, 2**64 - 1, dtype=np.uint64)  # noqa: E731
    assert bounded(words, [1, 2, 2**62]).tolist() == [0, 1, 2**62 - 1]


def test_bounded_has_no_bias_where_a_remainder_would():
    """For b = 3·2^61 the remainder alone would hit the lower two thirds in 3 of 4 words."""
    bound = 3 * 2**61
    drawn = bounded(word_stream(5), np.full(6_000, bound))
    thirds = np.bincount(drawn // 2**61, minlength=3)
    assert stats.chisquare(thirds).pvalue > 0.001
    halves = np.bincount(drawn % 2, minlength=2)
    assert stats.chisquare(halves).pvalue > 0.001


@pytest.mark.parametrize("bound", [2, 3, 7])
def test_bounded_is_uniform_on_a_tiny_range(bound):
    drawn = bounded(word_stream(11), np.full(20_000, bound))
    assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > 0.001
    pairs = drawn[::2] * bound + drawn[1::2]
    assert stats.chisquare(np.bincount(pairs, minlength=bound**2)).pvalue > 0.001


def test_bounded_does_not_depend_on_blocks():
    bounds = np.arange(1, 60)
    words = word_stream(3)
    piecewise = np.concatenate([bounded(words, bounds[:13]), bounded(words, bounds[13:])])
    assert piecewise.tolist() == bounded(word_stream(3), bounds).tolist()
    assert bounded(word_stream(3), []).tolist() == []


def test_bounded_refuses_an_empty_range():
    with pytest.raises(ValueError, match="at least 1"):
        bounded(word_stream(0), [3, 0])


def test_choose_draws_every_pair_equally_often():
    words = word_stream(8)
    counts = np.zeros((5, 5), dtype=int)
    for _ in range(8_000):
        first, second = choose(words, 5, 2)
        counts[first, second] += 1
    assert counts.trace() == 0
    off_diagonal = counts[~np.eye(5, dtype=bool)]
    assert stats.chisquare(off_diagonal).pvalue > 0.001


def test_choose_of_all_is_a_permutation_and_a_short_draw_is_its_start():
    everyone = choose(word_stream(4), 50, 50)
    assert sorted(everyone.tolist()) == list(range(50))
    assert choose(word_stream(4), 50, 20).tolist() == everyone[:20].tolist()
