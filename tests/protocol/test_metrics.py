"""Scores, paired differences, and the baselines."""

import numpy as np
import pytest
from scipy import stats

from gmc_core.base.errors import ConfigError, DataError, NumericalError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.protocol import baselines as simple
from gmc_core.protocol.metrics import normalized_errors, paired_difference, score, score_pooled
from gmc_core.protocol.splits import no_split, pair_split, strong_split, weak_split

STARS = RatingScale(1, 5)


def test_every_score_by_hand():
    # Raw 1.4, 7, 3.5 → clipped 1.4, 5, 3.5 → rounded 1, 5, 4.
    got = score([1.4, 7.0, 3.5], [2, 4, 4], STARS, unseen=[False, True, False])
    assert got.n == 3 and got.n_unseen == 1 and got.divisor == 1.6
    assert got.mae == pytest.approx((1 + 1 + 0) / 3)
    assert got.nmae == pytest.approx(2 / 3 / 1.6)
    assert got.nmae_se == pytest.approx(np.sqrt(1 / 3) / np.sqrt(3) / 1.6)
    assert got.rmse == pytest.approx(np.sqrt((0.36 + 1 + 0.25) / 3))
    assert got.rmse_projected == pytest.approx(np.sqrt(2 / 3))
    assert got.mae_unprojected == pytest.approx((0.6 + 3 + 0.5) / 3)
    assert got.nmae_unprojected == pytest.approx((0.6 + 3 + 0.5) / 3 / 1.6)
    assert got.rmse_unprojected == pytest.approx(np.sqrt((0.36 + 9 + 0.25) / 3))
    assert got.as_dict()["nmae"] == got.nmae


def test_perfect_predictions_score_zero():
    got = score([1, 5, 3], [1, 5, 3], STARS)
    assert got.nmae == got.mae == got.rmse == got.nmae_se == got.rmse_unprojected == 0


@pytest.mark.parametrize(
    "scale", [STARS, RatingScale(1, 6), RatingScale(0.5, 5, 0.5), RatingScale(-10, 10, None)]
)
def test_random_guessing_scores_one(scale):
    rng = np.random.default_rng(1)
    if scale.levels is None:
        guess, truth = rng.uniform(scale.low, scale.high, (2, 40_000))
    else:
        guess, truth = rng.choice(scale.levels, (2, 40_000))
    got = score(guess, truth, scale)
    assert abs(got.nmae - 1) < 4 * got.nmae_se


def test_standard_error_is_the_spread_of_repeated_nmaes():
    rng = np.random.default_rng(2)
    runs = [score(rng.normal(3, 1, 400), rng.integers(1, 6, 400), STARS) for _ in range(300)]
    spread = np.std([run.nmae for run in runs], ddof=1)
    assert np.mean([run.nmae_se for run in runs]) == pytest.approx(spread, rel=0.15)


def test_standard_error_of_one_rating_is_not_a_number():
    assert np.isnan(score([3.2], [4], STARS).nmae_se)


def test_a_rating_of_zero_is_a_rating():
    got = score([0.2, 1.0], [0, 0], RatingScale(0, 3))
    assert got.n == 2 and got.mae == 0.5


def test_no_test_ratings_is_an_error():
    with pytest.raises(DataError, match="no test ratings"):
        score([], [], STARS)
    with pytest.raises(DataError, match="no repetitions"):
        score_pooled([], STARS)
    with pytest.raises(DataError, match="no test ratings"):
        score_pooled([([3.0], [3.0]), ([], [])], STARS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_prediction_that_is_not_finite_is_an_error_with_a_count(bad):
    with pytest.raises(NumericalError, match="2 of 3 predictions"):
        score([bad, 3, bad], [1, 2, 3], STARS)


@pytest.mark.parametrize("bad", [0, 5.5, np.nan])
def test_an_actual_outside_the_scale_is_an_error(bad):
    with pytest.raises(DataError, match="1 of 2 test ratings lie outside"):
        score([3, 3], [3, bad], STARS)


def test_one_valued_scale_has_no_nmae():
    with pytest.raises(ConfigError, match="divisor"):
        score([3.0], [3.0], RatingScale(3, 3))


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="do not fit"):
        score([3.0], [3.0, 4.0], STARS)
    with pytest.raises(ValueError, match="unseen"):
        score([3.0], [3.0], STARS, unseen=[True, False])


def test_pooled_is_the_score_of_all_and_the_average_of_equal_sizes():
    rng = np.random.default_rng(3)
    runs = [(rng.normal(3, 1, 50), rng.integers(1, 6, 50)) for _ in range(3)]
    pooled = score_pooled(runs, STARS, unseen=[np.arange(50) < 2] * 3)
    single = [score(x, y, STARS) for x, y in runs]
    assert pooled.n == 150 and pooled.n_unseen == 6
    assert pooled.nmae == pytest.approx(np.mean([run.nmae for run in single]))
    assert pooled.nmae_se == pytest.approx(np.mean([r.nmae_se for r in single]) / 3**0.5, rel=0.1)


def test_normalized_errors_average_to_the_nmae():
    x, y = [1.4, 7.0, 3.5], [2, 4, 4]
    assert normalized_errors(x, y, STARS).mean() == pytest.approx(score(x, y, STARS).nmae)


def test_paired_difference_is_the_one_sample_t_interval():
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 25))
    got = paired_difference(a, b)
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (got.low, got.high) == pytest.approx((expected.low, expected.high))
    assert got.mean == pytest.approx(a.mean() - b.mean())
    swapped = paired_difference(b, a)
    assert (swapped.low, swapped.high) == pytest.approx((-got.high, -got.low))


def test_pairing_resolves_what_separate_errors_cannot():
    rng = np.random.default_rng(5)
    common = rng.exponential(1, 500)
    a, b = common + 0.01 + rng.normal(0, 0.01, 500), common
    assert paired_difference(a, b).resolved
    assert common.std() / 500**0.5 > 0.01
    assert not paired_difference(b, b).resolved


def test_paired_difference_refuses_what_is_not_paired():
    with pytest.raises(DataError, match="one length"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(DataError, match="at least two"):
        paired_difference([1.0], [1.0])
    with pytest.raises(NumericalError, match="1 of 2"):
        paired_difference([1.0, np.nan], [1.0, 2.0])


# --- baselines ------------------------------------------------------------------


@pytest.fixture
def pair():
    train = Ratings.from_triplets([1, 1, 2, 2], [1, 2, 1, 3], [5, 4, 2, 1], STARS)
    test = Ratings.from_triplets([1, 2, 3, 3], [3, 2, 1, 4], [3, 2, 4, 5], STARS)
    return pair_split(train, test)


def test_means_by_hand_with_fallbacks_for_the_unknown(pair):
    assert simple.global_mean(pair).tolist() == [3, 3, 3, 3]
    assert simple.user_mean(pair).tolist() == [4.5, 1.5, 3, 3]
    assert simple.item_mean(pair).tolist() == [1, 4, 3.5, 3]
    # Of the unknown user the item bias is left; of the unknown cell nothing.
    assert simple.bias(pair)[3] == 3
    assert simple.bias(pair)[2] > 3


def test_strong_user_mean_is_of_the_shown_ratings():
    ratings = Ratings.from_triplets(
        np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8), np.repeat(np.arange(8) % 5 + 1, 3),
        STARS,
    )  # fmt: skip
    split = strong_split(ratings, 0, 5, 3)
    assert simple.user_mean(split).tolist() == split.test_values.tolist()


def additive(rng):
    users, items = np.divmod(np.arange(60 * 30), 30)
    keep = rng.random(1800) < 0.5
    users, items = users[keep], items[keep]
    values = 3 + rng.uniform(-1, 1, 60)[users] + rng.uniform(-0.9, 0.9, 30)[items]
    return Ratings.from_triplets(users, items, values, RatingScale(1, 5, None))


@pytest.mark.parametrize("split", [weak_split, strong_split])
def test_undamped_bias_recovers_an_additive_table(split):
    drawn = split(additive(np.random.default_rng(6)), 1)
    error = simple.bias(drawn, damping=0.0, sweeps=200) - drawn.test_values
    assert np.abs(error).max() < 1e-6


def test_bias_is_the_minimum_of_its_objective():
    ratings = additive(np.random.default_rng(7))
    damping, mean = 4.0, ratings.values.mean()
    design = np.zeros((len(ratings), ratings.n_users + ratings.n_items))
    design[np.arange(len(ratings)), ratings.rows] = 1
    design[np.arange(len(ratings)), ratings.n_users + ratings.indices] = 1
    biases = np.linalg.solve(
        design.T @ design + damping * np.eye(design.shape[1]), design.T @ (ratings.values - mean)
    )
    asked = Ratings.from_triplets([100, 101], [0, 1], [3, 3], RatingScale(1, 5, None))
    split = pair_split(ratings, asked)
    expected = mean + biases[ratings.n_users + np.array([0, 1])]
    assert simple.bias(split, damping, sweeps=300) == pytest.approx(expected, abs=1e-8)


def test_damping_pulls_towards_the_mean():
    split = weak_split(additive(np.random.default_rng(8)), 2)
    mean = simple.global_mean(split)
    spread = [np.abs(simple.bias(split, damping) - mean).mean() for damping in (0.0, 5.0, 500.0)]
    assert spread[0] > spread[1] > spread[2] > 0


def test_baselines_scores_all_four_and_counts_the_unseen(pair):
    scores = simple.baselines(pair)
    assert list(scores) == ["global mean", "user mean", "item mean", "user and item bias"]
    assert all(entry.n == 4 and entry.n_unseen == 2 for entry in scores.values())
    assert scores["global mean"].mae == pytest.approx((0 + 1 + 1 + 2) / 4)


def test_bias_beats_the_means_where_both_matter():
    scores = simple.baselines(weak_split(additive(np.random.default_rng(9)), 3))
    best = min(scores, key=lambda name: scores[name].rmse)
    assert best == "user and item bias"


def test_baselines_without_a_test_are_an_error():
    with pytest.raises(DataError, match="no test ratings"):
        simple.baselines(no_split(additive(np.random.default_rng(10))))
