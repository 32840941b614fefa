"""Fit one package and predict; runs in that package's own environment, as a script.

    external/bin/python external_process.py surprise-svd split.npz out.npz
    external/bin/python external_process.py --list

Imports nothing of this project. ``split.npz`` holds users, items and values of the known
ratings and users and items of the held-out ones, as positions, the rating scale, and which
groups the users are of by their attributes.
Every package runs with its recommended or tuned settings; predictions are raw.
"""

# mypy: ignore-errors
# (the packages' types are in their own environments)

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

SEED = 0
MOST_LEVELS = 30
Split = dict[str, np.ndarray]
Fitted = Callable[[], np.ndarray]


def _surprise(algorithm, split: Split) -> Fitted:
    from surprise import Dataset, Reader

    reader = Reader(rating_scale=(float(split["low"]), float(split["high"])))
    rows = list(zip(split["train_users"], split["train_items"], split["train_values"], strict=True))
    data = Dataset(reader)
    data.raw_ratings = [(int(u), int(i), float(r), None) for u, i, r in rows]
    algorithm.fit(data.construct_trainset(data.raw_ratings))
    pairs = list(zip(split["test_users"].tolist(), split["test_items"].tolist(), strict=True))
    return lambda: np.array([algorithm.predict(u, i, clip=False).est for u, i in pairs])


def surprise_svd(split: Split) -> Fitted:
    """Biased matrix factorisation, 60 epochs, tuned.

    By RMSE on 8,000 ratings held out of the training set: 50 factors with
    regularisation .05 .8507, 100 with .05 .8516, 100 with .08 .8587, 200 with .06 .8497.
    """
    from surprise import SVD

    return _surprise(
        SVD(n_factors=200, n_epochs=60, lr_all=0.005, reg_all=0.06, random_state=SEED), split
    )


def surprise_svdpp(split: Split) -> Fitted:
    """SVD++ as it comes, with cached ratings for speed."""
    from surprise import SVDpp

    return _surprise(SVDpp(random_state=SEED, cache_ratings=True), split)


class _Features:
    """myFM's inputs of a split: one-hot users and items, and with them who rated what.

    attributes : whether users bring the groups that they are of.
    """

    def __init__(self, split: Split, attributes: bool = False) -> None:
        from scipy import sparse

        self.sparse = sparse
        self.members = split["user_groups"] if attributes else None
        if attributes and not self.members.shape[1]:
            raise SystemExit("These data say nothing of the users besides their ratings.")
        self.users = int(max(split["train_users"].max(), split["test_users"].max())) + 1
        self.items = int(max(split["train_items"].max(), split["test_items"].max())) + 1
        self.rated = sparse.csr_matrix(
            (np.ones(len(split["train_users"])), (split["train_users"], split["train_items"])),
            shape=(self.users, self.items),
        )

    def plain(self, users: np.ndarray, items: np.ndarray):
        """(n, users + items) one-hot rows of pairs."""
        n, ones = np.arange(len(users)), np.ones(len(users))
        csr = self.sparse.csr_matrix
        return self.sparse.hstack(
            [
                csr((ones, (n, users)), shape=(len(n), self.users)),
                csr((ones, (n, items)), shape=(len(n), self.items)),
            ],
            format="csr",
        )

    def implicit(self, users: np.ndarray, items: np.ndarray) -> list:
        """Relation blocks: a user's one-hot, rated items and groups, an item's one-hot and raters.

        SVD++ in both directions; a list of n has entries 1/√n.
        """
        import myfm

        def block(matrix, count: int, more=()):
            scale = 1 / np.sqrt(np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1))
            lists = self.sparse.diags(scale) @ matrix
            return self.sparse.hstack([self.sparse.identity(count), lists, *more], format="csr")

        groups = []
        if self.members is not None:
            groups.append(self.sparse.csr_matrix(self.members[: self.users]))
        return [
            myfm.RelationBlock(users, block(self.rated, self.users, groups)),
            myfm.RelationBlock(items, block(self.rated.T.tocsr(), self.items)),
        ]

    @property
    def groups(self) -> list[int]:
        """Columns of each group of implicit features, which share a prior."""
        own = [] if self.members is None else [self.members.shape[1]]
        return [self.users, self.items, *own, self.items, self.users]


SAMPLES = {"n_iter": 300, "n_kept_samples": 300}


def myfm_mf(split: Split) -> Fitted:
    """Bayesian matrix factorisation by Gibbs sampling, 300 samples of rank 10."""
    import myfm

    features = _Features(split)
    model = myfm.MyFMRegressor(rank=10, random_seed=SEED)
    model.fit(
        features.plain(split["train_users"], split["train_items"]),
        split["train_values"],
        group_shapes=[features.users, features.items],
        **SAMPLES,
    )
    return lambda: model.predict(features.plain(split["test_users"], split["test_items"]))


def myfm_svdpp(split: Split, attributes: bool = False) -> Fitted:
    """The same with implicit features of users and items (SVD++ both ways)."""
    import myfm

    features = _Features(split, attributes)
    model = myfm.MyFMRegressor(rank=10, random_seed=SEED)
    model.fit(
        None,
        split["train_values"],
        X_rel=features.implicit(split["train_users"], split["train_items"]),
        group_shapes=features.groups,
        **SAMPLES,
    )
    return lambda: model.predict(None, features.implicit(split["test_users"], split["test_items"]))


def myfm_probit(split: Split, attributes: bool = False) -> Fitted:
    """An ordered probit over those features with learned cut points; posterior median.

    The prediction is the smallest rating whose probability, with that of all smaller
    ones, reaches one half: it minimises the expected absolute error.
    """
    import myfm

    features = _Features(split, attributes)
    levels, codes = np.unique(split["train_values"], return_inverse=True)
    if len(levels) > MOST_LEVELS:
        raise SystemExit("An ordered probit needs ratings of a few levels.")
    model = myfm.MyFMOrderedProbit(rank=10, random_seed=SEED)
    model.fit(
        None,
        codes.astype(np.int32),
        X_rel=features.implicit(split["train_users"], split["train_items"]),
        group_shapes=features.groups,
        **SAMPLES,
    )

    def predict() -> np.ndarray:
        blocks = features.implicit(split["test_users"], split["test_items"])
        below = np.cumsum(model.predict_proba(None, blocks), axis=1)
        return levels[np.minimum((below < 0.5).sum(axis=1), len(levels) - 1)]

    return predict


def cornac_pmf(split: Split) -> Fitted:
    """Probabilistic matrix factorisation, non-linear variant, 10 factors."""
    from cornac.data import Dataset
    from cornac.models import PMF

    rows = zip(
        split["train_users"].tolist(), split["train_items"].tolist(),
        split["train_values"].tolist(), strict=True,
    )  # fmt: skip
    data = Dataset.from_uir(rows, seed=SEED)
    model = PMF(
        k=10, max_iter=100, learning_rate=0.001, lambda_reg=0.001, variant="non_linear", seed=SEED
    )
    model.fit(data)

    def predict() -> np.ndarray:
        mean = float(split["train_values"].mean())
        out = np.full(len(split["test_users"]), mean)
        pairs = zip(split["test_users"].tolist(), split["test_items"].tolist(), strict=True)
        for k, (user, item) in enumerate(pairs):
            if user in data.uid_map and item in data.iid_map:
                out[k] = model.rate(data.uid_map[user], data.iid_map[item], clipping=False)
        return out

    return predict


def lenskit_itemknn(split: Split) -> Fitted:
    """Item-based nearest neighbours, 20 of them, explicit feedback."""
    import pandas as pd
    from lenskit import predict
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import predict_pipeline

    columns = {"user_id": "train_users", "item_id": "train_items", "rating": "train_values"}
    frame = pd.DataFrame({name: split[key] for name, key in columns.items()})
    pipeline = predict_pipeline(ItemKNNScorer(max_nbrs=20))
    pipeline.train(from_interactions_df(frame))

    def predictions() -> np.ndarray:
        out = np.empty(len(split["test_users"]))
        pairs = zip(split["test_users"].tolist(), split["test_items"].tolist(), strict=True)
        for k, (user, item) in enumerate(pairs):
            out[k] = predict(pipeline, user, [item]).scores()[0]
        return out

    return predictions


METHODS: dict[str, tuple[str, Callable[[Split], Fitted]]] = {
    "surprise-svd": ("surprise", surprise_svd),
    "surprise-svdpp": ("surprise", surprise_svdpp),
    "lenskit-itemknn": ("lenskit", lenskit_itemknn),
    "cornac-pmf": ("cornac", cornac_pmf),
    "myfm-mf": ("myfm", myfm_mf),
    "myfm-svdpp": ("myfm", myfm_svdpp),
    "myfm-probit": ("myfm", myfm_probit),
    "myfm-svdpp-attributes": ("myfm", partial(myfm_svdpp, attributes=True)),
    "myfm-probit-attributes": ("myfm", partial(myfm_probit, attributes=True)),
}


DISTRIBUTIONS = {"surprise": "scikit-surprise"}


def version_of(module: str) -> str:
    """The installed version of a package; "unknown" where it does not tell."""
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(module, module))
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def peak_bytes() -> float:
    """The most memory that this process has had; NaN where the system does not tell."""
    try:
        # Linux's ru_maxrss remembers the parent's memory from before this program began.
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return float(peak if sys.platform == "darwin" else peak * 1024)


def main() -> None:
    """Command line: name, split file, output file; or --list."""
    here = os.path.dirname(os.path.abspath(__file__))
    # This folder's modules must not stand in for the package's own imports.
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != here]
    if sys.argv[1:] == ["--list"]:
        for name, (module, _) in METHODS.items():
            if importlib.util.find_spec(module):
                print(name, version_of(module))
        return
    name, source, target = sys.argv[1:4]
    with np.load(source) as stored:
        split = {key: stored[key] for key in stored.files}
    before, wall, cpu = peak_bytes(), time.perf_counter(), time.process_time()
    predictions = np.asarray(METHODS[name][1](split)(), dtype=float)
    np.savez(
        target,
        predictions=predictions,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        peak_bytes=peak_bytes() - before,
    )


if __name__ == "__main__":
    main()
