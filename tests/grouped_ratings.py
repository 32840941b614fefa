"""Ratings of users whose attributes say what they like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from making import ratings_of

from gmc_core.data.ratings import Ratings

USERS, ITEMS = 300, 40


def ratings_with_groups(seed: int = 0) -> Ratings:
    """Two groups like the two halves of the catalogue; ages and names say nothing."""
    rng = np.random.default_rng(seed)
    group = rng.random(USERS) < 0.4
    liking = np.where(group[:, None] == (np.arange(ITEMS) < ITEMS // 2)[None], 0.8, -0.8)
    tastes = rng.normal(size=(USERS, 2)) @ rng.normal(size=(2, ITEMS)) * 0.4
    values = np.clip(np.round(3 + liking + tastes + rng.normal(size=liking.shape) * 0.7), 1, 5)
    known = rng.random(values.shape) < 0.15
    known[:, :2] = True  # nobody knows nothing
    return replace(
        ratings_of(values, known),
        user_info={
            "likes": np.where(group, "first", "second").astype(object),
            "age": rng.integers(15, 80, USERS).astype(float),
            "name": np.array([f"n{u}" for u in range(USERS)], dtype=object),
        },
    )


RATINGS = ratings_with_groups()
