"""Indexing by latent Dirichlet allocation (Wang, Lee and Choi 2016): each word as a distribution over topics.

With phi[k, j] = P(word j | topic k), W[k, j] = phi[k, j] / sum_k' phi[k', j] is the distribution of topics that
word j stands for, no topic favoured beforehand. A text is W f with f its counts; cosine. Neither documents'
mixtures nor folding-in is used.
"""

import itertools
import operator
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from genm._math import topic_models
from genm._typing import Floats
from genm.cache import Arrays
from genm.errors import InputError
from genm.progress import Progress
from genm.rankers.base import Ranker, check_sizes, cosines, in_threads
from genm.rankers.text import Texts

Topics = NDArray[np.unsignedinteger]

SWEEPS_APART = 10
"""Sweeps between two samples of a chain."""


class LdiRanker(Ranker):
    """Topics by collapsed Gibbs sampling, averaged over numbers of topics, chains and samples (the paper's LDI).

    One sample of one chain is a draw from the posterior, and its AP varies with the seed. So `n_chains` run for
    each number of topics, and each gives `n_samples`, ten sweeps apart, the last at its end. `alpha` and `eta` are
    the symmetric priors of topics in documents and of words in topics, held fixed. Eight chains run together and
    take 32 bytes for each term and topic.
    """

    name: ClassVar[str] = "ldi"
    revision: ClassVar[int] = 2

    def __init__(
        self,
        *,
        n_topics: tuple[int, ...] = (50, 100, 150, 200, 300),
        n_chains: int = 32,
        n_sweeps: int = 40,
        n_samples: int = 3,
        alpha: float = 0.1,
        eta: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.n_topics, self.n_chains, self.n_sweeps, self.n_samples = n_topics, n_chains, n_sweeps, n_samples
        self.alpha, self.eta, self.seed = alpha, eta, seed

    def _check(self) -> None:
        check_sizes(self.name, "n_topics", self.n_topics)
        check_sizes(self.name, "n_chains", [self.n_chains])
        check_sizes(self.name, "n_sweeps", [self.n_sweeps])
        check_sizes(self.name, "n_samples", [self.n_samples])
        if self.n_samples > 1 + (self.n_sweeps - 1) // SWEEPS_APART:
            raise InputError(
                f"ldi: expected at most one sample in {SWEEPS_APART} sweeps; found {self.n_samples} samples in "
                f"{self.n_sweeps} sweeps. Raise n_sweeps, or take fewer samples."
            )
        for option in ("alpha", "eta"):
            if not getattr(self, option) > 0:
                raise InputError(f"ldi: expected {option} above 0; found {getattr(self, option)}.")

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        def sample(group: tuple[int, int]) -> Topics:
            return sample_topics(
                documents.counts,
                group[0],
                n_sweeps=self.n_sweeps,
                n_samples=self.n_samples,
                alpha=self.alpha,
                eta=self.eta,
                seed=(self.seed, *group),
            )

        n_groups = -(-self.n_chains // topic_models.N_CHAINS)
        groups = list(itertools.product(self.n_topics, range(n_groups)))
        found = iter(in_threads(sample, groups, self.name, progress, cost=operator.itemgetter(0)))
        most = self.n_chains * self.n_samples
        return {f"topics{k}": np.concatenate([next(found) for _ in range(n_groups)])[:most] for k in self.n_topics}

    def _score(self, queries: Texts) -> Floats:
        total = np.zeros((len(queries.raw), len(self.documents_.raw)))
        n_models = 0
        for words in self._models():
            total += cosines(queries.counts @ words, self.documents_.counts @ words)
            n_models += 1
        return total / n_models

    def _models(self) -> Iterator[Floats]:
        """Yield the topics of words under every sample."""
        _, words = tokens_of(self.documents_.counts)
        n_terms = self.documents_.counts.shape[1]
        for k in self.n_topics:
            for topic in self.learned_[f"topics{k}"]:
                yield topics_of_words(word_distributions(words, topic, n_terms, k, self.eta))


def topics_of_words(phi: Floats) -> Floats:
    """Return W transposed, a row per word, from phi (topics, words): phi normalised over the topics."""
    return np.ascontiguousarray((phi / phi.sum(axis=0)).T) if phi.shape[1] else np.zeros(phi.shape[::-1])


def sample_topics(
    counts: csr_array,
    n_topics: int,
    *,
    n_sweeps: int,
    n_samples: int,
    alpha: float,
    eta: float,
    seed: tuple[int, ...],
) -> Topics:
    """Return samples of eight chains, (8 n_samples, tokens), chain by chain: the topic of every token.

    They depend on the seed alone.
    """
    generator = np.random.default_rng(seed)
    starts, words = tokens_of(counts)
    size = (len(words), topic_models.N_CHAINS)
    topic = generator.integers(0, n_topics, size, dtype=np.int32)
    n_wz = topic_models.count_words(words, topic, counts.shape[1], n_topics)
    n_z = n_wz.sum(axis=0, dtype=np.float64)
    samples: list[Topics] = []
    for left in reversed(range(n_sweeps)):
        draws = generator.random(size, dtype=np.float32)
        topic_models.gibbs_sweep(starts, words, topic, n_wz, n_z, draws, alpha, eta)
        if left % SWEEPS_APART == 0 and left < SWEEPS_APART * n_samples:
            samples.append(topic.astype(np.min_scalar_type(n_topics - 1)))
    return np.stack(samples).transpose(2, 0, 1).reshape(topic_models.N_CHAINS * n_samples, len(words))


def word_distributions(words: NDArray[np.int32], topic: Topics, n_terms: int, n_topics: int, eta: float) -> Floats:
    """Return phi (topics, words) of one sample: the topics of the tokens whose words are given."""
    place = topic * np.int64(n_terms) + words
    n_zw = np.bincount(place, minlength=n_topics * n_terms).reshape(n_topics, n_terms)
    smoothed = n_zw + eta
    phi: Floats = smoothed / smoothed.sum(axis=1, keepdims=True)
    return phi


def tokens_of(counts: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where each text's tokens begin, and the word of every token."""
    words = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(np.int32)
    starts = np.zeros(counts.shape[0] + 1, np.int64)
    starts[1:] = np.cumsum(counts.sum(axis=1))
    return starts, words
