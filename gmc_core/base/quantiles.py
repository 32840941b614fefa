"""Quantiles of distributions, without scipy.stats: that takes as long to import as NumPy, pandas
and the rest of SciPy that is used here together."""

from __future__ import annotations

from scipy.special import stdtrit


def student_quantile(probability: float, degrees: float) -> float:
    """The value that Student's t with so many degrees of freedom stays below with a probability."""
    return float(stdtrit(degrees, probability))
