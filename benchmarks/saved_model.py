"""Whether the model that a fit saves is the one that it evaluated.

    python -m benchmarks.saved_model --data ml-1m.zip --protocol weak --seeds 0

Fits, saves, loads, and predicts the held-out pairs with the loaded model: users that it knows by
:meth:`gmc_core.model.gaussian_model.GaussianModel.predict`, new ones from their ratings. Prints a
Markdown table: NMAE of both, and the largest difference between their predictions.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gmc_core.cli.compare import seeds
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.fit import run_fit
from gmc_core.fitting.preparing import make_split, prepare
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import Split


def predictions(model: GaussianModel, split: Split) -> npt.NDArray[np.float64]:
    """(n_test,) what a model says of the held-out pairs."""
    if split.query is None:
        users, items = split.train.users.ids, split.train.items.ids
        return model.predict(users[split.test_users], items[split.test_items]).values
    found = np.empty(split.n_test)
    for user in np.unique(split.test_users):
        at = split.test_users == user
        known = model.covariates_of(split.query, user)
        posterior = model.posterior(*split.query.of_user(user), known)
        found[at] = model.answers_of(posterior, split.test_items[at]).prediction
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The evaluated model and the saved one.")
    parser.add_argument("--data", default="sample", help="a name or a path (default: sample)")
    parser.add_argument("--protocol", default="weak", choices=("weak", "strong"))
    parser.add_argument("--seeds", type=seeds, default=(0,), help="such as 0..4")
    parser.add_argument("--model", nargs="+", default=["ordinal"], choices=list(MODELS))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    args = parser.parse_args()
    config = ExperimentConfig(data=args.data, protocol=args.protocol)
    prepared = prepare(config)
    print("| model | seed | held out | NMAE of the fit | of the saved model | difference |")
    print("|---|---|---|---|---|---|")
    for model in args.model:
        for seed in args.seeds:
            split = make_split(config, prepared, seed)
            done = run_fit(split, replace(settings_for(model), dtype=args.dtype))
            with tempfile.TemporaryDirectory() as folder:
                saved = load_model(save_model(done.model(), Path(folder) / "model.npz"))
            found = predictions(saved, split)
            own, scale = done.predictions, split.train.scale
            errors = [score(p, split.test_values, scale).nmae for p in (own, found)]
            print(
                f"| {model} | {seed} | {split.n_test:,} | {errors[0]:.5f} | {errors[1]:.5f} | "
                f"{np.abs(found - own).max():.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
