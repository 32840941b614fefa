"""Saving and loading: exact round trips, and every kind of damage refused."""

import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.base import array_archive
from gmc_core.base.errors import ConfigError, ModelFileError
from gmc_core.data.rating_times import UNKNOWN_TIME
from gmc_core.data.ratings import ItemInfo, Ratings, Vocabulary
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.model_file import FORMAT, FORMAT_VERSION, load_model, save_model
from gmc_core.protocol.splits import no_split


def model_of(users=30, items=10, text_ids=False, **settings):
    values, known = random_table(users, items, 0.5, seed=2)
    ratings = ratings_of(values, known)
    if text_ids:
        ratings = named(ratings)
    return run_fit(no_split(ratings), FitSettings(**{"iterations": 3, **settings})).model()


def named(ratings):
    """The same with text ids (leading zeros), titles, genres and attributes."""
    size = ratings.n_items
    info = ItemInfo(
        titles=("Amélie (2001)", None, *(f"=Title {k}" for k in range(2, size))),
        genres=(("Drama", "Comedy"), *((),) * (size - 1)),
        years=np.array([2001.0, *[np.nan] * (size - 1)]),
    )
    return Ratings(
        users=Vocabulary([f"{k:04d}" for k in range(ratings.n_users)], "user"),
        items=Vocabulary([f"i{k:03d}" for k in range(size)], "item"),
        indptr=ratings.indptr,
        indices=ratings.indices,
        values=ratings.values,
        scale=ratings.scale,
        item_info=info,
        user_info={
            "age": np.arange(ratings.n_users),
            "weight": np.array([np.nan, *range(1, ratings.n_users)]),
            "job": np.array(["a", None] * (ratings.n_users // 2), dtype=object),
            "zip": np.array(["012"] * ratings.n_users),
        },
        name="näme",
        licence="for tests",
        citation="Someone (2000)",
    )


def assert_same(a, b):
    for x, y in (
        (a.gaussian.mean, b.gaussian.mean),
        (a.noise.array, b.noise.array),
        (a.items.ids, b.items.ids),
        (a.item_info.years, b.item_info.years),
    ):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype
    assert type(a.gaussian.covariance) is type(b.gaussian.covariance)
    everything = np.arange(a.gaussian.dimension)
    first = a.gaussian.covariance.submatrix(everything, everything)
    second = b.gaussian.covariance.submatrix(everything, everything)
    np.testing.assert_array_equal(first, second)
    assert a.gaussian.covariance.dtype == b.gaussian.covariance.dtype
    assert a.noise.kind == b.noise.kind
    for name in (
        "layout", "scale", "settings", "iteration", "data_name", "data_sha256", "licence",
        "citation",
    ):  # fmt: skip
        assert getattr(a, name) == getattr(b, name)
    assert a.item_info.titles == b.item_info.titles
    assert a.item_info.genres == b.item_info.genres
    assert a.items.are_integers == b.items.are_integers


VARIANTS = [
    {},
    {"text_ids": True},
    {"users": 6, "items": 20},
    {"dtype": "float32"},
    {"noise": 0.5},
    {"iterations": 0},
    {"signals": "columns"},
    {"signals": "blocks", "block": (3, 4)},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_round_trip_is_exact(tmp_path, variant):
    model = model_of(**variant)
    again = load_model(save_model(model, tmp_path / "m.npz"))
    assert_same(model, again)
    assert again.ratings.sha256 == model.ratings.sha256
    users, items = model.ratings.users.ids[:5].repeat(5), np.tile(model.items.ids[:5], 5)
    np.testing.assert_array_equal(
        model.predict(users, items).values, again.predict(users, items).values
    )
    for name, column in model.ratings.user_info.items():
        np.testing.assert_array_equal(again.ratings.user_info[name], column)
        assert again.ratings.user_info[name].dtype == column.dtype


@pytest.mark.parametrize("value", ["vector", "matrix"])
def test_round_trip_of_noise_arrays(tmp_path, value):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(10, 10))
    path = tmp_path / "noise.npy"
    np.save(path, root @ root.T + np.eye(10))
    if value == "vector":
        path = tmp_path / "noise.csv"
        path.write_text("\n".join(f"{k},{0.1 + k / 10}" for k in range(10)))
    model = model_of(noise=str(path))
    assert_same(model, load_model(save_model(model, tmp_path / "m.npz")))


def test_numpy_reads_it_without_pickle(tmp_path):
    model = model_of()
    path = save_model(model, tmp_path / "m.npz")
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["mean"], model.gaussian.mean)
        header = json.loads(archive["header"].tobytes())
    assert header["data"]["licence"] == model.licence


def test_without_ratings_only_folds_in(tmp_path):
    model = model_of(text_ids=True)
    path = save_model(model, tmp_path / "m.npz", with_ratings=False)
    again = load_model(path)
    assert_same(model, again)
    assert again.ratings is None
    assert b"0007" not in path.read_bytes()  # a user id
    folded = again.posterior([2, 3], [4, 5])
    np.testing.assert_array_equal(folded.mean, model.posterior([2, 3], [4, 5]).mean)
    assert len(again.recommend(folded, 3)) == 3
    with pytest.raises(ConfigError, match="without its training ratings"):
        again.predict(["0001"], ["i001"])


def test_without_ratings_needs_rows(tmp_path):
    with pytest.raises(ConfigError, match="fold in"):
        save_model(model_of(signals="columns"), tmp_path / "m.npz", with_ratings=False)


def test_writing_is_atomic(tmp_path, monkeypatch):
    path = save_model(model_of(), tmp_path / "m.npz")
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ModelFileError, match="room on the disk"):
        save_model(model_of(iterations=1), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.npz"]


def test_missing_folder(tmp_path):
    with pytest.raises(ModelFileError, match="another folder"):
        save_model(model_of(), tmp_path / "no" / "m.npz")


# Damage -----------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    return save_model(model_of(), tmp_path / "m.npz")


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, content, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(array, **options):
    import io

    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), **options)
    return file.getvalue()


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_no_such_file(tmp_path):
    refused(tmp_path / "no.npz", "No such file")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 nothing", b"\x00" * 1000])
def test_no_model_at_all(tmp_path, content):
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    refused(path, "no model file")


def test_foreign_npz(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.arange(3))
    refused(tmp_path / "m.npz", "no model file")


def test_foreign_header(tmp_path):
    np.savez(tmp_path / "m.npz", header=np.frombuffer(b'{"format": "other"}', np.uint8))
    refused(tmp_path / "m.npz", "another format")


@pytest.mark.parametrize("text", [b"[1]", b"{", b"\xff\xfe", b'{"format_version": 1}', b"[" * 9999])
def test_header_that_is_no_description(saved, text):
    content = members(saved)
    rewrite(saved, {**content, "header.npy": npy(np.frombuffer(text, np.uint8))})
    refused(saved, "no model file")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * share)])
    refused(saved, "damaged|no model file")


def test_every_flipped_byte_is_noticed_or_harmless(saved):
    data = bytearray(saved.read_bytes())
    model = load_model(saved)
    for place in np.random.default_rng(0).integers(0, len(data), 150):
        changed = data.copy()
        changed[place] ^= 0x55
        saved.write_bytes(changed)
        try:
            assert_same(model, load_model(saved))
        except ModelFileError:
            continue


def test_changed_array_with_a_correct_zip(saved):
    content = members(saved)
    content["mean.npy"] = npy(load_model(saved).gaussian.mean + 1)
    rewrite(saved, content)
    refused(saved, "changed after it was written")


def test_changed_header_with_a_correct_zip(saved):
    content = members(saved)
    text = content["header.npy"].replace(b'"iteration": 3', b'"iteration": 4')
    assert text != content["header.npy"]
    rewrite(saved, {**content, "header.npy": text})
    refused(saved, "changed after it was written")


def test_missing_and_additional_parts(saved):
    content = members(saved)
    rewrite(saved, {name: data for name, data in content.items() if name != "mean.npy"})
    refused(saved, "mean")
    rewrite(saved, {**content, "more.npy": npy(np.arange(3))})
    refused(saved, "more.npy")


def test_pickle_is_never_read(saved):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(saved) + ".evil",))

    content = members(saved)
    content["mean.npy"] = npy(np.array([Evil()], dtype=object), allow_pickle=True)
    rewrite(saved, content)
    refused(saved, "type object")
    assert not os.path.exists(str(saved) + ".evil")


def test_claimed_sizes_take_no_memory(saved):
    """A part that says it has 10^15 numbers is refused before they get room."""
    content = members(saved)
    data = content["mean.npy"]
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**15},), }}"
    text = header.encode().ljust(len(data[10:128]) - 1) + b"\n"
    content["mean.npy"] = data[:10] + text + data[128:]
    rewrite(saved, content)
    refused(saved, "shorter or longer")


def test_compressed_is_refused(saved):
    rewrite(saved, members(saved), zipfile.ZIP_DEFLATED)
    refused(saved, "no model file of this program")


def tampered(saved, change):
    """A file whose hashes are right and whose content is not."""
    header, arrays = array_archive.read(saved, FORMAT, FORMAT_VERSION)
    header.pop("arrays")
    change(header, arrays)
    array_archive.write(saved, header.pop("format"), header.pop("format_version"), header, arrays)


def test_newer_version(saved):
    tampered(
        saved,
        lambda header, _: header.update(format_version=FORMAT_VERSION + 1, package_version="9.9"),
    )
    refused(saved, r"newer version of this program \(9.9\)")


def set_nan(name):
    def change(_, arrays):
        arrays[name].reshape(-1)[0] = np.nan

    return change


def replace_array(name, make):
    def change(_, arrays):
        arrays[name] = make(arrays[name])

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_nan("mean"),
        set_nan("covariance"),
        set_nan("values"),
        set_nan("noise"),
        replace_array("mean", lambda mean: mean[:-1]),
        replace_array("mean", lambda mean: mean.astype(np.float32)),
        replace_array("covariance", lambda matrix: matrix[:-1]),
        replace_array("covariance", lambda matrix: -matrix),
        replace_array("covariance", lambda matrix: matrix.astype(np.int64)),
        replace_array("noise", lambda noise: noise[0]),
        replace_array("noise", lambda noise: noise - 1),
        replace_array("indptr", lambda pointers: pointers[::-1].copy()),
        replace_array("indptr", lambda pointers: pointers[:-1]),
        replace_array("indices", lambda indices: indices[::-1].copy()),
        replace_array("indices", lambda indices: indices + 100),
        replace_array("indices", lambda indices: indices.astype(np.int64)),
        replace_array("values", lambda values: values + 10),
        replace_array("values", lambda values: values[:-1]),
        replace_array("item_ids", lambda ids: ids[::-1].copy()),
        replace_array("user_ids", lambda ids: ids[:-1]),
        replace_array("years", lambda years: years[:-1]),
        lambda header, _: header.pop("scale"),
        lambda header, _: header.update(scale=[5, 1, 1]),
        lambda header, _: header.update(titles=["a"]),
        lambda header, _: header.update(noise=7),
        lambda header, _: header["settings"].update(epsilon=-1),
        lambda header, _: header["settings"].update(more=1),
        lambda header, _: header["layout"].update(items=3),
        lambda header, _: header["layout"].update(kind="diagonals"),
        lambda header, _: header.update(items=[1, 2]),
        lambda _, arrays: arrays.pop("covariance"),
        lambda _, arrays: arrays.pop("indptr"),
    ],
)
def test_parts_that_do_not_fit_together(saved, change):
    tampered(saved, change)
    refused(saved, "cannot be right|do not fit together")


def test_settings_survive_with_a_path(tmp_path):
    model = replace(model_of(), settings=FitSettings(noise="Ω/noise.csv", initial=2.5))
    assert load_model(save_model(model, tmp_path / "m.npz")).settings == model.settings


def test_times_of_ratings_are_kept_and_may_be_missing(tmp_path):
    model = model_of()
    times = 10**9 + np.arange(len(model.ratings))
    times[3] = UNKNOWN_TIME
    timed = replace(model, ratings=replace(model.ratings, times=times))
    path = save_model(timed, tmp_path / "timed.npz")
    assert np.array_equal(load_model(path).ratings.times, times)
    # A file without them is one from before they were kept; whoever reads neither loses nothing.
    header, arrays = array_archive.read(path, FORMAT, FORMAT_VERSION)
    assert arrays.pop("times").dtype == np.int64
    described = {k: v for k, v in header.items() if k not in ("format", "format_version", "arrays")}
    array_archive.write(tmp_path / "old.npz", FORMAT, FORMAT_VERSION, described, arrays)
    assert load_model(tmp_path / "old.npz").ratings.times is None
    array_archive.write(
        tmp_path / "bad.npz", FORMAT, FORMAT_VERSION, described, {**arrays, "times": times * 1.0}
    )
    with pytest.raises(ModelFileError, match="times"):
        load_model(tmp_path / "bad.npz")
    array_archive.write(
        tmp_path / "short.npz", FORMAT, FORMAT_VERSION, described, {**arrays, "times": times[1:]}
    )
    with pytest.raises(ModelFileError, match="do not fit together"):
        load_model(tmp_path / "short.npz")
