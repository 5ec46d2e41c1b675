"""Indexing by latent Dirichlet allocation (Wang, Lee and Choi 2016): each word as a distribution over topics.

With phi[k, j] = P(word j | topic k), W[k, j] = phi[k, j] / sum_k' phi[k', j] is the distribution of topics that
word j stands for, no topic favoured beforehand. A text is W f with f its counts; cosine. Neither documents'
mixtures nor folding-in is used.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from genm._math import lda_gibbs
from genm.cache import Arrays
from genm.errors import InputError
from genm.progress import Progress
from genm.rankers._base import Array, Ranker, check_sizes, cosines, in_threads
from genm.rankers.text import Texts


class LdiRanker(Ranker):
    """Topics by collapsed Gibbs sampling, several numbers of them averaged (the paper's LDI).

    `alpha` and `eta` are the symmetric priors of topics in documents and of words in topics, held fixed.
    """

    name: ClassVar[str] = "ldi"

    def __init__(
        self,
        *,
        n_topics: tuple[int, ...] = (50, 100, 150, 200, 300),
        n_sweeps: int = 100,
        alpha: float = 0.1,
        eta: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.n_topics, self.n_sweeps, self.alpha, self.eta, self.seed = n_topics, n_sweeps, alpha, eta, seed

    def _check(self) -> None:
        check_sizes(self.name, "n_topics", self.n_topics)
        check_sizes(self.name, "n_sweeps", [self.n_sweeps])
        for option in ("alpha", "eta"):
            if not getattr(self, option) > 0:
                raise InputError(f"ldi: expected {option} above 0; found {getattr(self, option)}.")

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        fit = partial(
            sample_topics,
            documents.counts,
            n_sweeps=self.n_sweeps,
            alpha=self.alpha,
            eta=self.eta,
            seed=self.seed,
        )
        found = in_threads(fit, self.n_topics, self.name, progress)
        return {f"topics{k}": topics_of_words(phi) for k, phi in zip(self.n_topics, found, strict=True)}

    def _score(self, queries: Texts) -> Array:
        total = np.zeros((len(queries.raw), len(self.documents_.raw)))
        for k in self.n_topics:
            words = self.learned_[f"topics{k}"]
            total += cosines(queries.counts @ words, self.documents_.counts @ words)
        return total / len(self.n_topics)


def topics_of_words(phi: Array) -> Array:
    """Return W transposed, a row per word, from phi (topics, words): phi normalised over the topics."""
    return np.ascontiguousarray((phi / phi.sum(axis=0)).T) if phi.shape[1] else np.zeros(phi.shape[::-1])


def sample_topics(counts: csr_array, n_topics: int, *, n_sweeps: int, alpha: float, eta: float, seed: int) -> Array:
    """Return phi (topics, words) of the last sample of one chain; it depends on the seed and `n_topics` alone."""
    generator = np.random.default_rng([seed, n_topics])
    words = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(np.int32)
    starts = np.zeros(counts.shape[0] + 1, np.int64)
    starts[1:] = np.cumsum(counts.sum(axis=1))
    topic = generator.integers(0, n_topics, len(words), dtype=np.int32)
    of_docs, of_words, total = lda_gibbs.count_topics(starts, words, topic, counts.shape[1], n_topics)
    for _ in range(n_sweeps):
        draws = generator.random(len(words), dtype=np.float32)
        lda_gibbs.sweep(starts, words, topic, of_docs, of_words, total, draws, n_topics, alpha, eta)
    smoothed = of_words[:, :n_topics].T.astype(np.float64) + eta
    phi: Array = smoothed / smoothed.sum(axis=1, keepdims=True)
    return phi
