"""The vector space model: weights of terms, local and global, and the cosine of weighted term counts."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from genm._math.elementary import logarithms
from genm._typing import Floats
from genm.cache import Arrays
from genm.progress import Progress
from genm.rankers.base import Ranker, check_choice, scale_columns, unit_rows_sparse
from genm.rankers.text import Texts

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


def inverse_document_frequency(counts: csr_array, idf: Idf) -> Floats:
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


def entropy_weights(counts: csr_array) -> Floats:
    """Return 1 + sum_d p ln p / ln n with p the share of the term's occurrences that text d holds (Dumais 1991).

    0 for a term spread evenly over all texts, 1 for a term that one text holds alone.
    """
    n = counts.shape[0]
    if n < 2:
        return np.ones(counts.shape[1])
    total = np.bincount(counts.indices, weights=counts.data, minlength=counts.shape[1])
    p = counts.data / total[counts.indices]
    spread = np.bincount(counts.indices, weights=p * logarithms(p), minlength=counts.shape[1])
    weights: Floats = 1.0 + spread / logarithms(n)
    return weights


class TfidfRanker(Ranker):
    """Cosine of tf x idf vectors (the paper's TFIDF)."""

    name: ClassVar[str] = "tfidf"

    def __init__(self, *, tf: Tf = "raw", idf: Idf = "plain") -> None:
        self.tf, self.idf = tf, idf

    def _check(self) -> None:
        check_choice(self.name, "tf", self.tf, TF)
        check_choice(self.name, "idf", self.idf, IDF)

    def _worth_keeping(self) -> bool:
        return False  # a pass over the counts, quicker than reading it back

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        progress(self.name, 1, 1)
        return {"idf": inverse_document_frequency(documents.counts, self.idf)}

    def _score(self, queries: Texts) -> Floats:
        weights = self.learned_["idf"]
        rows = [
            unit_rows_sparse(scale_columns(local_weights(t.counts, self.tf), weights))
            for t in (queries, self.documents_)
        ]
        scores: Floats = (rows[0] @ rows[1].T).toarray()
        return scores
