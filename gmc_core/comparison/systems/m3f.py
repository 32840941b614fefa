"""M³F: mixed membership matrix factorization with topic-indexed biases, by Gibbs sampling.

Mackey, Weiss and Jordan, "Mixed Membership Matrix Factorization" (ICML 2010), the model M³F-TIB. In
each rating a user acts in one of Kᵁ topics and an item in one of Kᴹ, and each has a bias for every
topic of the other:

    r_uj ~ N(χ + a_u·b_j + c_u[zᴹ] + d_j[zᵁ], 1/τ),   zᵁ ~ θᵁ_u,  zᴹ ~ θᴹ_j for every rating anew
    θᵁ_u ~ Dirichlet(α/Kᵁ), θᴹ_j alike,   a_u ~ N(ν, Λ⁻¹), b_j alike
    Λ ~ Wishart(Id, D),   ν | Λ ~ N(0, Λ⁻¹),   c ~ N(0, 1/τ_c),  d ~ N(0, 1/τ_d)

A sweep draws for the users, and then for the items, the pair of topics of each of their ratings

    P(zᵁ = i, zᴹ = l) ∝ θᵁ_ui θᴹ_jl exp(-τ/2 (r - χ - a_u·b_j - c_ul - d_ji)²)

and given these their θ, their biases and their factors, each from its conjugate posterior; then
(ν, Λ) of either side and the precisions. The prediction is the mean, over the sweeps after the
first ones, of χ + a_u·b_j + Σ_l θᴹ_jl c_ul + Σ_i θᵁ_ui d_ji. Topics are drawn anew for each side,
and never kept: they depend on nothing but the rest.

Assumed: α = K; τ, τ_c and τ_d ~ Gamma(10⁻⁶, 10⁻⁶), where the published program has them fixed;
χ is the training mean. Novel users are drawn in every sweep from their ratings under the items'
side, which never depends on them. Their program stops early by the test error; this one does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from scipy.special import gammaincinv

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import (
    Chain,
    Floats,
    Rows,
    Sampler,
    by_item,
    by_user,
    drawn_precision,
    generator,
    over_rows,
)
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

_START_DEVIATION = 0.1


@dataclass(frozen=True)
class MixedMembership(Sampler):
    """Gibbs sampling of M³F-TIB.

    settings : (D, Kᵁ, Kᴹ) to choose from: factors, topics of users and of items, each 1 or more.
    sweeps : in all. burn_in : how many of them come before the first that counts.
    """

    name: str = "m3f"
    label: str = "M³F"
    seed: int = 0
    settings: tuple[tuple[int, int, int], ...] = ((20, 2, 1),)
    sweeps: int = 200
    burn_in: int = 50
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.settings or min(min(one) for one in self.settings) < 1:
            raise ConfigError("M³F takes at least one factor and one topic of either side.")
        if not 0 <= self.burn_in < self.sweeps:
            raise ConfigError("M³F takes more sweeps than burn-in.")

    @property
    def candidates(self) -> Sequence[tuple[int, int, int]]:
        """Each (D, Kᵁ, Kᴹ)."""
        return self.settings

    def chain(self, split: Split, setting: tuple[int, int, int]) -> Chain:
        """Its factors, topics, biases and precisions."""
        return _Chain(split, *setting, generator(self.seed))


class _Side:
    """Users or items: factors, biases for the other side's topics, and shares of their own."""

    def __init__(
        self, rows: Rows, factors: int, topics: int, others: int, random: np.random.Generator
    ) -> None:
        self.rows = rows
        self.factors = random.normal(0, _START_DEVIATION, (rows.size, factors))
        self.bias = random.normal(0, _START_DEVIATION, (rows.size, others))
        self.shares = np.full((rows.size, topics), 1 / topics)
        self.counts = np.zeros((rows.size, topics))
        # Sum of the squared residuals of each row after its draw.
        self.errors = np.zeros(rows.size)


@dataclass
class _Beliefs:
    """What the rows of a side have in common: N(ν, Λ⁻¹) of factors, precision of biases."""

    mean: Floats
    precision: Floats
    bias_precision: float = 1.0

    @classmethod
    def first(cls, factors: int) -> _Beliefs:
        """Before anything is drawn."""
        return cls(np.zeros(factors), np.eye(factors))

    def draw(self, side: _Side, random: np.random.Generator) -> None:
        """(ν, Λ) and the precision of the biases, given the side."""
        from scipy.stats import wishart  # takes long to import, see gmc_core.base.quantiles

        factors = side.factors
        count, size = factors.shape
        mean = factors.mean(axis=0)
        apart = factors - mean
        # Normal-Wishart with Id, D degrees of freedom and the weight of one row at 0.
        scatter = np.eye(size) + apart.T @ apart + count / (count + 1) * np.outer(mean, mean)
        scale = np.linalg.inv(scatter)
        drawn = wishart.rvs(size + count, (scale + scale.T) / 2, random_state=random)
        self.precision = np.asarray(drawn, dtype=np.float64).reshape(size, size)
        root = np.linalg.cholesky(self.precision * (count + 1))
        noise = np.linalg.solve(root.T, random.standard_normal(size))
        self.mean = count * mean / (count + 1) + noise
        squares = float((side.bias**2).sum())
        self.bias_precision = drawn_precision(side.bias.size, squares, random)


class _Chain:
    """The state of the sampler."""

    def __init__(
        self, split: Split, factors: int, user_topics: int, item_topics: int,
        random: np.random.Generator,
    ) -> None:  # fmt: skip
        train, self.random = split.train, random
        self.mean = float(train.values.mean())
        centred = train.values - self.mean
        self.users = _Side(by_user(train, centred), factors, user_topics, item_topics, random)
        self.items = _Side(by_item(train, centred), factors, item_topics, user_topics, random)
        self.known = self.users
        if split.query is not None:
            rows = by_user(split.query, split.query.values - self.mean)
            self.known = _Side(rows, factors, user_topics, item_topics, random)
        self.of_users, self.of_items = _Beliefs.first(factors), _Beliefs.first(factors)
        self.noise_precision = 2 / max(float(train.values.var()), 1e-6)

    def sweep(self, team: ThreadPool) -> None:
        """Draw everything once."""
        users, items = self.users, self.items
        self._draw(users, items, self.of_users, team)
        if self.known is not users:
            self._draw(self.known, items, self.of_users, team)
        self._draw(items, users, self.of_items, team)
        self.of_users.draw(users, self.random)
        self.of_items.draw(items, self.random)
        count, squares = len(users.rows.values), float(items.errors.sum())
        self.noise_precision = drawn_precision(count, squares, self.random)

    def predictions(self, split: Split, team: ThreadPool) -> Floats:
        """(n_test,) under the present state."""
        team.check()
        known, items = self.known, self.items
        users, columns = split.test_users, split.test_items
        return np.asarray(
            self.mean
            + np.einsum("pf,pf->p", known.factors[users], items.factors[columns])
            + np.einsum("pl,pl->p", known.bias[users], items.shares[columns])
            + np.einsum("pi,pi->p", known.shares[users], items.bias[columns])
        )

    def _draw(self, side: _Side, other: _Side, beliefs: _Beliefs, team: ThreadPool) -> None:
        """Topics, shares, biases and factors of one side, given the other's."""
        # Drawn here, so that the threads have no influence.
        uniform = self.random.random(len(side.rows.values))
        count, factors = side.factors.shape
        normal = self.random.standard_normal((count, factors + side.bias.shape[1]))
        longest = int(np.diff(side.rows.indptr).max(initial=0))

        def some(start: int, stop: int) -> None:
            draw_rows(
                start, stop, side.rows, other.factors, other.bias, other.shares,
                beliefs.mean, beliefs.precision, beliefs.bias_precision, self.noise_precision,
                uniform, normal, np.empty(longest), np.empty((longest, 2), np.int64),
                side.factors, side.bias, side.shares, side.counts, side.errors,
            )  # fmt: skip

        over_rows(side.rows, some, team)
        # Dirichlet(α/K + counts) with α = K; by the inverse distribution function, so that every
        # row takes as many random numbers whatever its ratings, and none moves another's.
        drawn = gammaincinv(1.0 + side.counts, self.random.random(side.counts.shape))
        side.shares = drawn / drawn.sum(axis=1, keepdims=True)


@njit(nogil=True, cache=True)
def draw_rows(  # type: ignore[no-untyped-def]
    start, stop, rows, others, other_bias, other_shares, mean, precision, bias_precision,
    noise_precision, uniform, normal, rest, topics, factors, bias, shares, counts, errors,
):  # fmt: skip
    """Draw topics, biases and factors of the rows start..stop.

    Parameters
    ----------
    rows : the table less its mean. others, other_bias, other_shares : (columns, D), (columns, K)
        and (columns, L) of the other side, which has L topics where this one has K.
    mean, precision : of the factors, ν and Λ. uniform : (nnz,). normal : (rows, D + L).
    rest, topics : workspace of the longest row, (n,) and (n, 2).
    factors, bias : (rows, D) and (rows, L), overwritten. shares : (rows, K).
    counts : (rows, K) how many ratings each topic has, written. errors : (rows,) sums of squared
        residuals, written.
    """
    size, own_topics, other_topics = factors.shape[1], shares.shape[1], bias.shape[1]
    odds = np.empty(own_topics * other_topics)
    sums, numbers = np.empty(other_topics), np.empty(other_topics)
    matrix, right = np.empty((size, size)), np.empty(size)
    for row in range(start, stop):
        first, count = rows.indptr[row], rows.indptr[row + 1] - rows.indptr[row]
        own, biases = factors[row], bias[row]
        counts[row] = 0.0
        sums[:] = 0.0
        numbers[:] = 0.0
        for t in range(count):
            column = rows.indices[first + t]
            left = rows.values[first + t]
            for f in range(size):
                left -= own[f] * others[column, f]
            rest[t] = left
            nearest = np.inf
            for i in range(own_topics):
                for at in range(other_topics):
                    error = left - biases[at] - other_bias[column, i]
                    odds[i * other_topics + at] = error * error
                    nearest = min(nearest, error * error)
            total = 0.0
            for i in range(own_topics):
                for at in range(other_topics):
                    place = i * other_topics + at
                    total += (
                        shares[row, i] * other_shares[column, at]
                        * np.exp(0.5 * noise_precision * (nearest - odds[place]))
                    )  # fmt: skip
                    odds[place] = total
            chosen = 0
            while chosen < len(odds) - 1 and odds[chosen] < uniform[first + t] * total:
                chosen += 1
            i, at = chosen // other_topics, chosen % other_topics
            topics[t, 0], topics[t, 1] = i, at
            counts[row, i] += 1.0
            sums[at] += left - other_bias[column, i]
            numbers[at] += 1.0
        for at in range(other_topics):
            strength = bias_precision + noise_precision * numbers[at]
            biases[at] = noise_precision * sums[at] / strength
            biases[at] += normal[row, size + at] / np.sqrt(strength)
        for f in range(size):
            right[f] = 0.0
            for g in range(size):
                matrix[f, g] = precision[f, g]
                right[f] += precision[f, g] * mean[g]
        for t in range(count):
            column = rows.indices[first + t]
            line = others[column]
            for f in range(size):
                rest[t] += own[f] * line[f]
            rest[t] -= biases[topics[t, 1]] + other_bias[column, topics[t, 0]]
            for f in range(size):
                scaled = noise_precision * line[f]
                right[f] += scaled * rest[t]
                for g in range(f + 1):
                    matrix[f, g] += scaled * line[g]
        _normal(matrix, right, normal[row], own)
        total = 0.0
        for t in range(count):
            error = rest[t]
            line = others[rows.indices[first + t]]
            for f in range(size):
                error -= own[f] * line[f]
            total += error * error
        errors[row] = total


@njit(nogil=True, cache=True)
def _normal(matrix, right, normal, out):  # type: ignore[no-untyped-def]
    """out ~ N(A⁻¹ right, A⁻¹) for the lower triangle of A, which is overwritten with its factor."""
    size = len(right)
    for f in range(size):
        for g in range(f + 1):
            total = matrix[f, g]
            for h in range(g):
                total -= matrix[f, h] * matrix[g, h]
            matrix[f, g] = np.sqrt(total) if f == g else total / matrix[g, g]
        total = right[f]
        for h in range(f):
            total -= matrix[f, h] * right[h]
        right[f] = total / matrix[f, f]
    # Both the mean and the noise need one backward solve: Lᵀ x = L⁻¹ right + normal.
    for f in range(size - 1, -1, -1):
        total = right[f] + normal[f]
        for h in range(f + 1, size):
            total -= matrix[h, f] * out[h]
        out[f] = total / matrix[f, f]
