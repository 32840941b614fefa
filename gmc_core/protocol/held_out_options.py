"""What the protocols random and latest hold out where nothing is said; without NumPy, for help
texts."""

from __future__ import annotations

PUBLISHED = "published"  # in place of a number of folds: those that came with the data
PUBLISHED_FOLDS = 5  # that MovieLens 100K has, the only data with folds of their own
USUAL_SHARE = 0.1  # random: of all ratings, as for MovieLens 1M and 10M in the literature's tables
USUAL_LAST = 1  # latest: of each user's ratings
