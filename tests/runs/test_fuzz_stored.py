"""Damaged and hostile model files, and runs that others have exported."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuzzing import FILES, altered, check_error, mutated, tried
from making import random_table, ratings_of
from stored_runs import stored, stored_comparison

from gmc_core.base import array_archive
from gmc_core.base.errors import GmcError, ModelFileError
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.model_file import FORMAT, FORMAT_VERSION, load_model, save_model
from gmc_core.model.pictures import HeatmapBinner, picture_orders
from gmc_core.protocol.splits import no_split
from gmc_core.runs.store import Run, Store, artifacts
from gmc_core.runs.store.folders import write_atomically
from gmc_core.runs.store.transfer import FORMATS, export, import_run
from gmc_dashboard.runs.figures import runs_table
from gmc_dashboard.shared import context


@pytest.fixture(scope="module")
def model() -> GaussianModel:
    values, known = random_table(20, 6, 0.5, seed=2)
    return run_fit(no_split(ratings_of(values, known)), FitSettings(iterations=2)).model()


@pytest.fixture(scope="module")
def knowing() -> GaussianModel:
    """A model of latent responses that knows groups of users: what the other one has not."""
    values, known = random_table(60, 6, 0.5, seed=2)
    info = {"gender": np.array(["F", "M"] * 30, dtype=object), "age": np.repeat([20.0, 30.0], 30)}
    ratings = replace(ratings_of(values, known), user_info=info)
    model = run_fit(no_split(ratings), replace(settings_for("ordinal"), iterations=5)).model()
    assert model.groups is not None and model.ordinal is not None
    return model


def hostile_arrays(arrays: dict[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
    """One of them of another shape, type or content."""
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    match rng.randrange(6):
        case 0:
            array = array.reshape(-1)
        case 1:
            array = array[: len(array) // 2]
        case 2:
            with np.errstate(all="ignore"):
                array = array.astype(rng.choice(("<f8", "<f4", "<i8", "<i4", "|b1")))
        case 3:
            array = array[None]
        case 4:
            return {key: part for key, part in arrays.items() if key != name}
        case _:
            wrong = rng.choice((np.nan, np.inf, -1, 0, 1e308, 2**31 - 1, -(2**31)))
            with np.errstate(all="ignore"):
                array.reshape(-1)[rng.randrange(max(array.size, 1)) :][:1] = np.asarray(
                    wrong
                ).astype(array.dtype)
    return {**arrays, name: array}


def use(model: GaussianModel) -> None:
    """What a page does with a model: finite figures, or a sentence."""
    try:
        posterior = model.posterior([0, 1], [model.scale.high, model.scale.low])
        found = model.recommend(posterior, top=3)
        if model.ratings is not None:
            users = model.ratings.users.ids[:3]
            predicted = model.predict(users, model.items.ids[:3]).values
            assert not np.isnan(predicted).any()
    except GmcError as error:
        check_error(error)
        return
    assert all(np.isfinite([item.predicted, item.sd]).all() for item in found)


@pytest.mark.parametrize("kind", ["model", "knowing"])
def test_model_files_load_as_they_were_or_are_refused(kind, tmp_path, request):
    path = save_model(request.getfixturevalue(kind), tmp_path / "m.npz")
    content = path.read_bytes()
    header, arrays = array_archive.read(path, FORMAT, FORMAT_VERSION)
    header = {key: value for key, value in header.items() if key != "arrays"}
    refused = 0
    for seed in range(FILES["models"]):
        rng = random.Random(seed)
        if seed % 3 == 0:
            path.write_bytes(mutated(content, rng))
        else:  # by somebody who writes the right hashes
            parts = hostile_arrays(arrays, rng) if seed % 3 == 1 else arrays
            told = altered(header, rng) if seed % 3 == 2 else header
            try:
                array_archive.write(path, FORMAT, FORMAT_VERSION, told, parts)
            except (ValueError, UnicodeError, TypeError):
                continue  # JSON has no such value
        loaded = tried(load_model, path, path=path)
        refused += loaded is None
        if loaded is not None:
            use(loaded)
    assert refused > FILES["models"] / 2


@pytest.fixture(scope="module")
def store(tmp_path_factory, model) -> Store:
    """A finished run with all its files."""
    store = Store(tmp_path_factory.mktemp("store"))
    run = stored(store, label="a run", data={**_DATA})
    folder = store.folder(run.id)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "model.npz")
    binner = HeatmapBinner(picture_orders(model))
    picture = binner.binned(model.gaussian)
    write_atomically(artifacts.picture_path(folder, 0, 1), picture.save)
    ids = np.arange(4)
    held_out = artifacts.HeldOut(np.ones(4), np.ones(4), np.zeros(4, bool), ids, ids)
    artifacts.save_held_out(folder, 0, held_out)
    return store


_DATA = {
    "name": "sample",
    "sha256": "0" * 64,
    "users": 20,
    "items": 6,
    "ratings": 60,
    "scale": [1.0, 5.0, 1.0],
    "divisor": 1.6,
}


def look_at(store: Store, run: Run, folder: Path) -> None:
    """What the pages and commands do with a run."""
    for one in store.runs():
        assert one.title
        context.run_summary(one)
        store.command(one.id)
        store.remaining_seconds(one.id)
        store.messages(one.id)
        for repetition, iteration in store.pictures(one.id):
            store.picture(one.id, iteration, repetition)
    runs_table(store.runs())
    for format in FORMATS:
        if format != "model" or store.model_path(run.id):
            export(store, run.id, folder / f"again.{format}", format)


def test_imported_runs_are_shown_or_refused(store, tmp_path):
    run = store.runs()[0]
    exported = export(store, run.id, tmp_path / "run.zip")
    content = exported.read_bytes()
    with zipfile.ZipFile(exported) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(members["run.json"])
    assert len(members) == 6  # with the report and the instructions
    taken = 0
    for seed in range(FILES["runs"]):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.zip"
        if seed % 3 == 0:
            path.write_bytes(mutated(content, rng))
        elif seed % 3 == 1:
            path.write_text(json.dumps(altered(told, rng)))
        else:
            name = rng.choice(sorted(members))
            with zipfile.ZipFile(path, "w") as archive:
                for member, data in members.items():
                    archive.writestr(member, mutated(data, rng) if member == name else data)
        with Store(tmp_path / f"store{seed}") as other:
            found = tried(partial(import_run, other), path, path=path)
            if found is None:
                assert other.runs() == []
                assert not list((tmp_path / f"store{seed}" / "runs").glob("*"))
            else:
                taken += 1
                look_at(other, found, tmp_path)
    assert 0 < taken < FILES["runs"]


def test_imported_comparisons_are_shown_or_refused(tmp_path):
    with Store(tmp_path / "store") as own:
        run = stored_comparison(own, failures=(("item", "It broke."),), done=2)
        exported = export(own, run.id, tmp_path / "run.zip")
    with zipfile.ZipFile(exported) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(members["run.json"])
    results = sorted(name for name in members if "result--" in name or "split--" in name)
    assert len(results) == 2 + 2 * 2
    taken = 0
    for seed in range(FILES["comparisons"]):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.zip"
        if seed % 2:
            path.write_text(json.dumps(altered(told, rng)))
        else:
            name = rng.choice(results)
            with zipfile.ZipFile(path, "w") as archive:
                for member, data in members.items():
                    archive.writestr(member, mutated(data, rng) if member == name else data)
        with Store(tmp_path / f"store{seed}") as other:
            found = tried(partial(import_run, other), path, path=path)
            if found is None:
                assert other.runs() == []
            else:
                taken += 1
                look_at(other, found, tmp_path)
    assert 0 < taken < FILES["comparisons"]


def test_a_pickle_in_a_run_is_never_read(store, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.mkdir, (tmp_path / "evil",))

    run = store.runs()[0]
    exported = export(store, run.id, tmp_path / "run.zip")
    with zipfile.ZipFile(exported) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    np.savez(tmp_path / "evil.npz", bin_starts=np.array([Evil()], dtype=object))
    for name in members:
        if name.endswith(".npz"):
            path = tmp_path / "evil.zip"
            with zipfile.ZipFile(path, "w") as archive:
                for member, data in members.items():
                    evil = (tmp_path / "evil.npz").read_bytes()
                    archive.writestr(member, evil if member == name else data)
            with Store(tmp_path / name.replace("/", "-")) as other:
                found = tried(partial(import_run, other), path, path=path)
                if found is not None:  # a model is looked at when it is used
                    with pytest.raises(ModelFileError):
                        other.model(found.id)
    assert not (tmp_path / "evil").exists()
