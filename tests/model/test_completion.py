"""Completed tables: of a model, and of a plain table with blanks."""

import csv

import dense_reference as dense
import numpy as np
import pyarrow.parquet
import pytest
from making import random_table, ratings_of

from gmc_core.base.errors import ConfigError, DataError, ResourceError
from gmc_core.base.table_files import TableWriter, number_text, safe_text
from gmc_core.data.ratings import ItemInfo, Ratings
from gmc_core.fitting.fit import run_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model import completion
from gmc_core.model.completion import complete, completed_blocks
from gmc_core.protocol.splits import no_split
from gmc_core.tables.wide_table import (
    TableOptions,
    WideTable,
    complete_table,
    read_table,
    write_completed,
)

USERS, ITEMS = 23, 10
KINDS = [
    {},
    {"signals": "columns"},
    {"signals": "blocks", "block": (4, 3)},
    {"noise": 0.3},
    {"dtype": "float32"},
]


def fitted(users=USERS, items=ITEMS, **settings):
    values, known = random_table(users, items, 0.4, seed=8)
    ratings = ratings_of(values, known)
    model = run_fit(no_split(ratings), FitSettings(**{"iterations": 3, **settings})).model()
    return model, values, known


def whole(model, **options):
    blocks = list(completed_blocks(model, **options))
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    values = np.concatenate([block.values for block in blocks])
    sd = np.concatenate([block.sd for block in blocks]) if blocks[0].sd is not None else None
    return values, sd


@pytest.mark.parametrize("block_bytes", [1, 300, 10**9])
@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_blocks_hold_observed_and_predicted_entries(settings, block_bytes):
    model, values, known = fitted(**settings)
    found, _ = whole(model, block_bytes=block_bytes)
    users, items = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    predicted = model.predict(users, items).values.reshape(USERS, ITEMS)
    tolerance = 1e-4 if settings.get("dtype") == "float32" else 1e-9
    np.testing.assert_array_equal(found[known], values[known])
    np.testing.assert_allclose(found[~known], predicted[~known], atol=tolerance)


def test_fewer_users_than_items():
    model, values, known = fitted(users=5, items=20)
    found, sd = whole(model, sd=True)
    predicted = model.predict(np.repeat(range(5), 20), np.tile(range(20), 5)).values
    np.testing.assert_allclose(found[~known], predicted.reshape(5, 20)[~known], atol=1e-9)
    np.testing.assert_allclose(sd[3][~known[3]], model.posterior_of(3).rating_sd[~known[3]])


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_standard_deviations_of_rows(noise):
    model, _, known = fitted(noise=noise)
    _, sd = whole(model, sd=True, block_bytes=300)
    assert np.all(sd[known] == 0)
    for user in range(USERS):
        expected = model.posterior_of(user).rating_sd
        np.testing.assert_allclose(sd[user][~known[user]], expected[~known[user]], atol=1e-7)


def test_standard_deviations_of_columns_and_blocks():
    model, _, known = fitted(signals="columns")
    _, sd = whole(model, sd=True, block_bytes=1)
    covariance = model.gaussian.covariance.submatrix(np.arange(USERS), np.arange(USERS))
    for item in range(ITEMS):
        observed = np.flatnonzero(known[:, item])
        variance = dense.posterior_variance(model.gaussian.mean, covariance, 0.0, observed)
        rest = ~known[:, item]
        np.testing.assert_allclose(sd[rest, item], np.sqrt(variance[rest]), atol=1e-7)
    model, _, known = fitted(signals="blocks", block=(4, 3))
    _, sd = whole(model, sd=True, block_bytes=1)
    covariance = model.gaussian.covariance.submatrix(np.arange(12), np.arange(12))
    _, masks = dense.blocks(known, known, 4, 3)
    variances = np.array(
        [
            dense.posterior_variance(model.gaussian.mean, covariance, 0.0, np.flatnonzero(mask))
            for mask in masks
        ]
    )
    expected = dense.from_blocks(variances, (USERS, ITEMS), 4, 3)
    np.testing.assert_allclose(sd[~known], np.sqrt(expected[~known]), atol=1e-7)


def test_projected_predictions_are_on_the_scale():
    model, _, _ = fitted()
    found, _ = whole(model, projected=True)
    assert set(np.unique(found)) <= {1.0, 2.0, 3.0, 4.0, 5.0}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_wide_csv(tmp_path):
    model, values, known = fitted()
    done = complete(model, tmp_path / "c.csv", sd=True)
    assert done.files == (tmp_path / "c.csv", tmp_path / "c.sd.csv")
    table, sd = rows_of(done.files[0]), rows_of(done.files[1])
    assert table[0] == ["user", *map(str, range(ITEMS))] == sd[0]
    assert [row[0] for row in table[1:]] == list(map(str, range(USERS)))
    numbers = np.array([row[1:] for row in table[1:]], float)
    np.testing.assert_array_equal(numbers[known], values[known])
    np.testing.assert_allclose(numbers, whole(model)[0], rtol=1e-5)
    np.testing.assert_allclose(
        np.array([row[1:] for row in sd[1:]], float), whole(model, sd=True)[1], rtol=1e-5
    )


def test_long_csv_and_parquet(tmp_path, monkeypatch):
    monkeypatch.setattr(completion, "BLOCK_BYTES", 16 * 300)
    model, values, known = fitted()
    complete(model, tmp_path / "c.csv", layout="long", sd=True)
    complete(model, tmp_path / "c.parquet", layout="long", sd=True)
    table = rows_of(tmp_path / "c.csv")
    assert table[0] == ["user", "item", "rating", "observed", "sd"]
    assert len(table) == 1 + USERS * ITEMS
    assert [row[3] for row in table[1:]] == [str(int(flag)) for flag in known.ravel()]
    read = pyarrow.parquet.read_table(tmp_path / "c.parquet")
    expected, sd = whole(model, sd=True)
    np.testing.assert_allclose(read["rating"].to_numpy(), expected.ravel())
    np.testing.assert_allclose(read["sd"].to_numpy(), sd.ravel())


def test_wide_parquet_in_several_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(completion, "BLOCK_BYTES", 300)
    model, _, _ = fitted()
    complete(model, tmp_path / "c.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "c.parquet")
    assert read.num_rows == USERS
    np.testing.assert_allclose(read["3"].to_numpy(), whole(model)[0][:, 3])


def test_text_that_a_spreadsheet_would_run_is_made_safe(tmp_path):
    items = ['+cmd("x")', "-1", "=1+1", "@a", "b"]
    items.sort()
    ratings = Ratings.from_triplets(
        np.array(["=u", "=u", "v", "v", "v"], dtype=object),
        np.array([*items[:2], *items[2:]], dtype=object),
        [1, 2, 3, 4, 5],
        ratings_of(*random_table(3, 3, 0.5, 0)).scale,
        item_info=ItemInfo(("=HYPERLINK(1)", None, None, None, None), ((),) * 5, np.full(5, 1.0)),
    )
    model = run_fit(no_split(ratings), FitSettings(iterations=1)).model()
    complete(model, tmp_path / "c.csv", titles=True)
    table = rows_of(tmp_path / "c.csv")
    assert table[0][1].startswith("'=HYPERLINK(1) [")
    assert "-1" in table[0]
    assert "'@a" in table[0]
    assert [row[0] for row in table[1:]] == ["'=u", "v"]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"), ("+a", "'+a"), ("-a", "'-a"), ("@x", "'@x"), ("\tx", "'\tx"),
        ("\rx", "'\nx"), ("-1.5", "-1.5"), ("+3", "+3"), ("a=b", "a=b"), ("", ""), (-7, "-7"),
        ("-1+1", "'-1+1"), ("-1e5", "-1e5"), (" =1", "' =1"),
    ],
)  # fmt: skip
def test_safe_text(text, safe):
    assert safe_text(text) == safe


def test_number_text_reads_back():
    for value in (3.0, 3.5, -0.1, 1 / 3, 1e300, 1e-300, 12345678.25):
        assert float(number_text(value)) == value
    assert number_text(4.0) == "4"
    assert number_text(float("nan")) == ""


def test_a_failed_table_leaves_the_old_one(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("old")

    def fail_half_way():
        with TableWriter(path, [], ["a"]) as writer:
            writer.write([], np.ones((2, 1)))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["c.csv"]


def test_errors_of_completing(tmp_path):
    model, _, _ = fitted()
    with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
        complete(model, tmp_path / "c.xlsx")
    with pytest.raises(ConfigError, match="wide or long"):
        complete(model, tmp_path / "c.csv", layout="tall")
    with pytest.raises(ResourceError, match="another folder"):
        complete(model, tmp_path / "no" / "c.csv")


# Plain tables -------------------------------------------------------------------


def measurements(rows=300, seed=0, blanks=0.2):
    """Five quantities of two causes, in very different units."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(rows, 2))
    table = causes @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(rows, 5))
    table = table * [1, 1000, 1e-6, 20, 3] + [0, 5e4, 1e-5, 300, -7]
    hidden = rng.random(table.shape) < blanks
    hidden[:2] = False
    return table, hidden


def wide(values, **options):
    names = tuple(f"c{k}" for k in range(values.shape[1]))
    fields = {"label_names": (), "labels": (), "lines": np.arange(2, 2 + len(values))}
    return WideTable("t.csv", names, values, **{**fields, **options})


def test_blanks_are_filled_in_original_units():
    table, hidden = measurements()
    result = complete_table(wide(np.where(hidden, np.nan, table)), sd=True)
    np.testing.assert_array_equal(result.values[~hidden], table[~hidden])
    assert np.isfinite(result.values).all()
    error = (result.values - table) / table.std(axis=0)
    assert np.sqrt(np.mean(error[hidden] ** 2)) < 0.6  # 1 for the column's mean
    assert np.all(result.sd[~hidden] == 0)
    assert np.all(result.sd[hidden] > 0)
    ratio = np.abs(result.values - table)[hidden] / result.sd[hidden]
    assert 0.5 < np.sqrt(np.mean(ratio**2)) < 1.5


def test_units_do_not_matter():
    table, hidden = measurements()
    values = np.where(hidden, np.nan, table)
    first = complete_table(wide(values), sd=True)
    factor, shift = np.array([1e6, 1e-9, 1, -2, 5]), np.array([0, 1, 2, 3, 4])
    second = complete_table(wide(values * factor + shift), sd=True)
    np.testing.assert_allclose(second.values, first.values * factor + shift, rtol=1e-6)
    np.testing.assert_allclose(second.sd, first.sd * np.abs(factor), rtol=1e-6, atol=1e-30)


def test_it_is_the_paper_s_algorithm_on_standardised_columns():
    table, hidden = measurements(rows=30)
    standard = np.where(hidden, np.nan, table)
    means, sds = np.nanmean(standard, axis=0), np.nanstd(standard, axis=0)
    standard = (standard - means) / sds
    state = dense.map_em(standard, ~hidden, epsilon=0.1, iterations=6, initial=0.0)[-1]
    result = complete_table(wide(np.where(hidden, np.nan, table)), epsilon=0.1, iterations=6)
    expected = state.F * sds + means
    np.testing.assert_allclose(result.values[hidden], expected[hidden], rtol=1e-8)


def test_empty_row_is_flagged_and_filled_with_means():
    table, hidden = measurements(rows=50)
    hidden[7] = True
    result = complete_table(wide(np.where(hidden, np.nan, table)))
    assert result.empty_rows.tolist() == [7]
    assert np.isfinite(result.values[7]).all()
    assert any("line 9" in text for text in result.notes)


def test_constant_column_is_filled_and_named():
    table, hidden = measurements(rows=50)
    table[:, 2] = 4.5
    result = complete_table(wide(np.where(hidden, np.nan, table)), sd=True)
    np.testing.assert_allclose(result.values[:, 2], 4.5)
    assert np.all(result.sd[:, 2] == 0)
    assert result.constant_columns == ("c2",)


def test_column_without_entries_is_an_error():
    table, _ = measurements(rows=10)
    table[:, 3] = np.nan
    with pytest.raises(DataError, match="'c3' has no entry"):
        complete_table(wide(table))


def test_one_row_is_not_enough():
    with pytest.raises(DataError, match="two rows"):
        complete_table(wide(np.array([[1.0, 2.0], [np.nan, np.nan]])))


@pytest.mark.parametrize("setting", [{"epsilon": -1}, {"iterations": -1}, {"noise": float("nan")}])
def test_wrong_settings(setting):
    with pytest.raises(ConfigError):
        complete_table(wide(measurements()[0]), **setting)


def test_no_iterations_fill_with_means():
    table, hidden = measurements(rows=20)
    values = np.where(hidden, np.nan, table)
    result = complete_table(wide(values), iterations=0)
    means = np.broadcast_to(np.nanmean(values, axis=0), table.shape)
    np.testing.assert_allclose(result.values[hidden], means[hidden])


# Reading plain tables -----------------------------------------------------------


def read(tmp_path, text, name="t.csv", encoding="utf-8", **options):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_table(path, TableOptions(**options))


def test_reads_csv_with_blanks(tmp_path):
    table = read(tmp_path, "name,a,b\nx,1,\ny, NA ,2.5\n\nz,-3e2,n/a\n")
    assert table.names == ("a", "b")
    assert table.label_names == ("name",)
    assert list(table.labels[0]) == ["x", "y", "z"]
    np.testing.assert_array_equal(table.values, [[1, np.nan], [np.nan, 2.5], [-300, np.nan]])
    assert table.lines.tolist() == [2, 3, 5]


def test_zero_is_no_blank(tmp_path):
    assert read(tmp_path, "a,b\n0,1\n2,0\n").counts.tolist() == [2, 2]


@pytest.mark.parametrize(("name", "sign"), [("t.tsv", "\t"), ("t.csv", ";"), ("t.txt", "|")])
def test_separators_and_decimal_comma(tmp_path, name, sign):
    table = read(tmp_path, f"a{sign}b\n1,5{sign}2\n{sign}3\n", name)
    np.testing.assert_array_equal(table.values, [[1.5, 2], [np.nan, 3]])


def test_latin_1_names(tmp_path):
    assert read(tmp_path, "Größe,b\n1,2\n3,4\n", encoding="latin-1").names == ("Größe", "b")


def test_text_in_the_first_column_is_a_label(tmp_path):
    table = read(tmp_path, "station,a,b\nN1,1,2\nN2,,4\n")
    assert table.label_names == ("station",)
    assert any("station" in text for text in table.notes)


def test_numeric_id_column(tmp_path):
    assert read(tmp_path, "ID,a,b\n1,1,2\n2,,4\n").label_names == ("ID",)
    table = read(tmp_path, "a,year,b\n1,2001,2\n2,2002,4\n", id_columns=("year",))
    assert table.names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b\n1,2\n3,x1\n", ["t.csv", "line 3", "'b'", "'x1'"]),
        ("a,b\n1,2\n3,inf\n", ["line 3", "'b'", "'inf'"]),
        ("a,b\n1,2\n3,1_000\n", ["line 3", "'b'"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells"]),
        ("a,a\n1,2\n", ["line 1", "two columns named 'a'"]),
        ("a,,b\n1,2,3\n", ["line 1", "no name for column 2"]),
        ("1,2\n3,4\n", ["line 1", "header"]),
        ("a,b\n", ["no rows"]),
        ("abc\n1\n", ["one column"]),
        ("id,a\nx,1\ny,2\n", ["at least two"]),
    ],
)
def test_errors_name_the_place(tmp_path, text, parts):
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    for part in parts:
        assert part in str(caught.value)


def test_unknown_label_column(tmp_path):
    with pytest.raises(ConfigError, match="the columns are a, b"):
        read(tmp_path, "a,b\n1,2\n", id_columns=("c",))


def test_parquet_and_back(tmp_path):
    import pyarrow

    table = pyarrow.table({"id": ["x", "y", "z"], "a": [1.5, None, 2.0], "b": [3, 4, None]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(found.values, [[1.5, 3], [np.nan, 4], [2, np.nan]])
    files = write_completed(complete_table(found, sd=True), tmp_path / "o.parquet")
    back = pyarrow.parquet.read_table(files[0])
    assert back.column_names == ["id", "a", "b"]
    assert back["id"].to_pylist() == ["x", "y", "z"]
    assert back["a"].to_pylist()[0] == 1.5
    assert not back["a"].null_count
    pyarrow.parquet.write_table(
        pyarrow.table({"a": [1.0], "b": ["x"], "c": [2.0]}), tmp_path / "u.parquet"
    )
    with pytest.raises(DataError, match="'b' holds string"):
        read_table(tmp_path / "u.parquet")
    (tmp_path / "v.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="no readable parquet"):
        read_table(tmp_path / "v.parquet")


def test_written_csv_keeps_given_entries_exactly(tmp_path):
    text = "id,a,=b\nx,1.23456789012,\ny,,2\nz,3,4\n"
    result = complete_table(read(tmp_path, text), sd=True)
    files = write_completed(result, tmp_path / "o.csv")
    assert [file.name for file in files] == ["o.csv", "o.sd.csv"]
    table = rows_of(files[0])
    assert table[0] == ["id", "a", "'=b"]
    assert table[1][:2] == ["x", "1.23456789012"]
    assert rows_of(files[1])[1][1] == "0"
