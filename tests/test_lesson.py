"""The lesson: planted data, the core's numbers against closed forms, what its text says."""

from __future__ import annotations

import numpy as np
import pytest

from gmc_core import lesson
from gmc_core.base.errors import ConfigError, DataError
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.parameters import Gaussian

FEW = 0.15  # share of users that rated both movies, as on the page


def entries(planted):
    """Where a user rated the first movie only, the second only, and both."""
    first, second = planted.known.T
    return first & ~second, second & ~first, first & second


# Two movies in closed form -------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize(("rated", "rating"), [(0, 4.5), (1, 1.3)])
def test_the_fill_and_its_variance_are_the_conditional_gaussian(rated, rating, noise):
    mean, covariance = np.array([3.2, 2.9]), np.array([[1.4, 0.7], [0.7, 0.9]])
    gaussian = Gaussian(mean, DenseCovariance(covariance))
    belief = lesson.model_of(gaussian, lesson.PAIR, noise).posterior([rated], [rating])
    other = 1 - rated
    slope = covariance[other, rated] / (covariance[rated, rated] + noise)
    assert belief.mean[other] == pytest.approx(mean[other] + slope * (rating - mean[rated]))
    assert belief.variance[other] == pytest.approx(covariance[other, other] - slope * 0.7)


def test_the_fill_is_the_most_probable_value_on_the_line():
    truth = lesson.pair_gaussian(0.8)
    fill = lesson.model_of(truth, lesson.PAIR).posterior([0], [4.5]).mean[1]
    at = np.linspace(fill - 2, fill + 2, 401)
    off = np.column_stack([np.full_like(at, 4.5), at]) - truth.mean
    distance = np.einsum("ij,jk,ik->i", off, np.linalg.inv(lesson.matrix(truth)), off)
    assert at[distance.argmin()] == pytest.approx(fill)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_papers_steps_are_those_of_the_formulas(epsilon):
    planted = lesson.two_movies(60, FEW, 0.8)
    start, m_step, e_step = lesson.tell(planted, "paper", epsilon, 1).frames
    table = np.where(planted.known, planted.ratings, 3.0)
    np.testing.assert_allclose(start.estimates, table)
    np.testing.assert_allclose(m_step.estimates, table)
    mean, covariance = table.mean(axis=0), np.cov(table.T, bias=True) + epsilon * np.eye(2)
    np.testing.assert_allclose(m_step.gaussian.mean, mean)
    np.testing.assert_allclose(lesson.matrix(m_step.gaussian), covariance)
    for rated, alone in enumerate(entries(planted)[:2]):
        other = 1 - rated
        slope = covariance[0, 1] / covariance[rated, rated]
        filled = mean[other] + slope * (table[alone, rated] - mean[rated])
        np.testing.assert_allclose(e_step.estimates[alone, other], filled)
    np.testing.assert_allclose(e_step.estimates[planted.known], planted.ratings[planted.known])


def test_exact_em_adds_the_conditional_variance_of_each_gap():
    planted = lesson.two_movies(60, FEW, 0.8)
    frames = lesson.tell(planted, "exact", 0.0, 2).frames
    before, after = lesson.matrix(frames[2].gaussian), lesson.matrix(frames[3].gaussian)
    expected = np.cov(frames[2].estimates.T, bias=True)
    for rated, alone in enumerate(entries(planted)[:2]):
        other = 1 - rated
        left = before[other, other] - before[0, 1] ** 2 / before[rated, rated]
        expected[other, other] += alone.mean() * left
    np.testing.assert_allclose(after, expected)


def test_when_all_is_rated_both_methods_are_the_sample_covariance():
    planted = lesson.two_movies(60, 1.0, 0.8)
    assert np.isnan(planted.error(planted.complete))
    for method in ("paper", "exact"):
        last = lesson.tell(planted, method, 0.0, 3).last
        np.testing.assert_allclose(
            lesson.matrix(last.gaussian), np.cov(planted.ratings.T, bias=True), rtol=1e-10
        )


# What the text says ----------------------------------------------------------------------


def smallest(planted, method, epsilon, iterations=10):
    told = lesson.tell(planted, method, epsilon, iterations)
    return [float(lesson.eigenvalues(g)[0]) for g in told.gaussians]


def test_without_epsilon_the_ellipse_thins_and_epsilon_is_a_floor():
    planted = lesson.two_movies(80, FEW, 0.8)
    thin = smallest(planted, "paper", 0.0)
    assert all(after < before for before, after in zip(thin, thin[1:], strict=False))
    assert thin[-1] < 0.1 * lesson.eigenvalues(planted.truth)[0]
    for epsilon in (0.03, 0.3):
        assert min(smallest(planted, "paper", epsilon)) >= epsilon


def test_exact_em_stays_near_the_planted_thickness():
    planted = lesson.two_movies(80, FEW, 0.8)
    truth = lesson.eigenvalues(planted.truth)[0]
    own, papers = smallest(planted, "exact", 0.0)[-1], smallest(planted, "paper", 0.0)[-1]
    assert abs(own - truth) < 0.3 * abs(papers - truth)


def test_noise_draws_rated_entries_to_the_mean_and_shrinks_the_papers_covariance():
    planted = lesson.two_movies(80, 1.0, 0.8, 0.3)
    paper, exact = (lesson.tell(planted, method, 0.0, 10).last for method in ("paper", "exact"))
    from_mean = np.abs(paper.estimates - paper.gaussian.mean).sum()
    assert from_mean < np.abs(planted.ratings - paper.gaussian.mean).sum()
    trace = [np.trace(lesson.matrix(frame.gaussian)) for frame in (paper, exact)]
    assert trace[0] < trace[1]


def test_with_few_users_the_algorithm_breaks_without_epsilon_and_says_so():
    planted = lesson.twenty_movies(10, 0.3)
    broken = lesson.tell(planted, "paper", 0.0)
    assert "not positive definite in float64. Raise ε or add noise." in broken.problem
    assert len(broken.frames) < 21
    told = lesson.tell(planted, "paper", 0.3)
    assert told.problem == ""
    assert len(told.frames) == 21
    (point,) = lesson.error_by_fill(10, [0.3], 0.0)
    assert np.isnan(point.learned)


def test_of_twenty_movies_epsilon_helps_and_too_much_hurts():
    planted = lesson.twenty_movies(200, 0.3)
    error = {
        epsilon: planted.error(lesson.tell(planted, "paper", epsilon).last.estimates)
        for epsilon in (0.0, 0.1, 2.0)
    }
    best = planted.error(lesson.fills(planted, planted.truth))
    assert best < error[0.1] < min(error[0.0], error[2.0])
    assert error[2.0] < planted.error(lesson.item_means(planted))


def test_more_ratings_help_twice():
    points = lesson.error_by_fill(150, (0.1, 0.3, 0.7), 0.1)
    best = [point.best for point in points]
    gap = [point.learned - point.best for point in points]
    assert best == sorted(best, reverse=True)
    assert gap == sorted(gap, reverse=True)
    assert points[-1].learned < points[-1].means


# Planted data ------------------------------------------------------------------------------


def test_the_twenty_titles_are_distinct_and_their_tastes_show():
    assert len(set(lesson.taste_names())) == 20
    assert set(lesson.MIXED) <= set(lesson.taste_names())
    truth = lesson.taste_gaussian()
    assert lesson.eigenvalues(truth)[0] > 0
    inside, between = lesson.taste_contrast(truth)
    assert inside > 3 * between
    assert lesson.relative_error(truth, truth) == 0


def test_fewer_entries_are_a_part_of_more_and_the_users_stay():
    few, many = lesson.twenty_movies(50, 0.1), lesson.twenty_movies(50, 0.4)
    assert not (few.known & ~many.known).any()
    np.testing.assert_array_equal(few.complete, many.complete)
    few, many = lesson.two_movies(50, 0.1, 0.5), lesson.two_movies(50, 0.6, 0.5)
    assert not (few.known & ~many.known).any()
    np.testing.assert_array_equal(few.complete, many.complete)
    assert few.known.any(axis=1).all()
    assert few.known.all(axis=1).mean() == pytest.approx(0.1)


def test_users_are_moved_taken_away_and_added():
    planted = lesson.two_movies(6, 0.5, 0.8)  # 0 to 2 rated both, 3 to 5 one movie
    only = int(planted.known[3].argmax())
    other = 1 - only
    given = [9.0, 9.0]
    changes = {1: None, 2: (4.5, np.nan), 3: given, 7: (2.0, 2.5)}
    changed, users = lesson.changed(planted, changes)
    assert users == (0, 2, 3, 4, 5, 7)
    assert changed.known.shape == changed.ratings.shape == changed.complete.shape == (6, 2)
    np.testing.assert_array_equal(changed.ratings[1], [4.5, planted.ratings[2, 1]])
    assert changed.ratings[2, only] == 9.0
    assert changed.complete[2, other] == planted.complete[3, other], "nobody sees it, nor moves it"
    np.testing.assert_array_equal(changed.ratings[-1], [2.0, 2.5])
    assert changed.known[-1].all()
    np.testing.assert_array_equal(changed.ratings[3:5], planted.ratings[4:])
    np.testing.assert_array_equal(planted.ratings, lesson.two_movies(6, 0.5, 0.8).ratings)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({-1: None}, "no user -1"),
        ({9: None}, "no user 9"),
        ({6: (1.0, np.nan)}, "needs a rating of every movie"),
        ({user: None for user in range(6)}, "at least one has to stay"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        lesson.changed(lesson.two_movies(6, 0.5, 0.8), changes)


def test_points_are_carried_with_their_gaussian_and_back():
    planted = lesson.two_movies(50, 1.0, 0.0)
    source = lesson.gaussian_of(planted.complete)
    np.testing.assert_allclose(lesson.matrix(source), np.cov(planted.complete.T, bias=True))
    target = lesson.pair_gaussian(-0.4, (0.7, 1.3), (2.0, 4.0))
    points = lesson.carried(planted.complete, source, target)
    found = lesson.gaussian_of(points)
    np.testing.assert_allclose(found.mean, target.mean)
    np.testing.assert_allclose(lesson.matrix(found), lesson.matrix(target), atol=1e-12)
    np.testing.assert_allclose(lesson.carried(points, target, source), planted.complete)


def test_the_cloud_is_the_same_by_whichever_triangle_it_was_carried():
    # Two ways, drawn → seen and drawn, changed → seen, changed: the page relies on it.
    points = lesson.two_movies(30, 1.0, 0.0).complete
    source, target = lesson.gaussian_of(points), lesson.pair_gaussian(0.6, (0.5, 1.2))
    seen = lesson.carried(points, source, target)
    moved = seen.copy()
    moved[4] = [5.0, 1.0]
    drawn = lesson.carried(moved, target, source)
    again = lesson.carried(drawn, lesson.gaussian_of(drawn), lesson.gaussian_of(moved))
    np.testing.assert_allclose(again, moved)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="between 0 and 1"):
        lesson.two_movies(10, 1.5, 0.5)
    with pytest.raises(ConfigError, match="fill ratio"):
        lesson.twenty_movies(10, -0.1)
    with pytest.raises(ConfigError, match="correlation"):
        lesson.pair_gaussian(1.0)
    with pytest.raises(ConfigError, match="positive"):
        lesson.pair_gaussian(0.5, (1.0, 0.0))
    with pytest.raises(ConfigError, match="no work"):
        lesson.work_shares(np.zeros(3, int))
    with pytest.raises(DataError, match="scale"):
        lesson.model_of(lesson.pair_gaussian(0.5), lesson.PAIR).posterior([0], [7.0])


# Cost ----------------------------------------------------------------------------------------


def test_the_heaviest_come_first_in_the_shares_of_work():
    users, work = lesson.work_shares(np.array([1, 3, 2]))
    np.testing.assert_allclose(users, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(work, [0, 27 / 36, 35 / 36, 1])


@pytest.mark.parametrize("count", [2, 7, 20])
def test_the_triangle_times_its_mirror_image_is_the_kernel(count):
    kernel, factor = lesson.cholesky_of(lesson.taste_gaussian(), count)
    assert kernel.shape == (count, count)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(factor @ factor.T, kernel, atol=1e-12)
