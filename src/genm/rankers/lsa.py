"""Latent semantic analysis: cosine in the space of the first singular vectors of the weighted counts."""

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import eigh, qr, svd
from scipy.sparse import csr_array

from genm._typing import Floats
from genm.cache import Arrays
from genm.progress import Progress
from genm.rankers.base import Ranker, check_choice, check_sizes, cosines, inverse, scale_columns
from genm.rankers.text import Texts
from genm.rankers.tfidf import entropy_weights, inverse_document_frequency, local_weights

Weighting = Literal["log-entropy", "log-idf", "tf-idf"]

_WEIGHTINGS = ("log-entropy", "log-idf", "tf-idf")


class LsaRanker(Ranker):
    """Cosine of documents (U S = A V) with queries (q V), over several numbers of factors (the paper's LSA).

    One decomposition with the largest number serves all: the first k columns are the one with k factors. A
    number above the rank of the collection is cut to it.
    """

    name: ClassVar[str] = "lsa"

    def __init__(
        self, *, n_factors: tuple[int, ...] = (50, 100, 200, 400), weighting: Weighting = "log-idf", seed: int = 0
    ) -> None:
        self.n_factors, self.weighting, self.seed = n_factors, weighting, seed

    def _check(self) -> None:
        check_sizes(self.name, "n_factors", self.n_factors)
        check_choice(self.name, "weighting", self.weighting, _WEIGHTINGS)

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        progress(self.name, 0, 1)
        weights = self._global_weights(documents.counts)
        weighted = self._weighted(documents.counts, weights)
        _, _, right = truncated_svd(weighted, max(self.n_factors), self.seed)
        progress(self.name, 1, 1)
        return {"weights": weights, "terms": np.ascontiguousarray(right.T)}

    def _score(self, queries: Texts) -> Floats:
        asked, held = (self._weighted(t.counts, self.learned_["weights"]) for t in (queries, self.documents_))
        # A V = U S: documents scaled by the singular values; an empty text comes out as exact zeros
        projected, documents = asked @ self.learned_["terms"], held @ self.learned_["terms"]
        total = np.zeros((len(queries.raw), len(documents)))
        for k in self.n_factors:
            total += cosines(_without_noise(projected[:, :k], asked), _without_noise(documents[:, :k], held))
        return total / len(self.n_factors)

    def _global_weights(self, counts: csr_array) -> Floats:
        if self.weighting == "log-entropy":
            return entropy_weights(counts)
        return inverse_document_frequency(counts, "plain")

    def _weighted(self, counts: csr_array, weights: Floats) -> csr_array:
        return scale_columns(local_weights(counts, "raw" if self.weighting == "tf-idf" else "log"), weights)


def _without_noise(projected: Floats, rows: csr_array) -> Floats:
    """Return the projections, zero where only rounding is left of a text that the factors do not reach."""
    reached = (projected * projected).sum(axis=1)
    whole = np.asarray((rows * rows).sum(axis=1)).ravel()
    return np.where((reached > 1e-20 * whole)[:, None], projected, 0.0)


def truncated_svd(
    rows: csr_array, k: int, seed: int, *, n_passes: int = 4, n_extra: int = 10
) -> tuple[Floats, Floats, Floats]:
    """Return the first k singular triplets: rows ~ left * values @ right.

    Small matrices are decomposed whole. Large ones go through a random subspace refined by power passes (Halko,
    Martinsson and Tropp 2011); triplets of value 0 are left out, so fewer than k may come back.
    """
    if 0 in rows.shape:
        return np.zeros((rows.shape[0], 0)), np.zeros(0), np.zeros((0, rows.shape[1]))
    size = k + n_extra
    if min(rows.shape) <= size:
        left, values, right = svd(rows.toarray(), full_matrices=False)
    else:
        columns = rows.T.tocsr()
        basis = qr(rows @ np.random.default_rng(seed).standard_normal((rows.shape[1], size)), mode="economic")[0]
        for _ in range(n_passes):
            basis = qr(rows @ (columns @ basis), mode="economic")[0]
        small = columns @ basis
        squares, turn = eigh(small.T @ small)  # far cheaper than the SVD of `small`; the least values lose digits
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        left, right = basis @ turn[:, ::-1], (small @ turn[:, ::-1] * inverse(values)).T
    k = min(k, int((values > values[0] * 1e-7).sum()))
    return left[:, :k], values[:k], right[:k]
