"""Weights of terms: how much an occurrence in a text counts (local), how much a term counts at all (global)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from genm._math.elementary import logarithms

Array = NDArray[np.float64]
Tf = Literal["raw", "log"]
Idf = Literal["plain", "smooth", "probabilistic", "none"]

TF: tuple[Tf, ...] = ("raw", "log")
IDF: tuple[Idf, ...] = ("plain", "smooth", "probabilistic", "none")


def local_weights(counts: csr_array, tf: Tf) -> csr_array:
    """Return tf ("raw") or 1 + ln tf ("log") of every cell."""
    weighted = counts.copy()
    if tf == "log":
        weighted.data = 1.0 + logarithms(weighted.data)
    return weighted


def document_frequency(counts: csr_array) -> NDArray[np.int64]:
    """Return in how many texts each term occurs."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def inverse_document_frequency(counts: csr_array, idf: Idf) -> Array:
    """Return the global weight of every term; n texts, df of them with the term.

    plain: ln(n / df); smooth: 1 + ln((1 + n) / (1 + df)); probabilistic: ln(1 + (n - df + 1/2) / (df + 1/2));
    none: 1. A term that no text holds gets 0.
    """
    n, df = counts.shape[0], document_frequency(counts)
    held = np.maximum(df, 1)
    if idf == "plain":
        weights = logarithms(n / held)
    elif idf == "smooth":
        weights = 1.0 + logarithms((1 + n) / (1 + held))
    elif idf == "probabilistic":
        weights = logarithms(1.0 + (n - held + 0.5) / (held + 0.5))
    else:
        weights = np.ones(len(df))
    return np.where(df > 0, weights, 0.0)


def entropy_weights(counts: csr_array) -> Array:
    """Return 1 + sum_d p ln p / ln n with p the share of the term's occurrences that text d holds (Dumais 1991).

    0 for a term spread evenly over all texts, 1 for a term that one text holds alone.
    """
    n = counts.shape[0]
    if n < 2:
        return np.ones(counts.shape[1])
    total = np.bincount(counts.indices, weights=counts.data, minlength=counts.shape[1])
    p = counts.data / total[counts.indices]
    spread = np.bincount(counts.indices, weights=p * logarithms(p), minlength=counts.shape[1])
    weights: Array = 1.0 + spread / logarithms(n)
    return weights
