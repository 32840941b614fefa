"""Small files in the true layout of each format, for the tests of the readers."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

ML1M = {
    "ratings.dat": b"1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n"
    b"3::30::1::978300275\n3::10::2::978824291\n",
    # "Mis\xe9rables" is Latin-1; a title may hold a colon.
    "movies.dat": b"10::Mis\xe9rables, Les (1995)::Drama|Musical\n"
    b"20::Star Wars: Episode IV - A New Hope (1977)::Action|Sci-Fi\n"
    b"30::Toy Story (1995)::Animation|Children's|Comedy\n"
    b"40::Never Rated (1999)::Drama\n",
    "users.dat": b"1::F::1::10::48067\n2::M::56::16::02139\n3::M::25::15::55117\n",
}
ML10M = {
    "ratings.dat": b"1::122::5::838985046\n1::185::4.5::838983525\n2::122::0.5::868245777\n",
    "movies.dat": "122::Amélie (2001)::Comedy\n185::Net, The (1995)::Action\n".encode(),
    "tags.dat": b"15::4973::excellent!::1215184630\n",
}
ML100K = {
    "u.data": b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n",
    "u.item": b"242|Kolya (1996)|24-Jan-1997||http://us.imdb.com/M/title-exact?Kolya%20(1996)"
    b"|0|0|0|0|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n"
    b"302|L\xe9on|01-Jan-1994||http://us.imdb.com/|0|1|0|0|0|0|1|0|0|0|0|0|0|0|0|0|0|0|0\n",
    "u.user": b"186|39|F|executive|00000\n196|49|M|writer|55105\n",
}
ML_CSV = {
    "ratings.csv": b"userId,movieId,rating,timestamp\r\n1,31,2.5,1260759144\r\n"
    b"1,1029,3.0,1260759179\r\n7,31,0.5,851868750\r\n",
    "movies.csv": b"movieId,title,genres\r\n"
    b'31,"American President, The (1995)",Comedy|Drama|Romance\r\n'
    b"1029,Nothing Known,(no genres listed)\r\n",
}
EACHMOVIE = {
    "vote.txt": b"1\t1\t0.6\t1\t\n1\t2\t0\t1\t\n1\t3\t0\t0.5\t\n2\t1\t1\t1\t\n2\t3\t.2\t1\t\n",
    "movie.txt": b"1\tToy Story\t\t\tOld\t11/22/95\t\t\t0\t1\t0\t0\t1\t0\t1\t0\t0\t0\n"
    b"2\tCaf\xe9\t\t\tOld\t1996-03-01\t\t\t0\t0\t1\t0\t0\t1\t0\t0\t0\t0\n"
    b"3\tUndated\t\t\t\t\t\t\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1\n",
    "person.txt": b"1\t34\tM\t02139\n2\t\tF\t\n",
}
JESTER = b"3,-7.82,99,8.79,99,-9.66\n5,4.08,-0.29,6.36,4.37,-2.38\n1,99,99,99,99,10\n"
JESTER_DAT = b"1\t\t5\t\t0.219\n1\t\t7\t\t-9.281\n2\t\t5\t\t99\n22\t\t7\t\t10.00\n"
NETFLIX = {
    "mv_0000001.txt": b"1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n",
    "mv_0000002.txt": b"2:\n822109,2,2005-05-14\n822109,4,2004-05-14\n",
    # A title may hold a comma and is Latin-1; a year may be missing.
    "movie_titles.txt": b"1,2003,Dinosaur Planet\n2,NULL,Isle, of L\xe9on\n3,1999,Unrated\n",
    "probe.txt": b"1:\n1488844\n822109\n",
}
MATRIX_MARKET = (
    b"%%MatrixMarket matrix coordinate real general\n% users by movies\n3 4 4\n"
    b"1 1 4\n1 4 3.5\n2  1 1\n3 2 5e0\n"
)


def folder(path: Path, files: dict[str, bytes]) -> Path:
    """Write the files into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


def zipped(path: Path, files: dict[str, bytes], inside: str = "") -> Path:
    """Write the files into a zip, under the folder ``inside``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(inside + name, data)
    return path


def text_file(path: Path, text: str | bytes, name: str = "mine.csv") -> Path:
    """Write one text file into a folder of its own."""
    path.mkdir(parents=True, exist_ok=True)
    place = path / name
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def cells(ratings) -> dict[tuple[object, object], float]:
    """(user id, item id) → rating."""
    users = ratings.users.ids[ratings.rows].tolist()
    items = ratings.items.ids[ratings.indices].tolist()
    return dict(zip(zip(users, items, strict=True), ratings.values.tolist(), strict=True))


def real_data(name: str) -> Path:
    """A file of the real data, or a skip with the reason."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("GMC_REALDATA", default)) / name
    if not path.exists():
        pytest.skip(f"{name} may not be shipped; set GMC_REALDATA to a folder that holds it")
    return path


def same_ratings(found, expected) -> None:
    """Assert that two tables of ratings agree in everything, also in the types of arrays."""
    for field in ("indptr", "indices", "values", "times", "folds"):
        one, other = getattr(found, field), getattr(expected, field)
        assert (one is None) == (other is None), field
        if one is not None:
            assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), field
    for kind in ("users", "items"):
        one, other = getattr(found, kind).ids, getattr(expected, kind).ids
        assert one.dtype == other.dtype and one.tolist() == other.tolist(), kind
    assert found.item_info.titles == expected.item_info.titles
    assert found.item_info.genres == expected.item_info.genres
    assert found.item_info.years.tobytes() == expected.item_info.years.tobytes()
    for field in ("name", "licence", "citation"):
        assert getattr(found, field) == getattr(expected, field), field
    assert repr(found.scale) == repr(expected.scale)  # 5 is another end than 5.0 to a hash
    assert found.sha256 == expected.sha256
