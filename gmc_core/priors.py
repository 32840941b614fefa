"""The prior of Σ that the settings describe, and how ratings become its signals."""

from __future__ import annotations

import numpy as np

from gmc_core.exact import Prior
from gmc_core.noise import Noise
from gmc_core.ratings import Ratings
from gmc_core.settings import FitSettings
from gmc_core.signals import Layout


def prior_of(settings: FitSettings, ratings: Ratings, layout: Layout) -> Prior | None:
    """T = offset · 11ᵀ + genres · G Gᵀ + own · Id with the weight of ν signals.

    ``settings.prior_target`` holds the three variances. G (N × genres) gives an item
    of g genres 1/√g in each, so that its variance is the same for every g; signals
    that are no rows have no genres. None where ν = 0.
    """
    if not settings.prior_strength:
        return None
    assert settings.prior_target is not None
    offset, genres, own = settings.prior_target
    parts = [np.full((layout.dimension, 1), np.sqrt(offset))]
    if genres > 0 and layout.kind == "rows":
        parts.append(np.sqrt(genres) * genre_matrix(ratings))
    diagonal = np.full(layout.dimension, own)
    return Prior(settings.prior_strength, np.hstack(parts), diagonal)


def opinion_variance(noise: Noise, settings: FitSettings) -> float:
    """Of an opinion around its prediction, nearly: its noise, and what an item has of its own."""
    assert settings.prior_target is not None
    return float(noise.array[0, 0]) + settings.prior_target[2]


def genre_matrix(ratings: Ratings) -> np.ndarray:
    """(N items, genres) with 1/√g for each of an item's g genres."""
    names = sorted({genre for genres in ratings.item_info.genres for genre in genres})
    place = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((ratings.n_items, len(names)))
    for item, genres in enumerate(ratings.item_info.genres):
        for genre in genres:
            matrix[item, place[genre]] = 1 / np.sqrt(len(genres))
    return matrix
