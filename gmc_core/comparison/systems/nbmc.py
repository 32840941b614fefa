"""NBMC: nonparametric Bayesian matrix completion, a beta-Bernoulli factor model by Gibbs sampling.

Zhou, Wang, Chen, Paisley, Dunson and Carin, "Nonparametric Bayesian Matrix Completion" (IEEE SAM
2010). A user's ratings are a few atoms of a dictionary D (items × K) with the user's own weights:

    r_uj = μ + b_u + c_j + Σ_k d_jk z_uk s_uk + e_uj
    d_jk ~ N(0, 1/N),  z_uk ~ Bernoulli(π_k),  π_k ~ Beta(a/K, b (K - 1)/K)
    s_uk ~ N(0, 1/γ_s),  e_uj ~ N(0, 1/γ_e),  γ_s, γ_e ~ Gamma(10⁻⁶, 10⁻⁶)

A sweep draws, atom by atom and from the ratings that there are, each user's (z_uk, s_uk) and then
each item's d_jk. With the residual e₋ₖ without the atom, q = Σ_j d_jk² and t = Σ_j d_jk e₋ₖ over
the items that the user rated,

    z_uk = 1 with odds  π_k/(1 - π_k) · √(γ_s/ρ) · exp(γ_e² t² / 2ρ),   ρ = γ_s + γ_e q
    s_uk | z_uk = 1  ~  N(γ_e t/ρ, 1/ρ)

(s is integrated out when z is drawn, which is the same posterior and mixes faster), d_jk alike with
z = 1 and precision N, then π, γ_s and γ_e from their conjugate posteriors. Predictions are means
over the sweeps after the first ones.

Assumed, where the paper says nothing of it: biases b_u ~ N(0, 1/γ_b), c_j ~ N(0, 1/γ_c) with the
same priors of their precisions, a = b = 1, and μ the training mean. The z, s and b of novel users
are drawn in every sweep from their ratings under its D and c, π and precisions, which never
depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import (
    VAGUE,
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

# a and b of the Beta prior.
_BETA = (1.0, 1.0)


@dataclass(frozen=True)
class Nbmc(Sampler):
    """Gibbs sampling of a beta-Bernoulli factor model with biases.

    atoms : K, the most atoms there can be, 1 or more; the data turn off what is too many.
    sweeps : in all. burn_in : how many of them come before the first that counts.
    """

    name: str = "nbmc"
    label: str = "NBMC"
    seed: int = 0
    atoms: int = 64
    sweeps: int = 500
    burn_in: int = 100
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.atoms < 1 or not 0 <= self.burn_in < self.sweeps:
            raise ConfigError("NBMC takes at least one atom and more sweeps than burn-in.")

    @property
    def candidates(self) -> Sequence[None]:
        """Nothing is chosen: the number of atoms in use and the precisions are drawn."""
        return (None,)

    def chain(self, split: Split, setting: None) -> Chain:
        """Its atoms, weights, biases and precisions."""
        return _Chain(split, self.atoms, generator(self.seed))


class _Side:
    """What is drawn of each row, users or items: K weights and a bias."""

    def __init__(self, rows: Rows, atoms: int) -> None:
        self.rows = rows
        self.weights = np.zeros((rows.size, atoms))
        self.bias = np.zeros(rows.size)
        # Sum of the squared residuals of each row after its draw.
        self.errors = np.zeros(rows.size)


class _Chain:
    """The state of the sampler."""

    def __init__(self, split: Split, atoms: int, random: np.random.Generator) -> None:
        train, self.random = split.train, random
        self.mean = float(train.values.mean())
        self.users = _Side(by_user(train, train.values - self.mean), atoms)
        self.items = _Side(by_item(train, train.values - self.mean), atoms)
        self.known = self.users
        if split.query is not None:
            self.known = _Side(by_user(split.query, split.query.values - self.mean), atoms)
        size = train.n_items
        self.items.weights[:] = random.normal(0, size**-0.5, self.items.weights.shape)
        self.share = np.full(atoms, 0.5)
        # So that half of the atoms have the ratings' variance, and the noise half of it.
        self.weight_precision = 0.5 * atoms / size / max(float(train.values.var()), VAGUE)
        self.noise_precision = 2 / max(float(train.values.var()), VAGUE)
        self.bias_precision = self.item_precision = self.noise_precision

    def sweep(self, team: ThreadPool) -> None:
        """Draw everything once."""
        users, items, size = self.users, self.items, self.items.rows.size
        self._draw_users(users, team)
        if self.known is not users:
            self._draw_users(self.known, team)
        everything = np.full(len(self.share), np.inf)
        self._draw(items, users, float(size), everything, self.item_precision, team)
        active = users.weights != 0
        counts = active.sum(axis=0)
        most = len(counts)
        a, b = _BETA[0] / most, _BETA[1] * (most - 1) / most
        # With one atom b (K - 1)/K is 0, which is no parameter once all users have the atom.
        self.share = self.random.beta(a + counts, np.maximum(b + len(active) - counts, VAGUE))
        self.weight_precision = self._precision(int(counts.sum()), users.weights)
        errors = np.sqrt(items.errors)
        self.noise_precision = self._precision(len(users.rows.values), errors)
        self.bias_precision = self._precision(len(users.bias), users.bias)
        self.item_precision = self._precision(len(items.bias), items.bias)

    def _precision(self, count: int, values: Floats) -> float:
        return drawn_precision(count, float((values**2).sum()), self.random)

    def predictions(self, split: Split, team: ThreadPool) -> Floats:
        """(n_test,) under the present state."""
        team.check()
        known, items = self.known, self.items
        users, columns = split.test_users, split.test_items
        products = np.einsum("pk,pk->p", known.weights[users], items.weights[columns])
        return np.asarray(self.mean + known.bias[users] + items.bias[columns] + products)

    def _draw_users(self, side: _Side, team: ThreadPool) -> None:
        with np.errstate(divide="ignore"):  # a share of 0 or 1 turns an atom off or on
            odds = np.log(self.share) - np.log1p(-self.share)
        self._draw(side, self.items, self.weight_precision, odds, self.bias_precision, team)

    def _draw(
        self, side: _Side, other: _Side, precision: float, odds: Floats, bias: float,
        team: ThreadPool,
    ) -> None:  # fmt: skip
        """Weights and biases of one side, given the other's."""
        # Drawn here, so that the threads have no influence.
        uniform = self.random.random(side.weights.shape)
        normal = self.random.standard_normal((len(side.bias), side.weights.shape[1] + 1))
        longest = int(np.diff(side.rows.indptr).max(initial=0))

        def some(start: int, stop: int) -> None:
            draw_rows(
                start, stop, side.rows, other.weights, other.bias, odds, precision,
                self.noise_precision, bias, uniform, normal,
                np.empty((side.weights.shape[1], longest)), np.empty(longest),
                side.weights, side.bias, side.errors,
            )  # fmt: skip

        over_rows(side.rows, some, team)


@njit(nogil=True, cache=True)
def draw_rows(  # type: ignore[no-untyped-def]
    start, stop, rows, others, other_bias, odds, weight_precision, noise_precision,
    bias_precision, uniform, normal, block, rest, weights, bias, errors,
):  # fmt: skip
    """Draw the bias of each row start..stop, then its weights one after another.

    Parameters
    ----------
    rows : the table less its mean. others, other_bias : the other side's (columns, K), (columns,).
    odds : (K,) log π_k - log(1 - π_k), infinite where a weight is never 0.
    uniform, normal : (rows, K) and (rows, K + 1) random numbers.
    block, rest : workspace (K, longest row) and (longest row,).
    weights, bias : (rows, K) and (rows,), the present state, overwritten. errors : (rows,) sums of
        squared residuals, written.
    """
    count = others.shape[1]
    for row in range(start, stop):
        first, size = rows.indptr[row], rows.indptr[row + 1] - rows.indptr[row]
        own = weights[row]
        total = 0.0
        for t in range(size):
            column = rows.indices[first + t]
            left = rows.values[first + t] - other_bias[column]
            for k in range(count):
                block[k, t] = others[column, k]
                left -= own[k] * others[column, k]
            rest[t] = left
            total += left
        precision = bias_precision + noise_precision * size
        bias[row] = noise_precision * total / precision + normal[row, count] / np.sqrt(precision)
        for t in range(size):
            rest[t] -= bias[row]
        for k in range(count):
            atom = block[k]
            squares, product = 0.0, 0.0
            for t in range(size):
                squares += atom[t] * atom[t]
                product += atom[t] * rest[t]
            product += squares * own[k]
            precision = weight_precision + noise_precision * squares
            pull = noise_precision * product
            log_odds = odds[k] + 0.5 * (
                np.log(weight_precision / precision) + pull * pull / precision
            )
            drawn = 0.0
            if uniform[row, k] * (1.0 + np.exp(-log_odds)) < 1.0:
                drawn = pull / precision + normal[row, k] / np.sqrt(precision)
            change = own[k] - drawn
            if change != 0.0:
                for t in range(size):
                    rest[t] += change * atom[t]
            own[k] = drawn
        total = 0.0
        for t in range(size):
            total += rest[t] * rest[t]
        errors[row] = total
