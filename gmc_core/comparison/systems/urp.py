"""URP: the user rating profile model, by variational EM.

Marlin, "Modeling User Rating Profiles for Collaborative Filtering" (NIPS 2003). Each rating
comes from an attitude of its own:

    θ_u ~ Dirichlet(α),   z_uj ~ θ_u,   r_uj = v with probability β_jvk for z_uj = k

The posterior of θ_u and the z_uj is approximated by Dirichlet(γ_u) times a distribution φ_uj of
each rating. With e_uk = exp(ψ(γ_uk) - ψ(Σγ_u)) the steps are

    E:  φ_ujk ∝ e_uk β_j,r,k,   γ_uk = α_k + Σ_j φ_ujk     (in turn, until γ stands still)
    M:  β_jvk ∝ λ f_jv + Σ_u [r_uj = v] φ_ujk,   α by Minka's fixed point

and none lowers the bound Σ_u { Σ_j log Σ_k e_uk β_j,r,k - KL(Dirichlet(γ_u) ‖ Dirichlet(α)) } plus
the log-density of β. The prediction is the median of Σ_k (γ_uk/Σγ_u) β_jvk over v.

Assumed: the prior of β_j·k, a Dirichlet with the weight of λ ratings around the item's own
frequencies f_jv, without which levels that nobody of an attitude has given have probability 0.
A novel user is an E-step with α and β as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from scipy.special import digamma, polygamma

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import (
    Floats,
    Rows,
    System,
    by_item,
    by_user,
    codes,
    frequencies,
    generator,
    levels_of,
    medians,
    over_rows,
)
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

# Iterations with α = 1: learned from the start, it would leave every user in the one attitude that
# the random start happened to favour.
_FIRST = 10
_ROUNDS = 10
_FOLDING_ROUNDS = 200
_STANDS_STILL = 1e-4


@dataclass(frozen=True)
class Urp(System):
    """User rating profiles.

    settings : (K, λ) to choose from: attitudes, 1 or more, and ratings above 0.
    iterations : of EM, 1 or more.
    """

    name: str = "urp"
    label: str = "URP"
    seed: int = 0
    settings: tuple[tuple[int, float], ...] = ((5, 5.0), (10, 5.0), (10, 20.0), (20, 20.0))
    iterations: int = 40
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        valid = [count >= 1 and smoothing > 0 for count, smoothing in self.settings]
        if not valid or not all(valid) or self.iterations < 1:
            raise ConfigError("URP takes at least one attitude, smoothing above 0 and iterations.")

    @property
    def candidates(self) -> Sequence[tuple[int, float]]:
        """Each (K, λ)."""
        return self.settings

    def attempt(self, split: Split, setting: tuple[int, float], team: ThreadPool) -> Floats:
        """(n_test,) medians."""
        levels = levels_of(split.train.scale, self.label)
        model = Profiles(split.train, *setting, self.seed)
        for _ in range(self.iterations):
            model.iterate(team)
        beliefs = model.beliefs
        if split.query is not None:
            beliefs = model.fold_in(split.query, team)
        shares = beliefs / beliefs.sum(axis=1, keepdims=True)
        users, items = split.test_users, split.test_items
        return medians(np.einsum("pk,pvk->pv", shares[users], model.patterns[items]), levels)


class Profiles:
    """α, β and the γ of the training users.

    patterns : β (N, V, K). concentration : α (K,). beliefs : γ (M, K).
    """

    def __init__(self, train: Ratings, attitudes: int, smoothing: float, seed: int) -> None:
        level = codes(train)
        self._users, self._items = by_user(train, level), by_item(train, level)
        self._prior = smoothing * frequencies(train)
        self.concentration = np.ones(attitudes)
        # Random shares of the attitudes, so that they are not all alike.
        random = generator(seed)
        self.beliefs = random.dirichlet(np.ones(attitudes), train.n_users)
        self.beliefs *= 1.0 + train.user_counts[:, None]
        self._shares = self.beliefs / self.beliefs.sum(axis=1, keepdims=True)
        self.patterns = np.repeat(self._prior[:, :, None] / smoothing, attitudes, axis=2)
        self._learn_patterns(None)
        self._done = 0

    def iterate(self, team: ThreadPool) -> float:
        """An E-step and an M-step; the bound between the two."""
        self._shares, bounds = self._believe(self._users, self.beliefs, _ROUNDS, team)
        bound = float(bounds.sum() + self._log_prior())
        self._learn_patterns(team)
        self._done += 1
        if self._done > _FIRST:
            self._learn_concentration()
        return bound

    def fold_in(self, query: Ratings, team: ThreadPool) -> Floats:
        """(users, K) γ of other users, under α and β as they are."""
        beliefs = self.concentration + query.user_counts[:, None] / len(self.concentration)
        self._believe(by_user(query, codes(query)), beliefs, _FOLDING_ROUNDS, team)
        return np.asarray(beliefs)

    def _believe(
        self, rows: Rows, beliefs: Floats, rounds: int, team: ThreadPool
    ) -> tuple[Floats, Floats]:
        """Bring γ forward in place; e (users, K), and each user's part of the bound."""
        shares, bounds = np.empty_like(beliefs), np.empty(rows.size)

        def some(start: int, stop: int) -> None:
            believe_rows(
                start, stop, rows, self.patterns, self.concentration, rounds, beliefs, shares,
                bounds,
            )  # fmt: skip

        over_rows(rows, some, team)
        return shares, bounds

    def _learn_patterns(self, team: ThreadPool | None) -> None:
        """β from φ."""
        new = np.empty_like(self.patterns)

        def some(start: int, stop: int) -> None:
            learn_rows(start, stop, self._items, self._shares, self._prior, self.patterns, new)

        over_rows(self._items, some, team or ThreadPool(1))
        self.patterns = new

    def _learn_concentration(self) -> None:
        """α by Minka's fixed point, a few rounds of it, each of which raises the bound."""
        logs = np.log(self._shares).mean(axis=0)
        for _ in range(5):
            goal = digamma(self.concentration.sum()) + logs
            self.concentration = np.maximum(_inverse_digamma(goal), 0.01)

    def _log_prior(self) -> float:
        """Log-density of β, less what does not depend on it."""
        return float((self._prior[:, :, None] * np.log(self.patterns)).sum())


def _inverse_digamma(values: Floats) -> Floats:
    """x > 0 with ψ(x) = value, by Newton from Minka's start."""
    small = -1 / (np.minimum(values, -2.22) - digamma(1.0))
    x = np.where(values >= -2.22, np.exp(values) + 0.5, small)
    for _ in range(5):
        x = np.maximum(x - (digamma(x) - values) / polygamma(1, x), 1e-12)
    return np.asarray(x)


@njit(nogil=True, cache=True)
def _digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x), x > 0: upwards to where the asymptotic series holds 1e-12."""
    found = 0.0
    while x < 10.0:
        found -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return found + np.log(x) - 0.5 / x - series


@njit(nogil=True, cache=True)
def believe_rows(start, stop, rows, patterns, concentration, rounds, beliefs, shares, bounds):  # type: ignore[no-untyped-def]
    """γ, e and the bound of the users start..stop.

    rows : levels by user. patterns : β (N, V, K). rounds : how often φ and γ are found at most.
    beliefs : γ (users, K), the start, overwritten. shares : e (users, K), written.
    bounds : (users,), written.
    """
    count = len(concentration)
    sums = np.empty(count)
    for user in range(start, stop):
        gamma, e = beliefs[user], shares[user]
        for turn in range(rounds + 1):
            total = gamma.sum()
            base = _digamma(total)
            bound = -math.lgamma(total)
            for k in range(count):
                log_share = _digamma(gamma[k]) - base
                e[k] = np.exp(log_share)
                bound += math.lgamma(gamma[k]) - (gamma[k] - concentration[k]) * log_share
                sums[k] = concentration[k]
            for t in range(rows.indptr[user], rows.indptr[user + 1]):
                pattern = patterns[rows.indices[t], int(rows.values[t])]
                norm = 0.0
                for k in range(count):
                    norm += e[k] * pattern[k]
                bound += np.log(norm)
                for k in range(count):
                    sums[k] += e[k] * pattern[k] / norm
            if turn == rounds:
                break
            if np.abs(sums - gamma).max() < _STANDS_STILL:
                break
            gamma[:] = sums
        bound += math.lgamma(concentration.sum())
        for k in range(count):
            bound -= math.lgamma(concentration[k])
        bounds[user] = bound


@njit(nogil=True, cache=True)
def learn_rows(start, stop, rows, shares, prior, patterns, new):  # type: ignore[no-untyped-def]
    """β of the items start..stop into ``new`` (N, V, K), from e (users, K) and the present β.

    rows : levels by item. prior : λ f (N, V).
    """
    count = shares.shape[1]
    part = np.empty(count)
    for item in range(start, stop):
        for level in range(prior.shape[1]):
            new[item, level, :] = prior[item, level]
        for t in range(rows.indptr[item], rows.indptr[item + 1]):
            e, level = shares[rows.indices[t]], int(rows.values[t])
            norm = 0.0
            for k in range(count):
                part[k] = e[k] * patterns[item, level, k]
                norm += part[k]
            for k in range(count):
                new[item, level, k] += part[k] / norm
        for k in range(count):
            norm = 0.0
            for level in range(prior.shape[1]):
                norm += new[item, level, k]
            for level in range(prior.shape[1]):
                new[item, level, k] /= norm
