"""Small pictures of Σ that a run keeps of every iteration.

Items in some order are cut into B bins of equal size; a pixel is the mean of Σ, or of
the correlation, over two bins. All orders share one pass over Σ, so that pictures cost
about a hundredth of an iteration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg
from numba import njit

from gmc_core import former
from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.linalg.threads import ThreadPool, blas_threads, spans
from gmc_core.gaussian.linalg.vectors import fma, load, splat, store
from gmc_core.gaussian.linalg.vectors import lanes as lanes_of
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.item_orders import ordered

Kind = Literal["covariance", "correlation"]
Matrix = npt.NDArray[np.float32]
Orders = Mapping[str, npt.NDArray[np.int64]]

BINS = 250
MAX_BINS = 500
SPECTRUM = 10
_BLOCK = SPECTRUM + 4  # the last Ritz values of a block are the poorest


@dataclass(frozen=True, eq=False)
class Picture:
    """What is kept of (μ, Σ) at one iteration.

    covariance, correlation : order → (B, B) means over pairs of bins, B ≤ 500; NaN
        correlation where a variance is 0. Rounded to half precision in a file.
    order_items : order → (N,) item positions as shown; bin b holds those from
        ``bin_starts[b]`` up to the next.
    mean, variances : (N,) μ and the diagonal of Σ, by item position.
    spectrum : the leading eigenvalues of Σ, falling; lower bounds that tighten
        from iteration to iteration.
    """

    covariance: dict[str, Matrix]
    correlation: dict[str, Matrix]
    order_items: dict[str, npt.NDArray[np.int64]]
    bin_starts: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float32]
    variances: npt.NDArray[np.float32]
    spectrum: npt.NDArray[np.float64]

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders that there are: "popularity", …, or only "index"."""
        return tuple(self.covariance)

    def matrix(self, kind: Kind, order: str) -> Matrix:
        """(n, n) means over the n × n bins of the picture of one kind in one order."""
        return (self.correlation if kind == "correlation" else self.covariance)[order]

    def save(self, file: Any) -> None:
        """Write as npz. Symmetric pictures: half of each, in half precision."""
        upper = np.triu_indices(len(self.bin_starts))
        arrays: dict[str, Any] = {
            "bin_starts": self.bin_starts,
            "mean": self.mean,
            "variances": self.variances,
            "spectrum": self.spectrum,
            "orders": np.array(json.dumps(list(self.orders))),
        }
        for index, order in enumerate(self.orders):
            covariance = self.covariance[order][upper]
            scale = np.float32(np.abs(covariance).max(initial=0.0) or 1.0)
            arrays[f"covariance{index}"] = (covariance / scale).astype(np.float16)
            arrays[f"scale{index}"] = scale
            arrays[f"correlation{index}"] = self.correlation[order][upper].astype(np.float16)
            arrays[f"items{index}"] = self.order_items[order].astype(np.int32)
        np.savez(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> Picture:
        """Read what :meth:`save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            orders = json.loads(str(file["orders"]))
            bins = len(file["bin_starts"])
            upper = np.triu_indices(bins)

            def square(values: npt.NDArray[Any], scale: float = 1.0) -> Matrix:
                matrix = np.zeros((bins, bins), np.float32)
                matrix[upper] = values.astype(np.float32) * np.float32(scale)
                matrix.T[upper] = matrix[upper]
                return matrix

            return cls(
                covariance={
                    order: square(file[f"covariance{i}"], float(file[f"scale{i}"]))
                    for i, order in enumerate(orders)
                },
                correlation={
                    order: square(file[f"correlation{i}"]) for i, order in enumerate(orders)
                },
                order_items={
                    order: file[f"items{i}"].astype(np.int64) for i, order in enumerate(orders)
                },
                bin_starts=file["bin_starts"],
                mean=file["mean"],
                variances=file["variances"],
                spectrum=file["spectrum"],
            )


def picture_orders(model: GaussianModel) -> dict[str, npt.NDArray[np.int64]]:
    """Order → (N,) positions of the items in it; these depend on the data only, not on Σ."""
    if model.layout.kind != "rows":
        return {"index": np.arange(model.layout.dimension)}
    return {
        "popularity": ordered(model, "popularity"),
        "genre": ordered(model, "genre"),
        "year": ordered(model, "year"),
        "title": ordered(model, "title"),
    }


class HeatmapBinner:
    """Makes the pictures of successive iterations of one fit.

    Parameters
    ----------
    orders : name → permutation of the N coordinates, see :func:`picture_orders`.
    bins : pixels a side, 1..500; N if that is fewer.
    team : threads; it should not be one that is cancelled.
    """

    def __init__(self, orders: Orders, bins: int = BINS, team: ThreadPool | None = None) -> None:
        if not 1 <= bins <= MAX_BINS:
            raise ConfigError(f"A picture has 1 to {MAX_BINS} bins a side, not {bins}.")
        self.orders = {name: np.asarray(items, np.int64) for name, items in orders.items()}
        self.team = team or ThreadPool()
        size = len(next(iter(self.orders.values())))
        self.bins = min(bins, size)
        self.starts = np.arange(self.bins) * size // self.bins
        self.lengths = np.diff(np.append(self.starts, size))
        self._vectors: npt.NDArray[np.floating] | None = None

    def binned(self, gaussian: Gaussian) -> Picture:
        """The picture of (μ, Σ)."""
        covariance = gaussian.covariance
        variances = covariance.diagonal()
        with np.errstate(divide="ignore"):
            inverse_sd = np.where(variances > 0, 1 / np.sqrt(variances), np.nan)
        if isinstance(covariance, FactoredCovariance):
            sums = self._factored(covariance, inverse_sd)
        else:
            sums = self._dense(covariance, inverse_sd)
        means = (sums / np.outer(self.lengths, self.lengths)).astype(np.float32)
        return Picture(
            covariance={name: means[2 * i] for i, name in enumerate(self.orders)},
            correlation={name: means[2 * i + 1] for i, name in enumerate(self.orders)},
            order_items=self.orders,
            bin_starts=self.starts,
            mean=gaussian.mean.astype(np.float32),
            variances=variances.astype(np.float32),
            spectrum=self._spectrum(covariance),
        )

    def _dense(
        self, covariance: DenseCovariance, inverse_sd: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """(2 orders, B, B) sums, covariance and correlation in turn."""
        matrix = covariance.matrix
        size, flat = len(matrix), matrix.reshape(-1)
        weights = inverse_sd.astype(matrix.dtype)
        lanes = lanes_of(matrix.dtype.itemsize)
        starts = np.append(self.starts, size)
        items = list(self.orders.values())
        out = np.zeros((2 * len(items), self.bins, self.bins))

        def rows(piece: tuple[int, tuple[int, int]], sums: npt.NDArray[np.floating]) -> None:
            order, span = piece
            _pool(*span, flat, weights, items[order], starts, lanes, sums, *out[2 * order :][:2])

        # Only the upper triangle is summed: the first bins take longest, small pieces balance it.
        pieces = [(order, span) for span in spans(self.bins, 16) for order in range(len(items))]
        self.team.run(rows, pieces, lambda: np.empty((2, size), matrix.dtype))
        return out

    def _factored(
        self, covariance: FactoredCovariance, inverse_sd: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """The same of Σ = X Xᵀ + ε Id: pool the rows of X, then multiply."""
        factor = covariance.factor
        sums = []
        with self.team.whole():
            for items in self.orders.values():
                for scale in (np.ones(len(items)), inverse_sd[items]):
                    rows = factor[items] * scale[:, None].astype(factor.dtype)
                    pooled = np.add.reduceat(rows, self.starts, axis=0)
                    total = (pooled @ pooled.T).astype(np.float64)
                    diagonal = np.add.reduceat(scale**2, self.starts)
                    total[np.diag_indices(self.bins)] += covariance.epsilon * diagonal
                    sums.append(total)
        return np.array(sums)

    def _times(
        self,
        covariance: DenseCovariance | FactoredCovariance,
        vectors: npt.NDArray[np.floating],
    ) -> npt.NDArray[np.floating]:
        """Σ vectors; a dense Σ in blocks of rows, by all threads."""
        if isinstance(covariance, FactoredCovariance):
            with self.team.whole():
                return covariance.dot(vectors)
        matrix = covariance.matrix
        image = np.empty_like(vectors)

        def rows(span: tuple[int, int], _: None) -> None:
            image[slice(*span)] = matrix[slice(*span)] @ vectors

        self.team.run(rows, spans(len(matrix), 256), lambda: None)
        return image

    def _spectrum(
        self, covariance: DenseCovariance | FactoredCovariance
    ) -> npt.NDArray[np.float64]:
        """Leading eigenvalues by subspace iteration, starting where the last one ended.

        Σ changes little between iterations, so one product with it is enough, and
        three the first time.
        """
        size = covariance.dimension
        block = min(_BLOCK, size)
        steps = 1
        if self._vectors is None:
            start = np.random.default_rng(0).standard_normal((size, block))
            self._vectors, steps = np.linalg.qr(start)[0].astype(covariance.dtype), 3
        values = np.zeros(block)
        for _ in range(steps):
            image = self._times(covariance, self._vectors)
            # For products this small, synchronising the threads costs more than it saves.
            with blas_threads(1):
                small = (self._vectors.T @ image).astype(np.float64)
                values, rotation = scipy.linalg.eigh((small + small.T) / 2)
                image = image @ rotation[:, ::-1].astype(covariance.dtype)
                self._vectors = np.linalg.qr(image)[0]
        return values[::-1][:SPECTRUM].copy()


def warm_up() -> None:
    """Load the compiled code (a quarter of a second), while data are being read, say."""
    for dtype in (np.float64, np.float32):
        sigma = DenseCovariance(np.eye(20, dtype=dtype))
        HeatmapBinner({"index": np.arange(20)}, team=ThreadPool(1)).binned(
            Gaussian(np.zeros(20), sigma)
        )


def picture(model: GaussianModel, bins: int = BINS) -> Picture:
    """The picture of a model."""
    return HeatmapBinner(picture_orders(model), bins).binned(model.gaussian)


@njit(nogil=True, cache=True)
def _pool(first, last, flat, weights, items, starts, lanes, sums, plain, scaled):  # type: ignore[no-untyped-def]
    """Rows first..last of the pooled Σ from the diagonal on, and their mirror image.

    The rows of Σ that belong to one bin are added from left to right, all at once:
    they are few, come from memory in order, and their sum stays in registers.

    flat : Σ as N² numbers. weights : (N,) 1/sd. items : (N,) in order. starts : (B + 1,).
    sums : (2, N) workspace.
    plain, scaled : (B, B) out: Σ over items of w_i Σ_ij w_j, with w = 1 and with 1/sd.
    """
    size = len(items)
    row, weighted = sums[0], sums[1]
    zero, one = splat(flat, flat.dtype.type(0)), splat(flat, flat.dtype.type(1))
    whole = size // (2 * lanes) * (2 * lanes)
    for b in range(first, last):
        for j in range(0, whole, 2 * lanes):
            p0, p1, s0, s1 = zero, zero, zero, zero
            for k in range(starts[b], starts[b + 1]):
                at = items[k] * size + j
                weight = splat(flat, weights[items[k]])
                x0, x1 = load(flat, at), load(flat, at + lanes)
                p0, p1 = fma(p0, one, x0), fma(p1, one, x1)
                s0, s1 = fma(s0, weight, x0), fma(s1, weight, x1)
            store(row, j, p0)
            store(row, j + lanes, p1)
            store(weighted, j, s0)
            store(weighted, j + lanes, s1)
        for j in range(whole, size):
            row[j] = weighted[j] = 0
            for k in range(starts[b], starts[b + 1]):
                value = flat[items[k] * size + j]
                row[j] += value
                weighted[j] += weights[items[k]] * value
        for c in range(b, len(starts) - 1):
            total, scaled_total = 0.0, 0.0
            for k in range(starts[c], starts[c + 1]):
                total += row[items[k]]
                scaled_total += np.float64(weighted[items[k]]) * weights[items[k]]
            plain[b, c], scaled[b, c] = total, scaled_total
            plain[c, b], scaled[c, b] = total, scaled_total


__getattr__ = former.renamed(__name__, Painter="HeatmapBinner")
