"""A file of arrays with a description, safe to read from anyone.

An uncompressed zip of ``.npy`` arrays, which ``numpy.load`` reads too. ``header``
holds JSON as bytes: the caller's description, and the type, shape and sha256 of
every other array; ``header_sha256`` is the header's own hash. A file is read only
as far as it is exactly what this module writes: no pickle, no compression, sizes
checked against the file's before memory is taken. The hashes find damage; they
are no proof of who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import warnings
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from gmc_core.base.errors import ModelFileError, brief
from gmc_core.base.files import replacing

Arrays = dict[str, np.ndarray]

DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1")
_HEADER, _HEADER_HASH = "header", "header_sha256"
_CHUNK = 1 << 24


def write(
    path: Path,
    format: str,
    version: int,
    header: dict[str, Any],
    arrays: Arrays,
    *,
    durable: bool = True,
) -> None:
    """Write a file completely or not at all, through a temporary one beside it.

    durable : also survive a power failure, see :func:`gmc_core.base.files.replacing`.

    Raises
    ------
    ModelFileError
        If the file cannot be written.
    """
    arrays = {name: little_endian(array) for name, array in arrays.items()}
    try:
        with replacing(path, durable=durable) as file:
            _write_zip(file, arrays, {"format": format, "format_version": version, **header})
    except OSError as error:
        raise ModelFileError(
            f"{path}: cannot be written ({error.strerror or error}). Choose another folder, or "
            "make room on the disk."
        ) from error


def read(path: Path, format: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file that :func:`write` wrote.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, foreign or of a newer version.
        The text does not name the file.
    """
    try:
        with path.open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, format, version)
    except OSError as error:
        raise ModelFileError(f"{error.strerror or error}. Check the path.") from error
    except (
        zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OverflowError,
        struct.error, zlib.error, LookupError,
    ) as error:  # fmt: skip
        raise ModelFileError(
            f"This is no model file, or a damaged one ({brief(error)}). Save the model again."
        ) from error


def little_endian(array: np.ndarray) -> np.ndarray:
    """The array in C order and with little-endian bytes."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _sha256(array: np.ndarray) -> str:
    return hashlib.sha256(_bytes(array)).hexdigest()


def _write_zip(file: IO[bytes], arrays: Arrays, content: dict[str, Any]) -> None:
    """The arrays, hashed by another thread meanwhile, and then the header."""
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        hashes = {name: beside.submit(_sha256, array) for name, array in arrays.items()}

        def add(name: str, array: np.ndarray) -> None:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)

        for name, array in arrays.items():
            add(name, array)
        described = {
            name: {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashes[name].result(),
            }
            for name, array in arrays.items()
        }
        text = json.dumps(
            {**content, "arrays": described}, ensure_ascii=False, allow_nan=False
        ).encode()
        add(_HEADER, np.frombuffer(text, np.uint8))
        add(_HEADER_HASH, np.frombuffer(hashlib.sha256(text).digest(), np.uint8))


def _read(
    file: IO[bytes], file_size: int, format: str, version: int
) -> tuple[dict[str, Any], Arrays]:
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if len(members) != len(archive.infolist()):
            raise ModelFileError("This is no model file: it has two parts of one name.")
        total = sum(info.file_size for info in members.values())
        stored = all(info.compress_type == zipfile.ZIP_STORED for info in members.values())
        if f"{_HEADER}.npy" not in members or not stored or total > file_size:
            raise ModelFileError(
                "This is no model file of this program. gmc fit --model-out writes one."
            )
        text = _array(archive, _HEADER, members).tobytes()
        header = _header(text, format, version)
        if _array(archive, _HEADER_HASH, members).tobytes() != hashlib.sha256(text).digest():
            raise ModelFileError(
                "The description of this model was damaged or changed after it was written. "
                "Save the model again."
            )
        described = header["arrays"]
        expected = {f"{name}.npy" for name in (*described, _HEADER, _HEADER_HASH)}
        if set(members) != expected:
            odd = ", ".join(sorted(set(members) ^ expected)[:3])
            raise ModelFileError(
                f"The parts of this model are not those it was saved with ({odd}). Save it again."
            )
        arrays = {}
        for name, entry in described.items():
            array = _array(archive, name, members)
            same = array.dtype.str == entry["dtype"] and list(array.shape) == entry["shape"]
            if not same or _sha256(array) != entry["sha256"]:
                raise ModelFileError(
                    f"The part {name!r} of this model was damaged or changed after it was "
                    "written. Save the model again."
                )
            arrays[name] = array
    return header, arrays


def _header(text: bytes, format: str, version: int) -> dict[str, Any]:
    """Parse the header; the version is looked at before anything else is expected."""
    try:
        header = json.loads(text)
        if header["format"] != format:
            raise ValueError("it names another format")
        found = int(header["format_version"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ModelFileError(
            f"This is no model file of this program ({brief(error)}). gmc fit --model-out writes "
            "one."
        ) from error
    if found > version:
        raise ModelFileError(
            f"This model has format {found}, from a newer version of this program "
            f"({header.get('package_version')}); this version reads up to format {version}. "
            "Update the program."
        )
    return header


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order (whether Fortran's) and type at the start of an .npy file.

    Raises
    ------
    ValueError
        If it is none. numpy parses the header as Python text, and raises more kinds.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd header is read or refused, without remarks
            major = npy.read_magic(file)[0]
            read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except Exception as error:
        raise ValueError(brief(error)) from error
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype


def _array(archive: zipfile.ZipFile, name: str, members: dict[str, zipfile.ZipInfo]) -> np.ndarray:
    """One member. Memory is taken only for as many bytes as the file holds."""
    info = members.get(f"{name}.npy")
    if info is None:
        raise ModelFileError(f"The part {name!r} of this model is missing. Save it again.")
    with archive.open(info) as member:
        try:
            shape, fortran, dtype = npy_header(member)
        except ValueError as error:
            raise ModelFileError(
                f"The part {name!r} of this model is no array ({error}). Save it again."
            ) from error
        if dtype.str not in DTYPES or fortran:
            # Objects would need pickle, which can run code: never read.
            raise ModelFileError(
                f"The part {name!r} of this file has the type {str(dtype)[:40]}, which no model of "
                "this program has. Use only files from gmc fit --model-out."
            )
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise ModelFileError(
                f"The part {name!r} of this model is shorter or longer than it says. Save it again."
            )
        array = np.empty(shape, dtype)
        into = _bytes(array)
        done = 0
        while done < len(into):
            chunk = member.read(min(_CHUNK, len(into) - done))
            if not chunk:
                raise EOFError("it ends too early")
            into[done : done + len(chunk)] = chunk
            done += len(chunk)
        # The zip's own checksum is compared when the end is reached.
        member.read(1)
    return array
