"""Collapsed Gibbs sampling of latent Dirichlet allocation (Griffiths and Steyvers 2004), one sweep at a time.

Tokens of a document are contiguous, tokens[starts[d]:starts[d + 1]]; each has a topic z. n_dz (documents, K), n_wz
(terms, K) and n_z (K) count the tokens by topic, as float32 (whole numbers, exact far beyond any collection that
fits in memory); K is padded to whole lanes with topics that are never drawn. The random numbers of a sweep are
given, and sums are float64 in one fixed order, so a chain depends on its seed alone, not on the processor.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from genm._math.compiled import kernel
from genm._math.lanes import load, total

LANES = 16

Floats = NDArray[np.float32]


@kernel
def sweep(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    topic: NDArray[np.int32],
    n_dz: Floats,
    n_wz: Floats,
    n_z: Floats,
    draws: Floats,
    n_topics: int,
    alpha: float,
    eta: float,
) -> None:
    """Draw every token's topic anew: P(z) ~ (n_dz + alpha) (n_wz + eta) / (n_z + V eta), itself left out."""
    width = n_dz.shape[1]
    blocks = width // LANES
    a, e = np.float32(alpha), np.float32(eta)
    prior = np.float32(n_wz.shape[0] * eta)
    chance = np.empty(width, np.float32)
    of_block = np.empty(blocks)
    inverse = np.zeros(width, np.float32)
    for z in range(n_topics):
        inverse[z] = np.float32(1.0) / (n_z[z] + prior)
    for d in range(len(starts) - 1):
        of_doc = n_dz[d]
        for i in range(starts[d], starts[d + 1]):
            w, old = words[i], topic[i]
            of_word = n_wz[w]
            of_doc[old] -= np.float32(1.0)
            of_word[old] -= np.float32(1.0)
            n_z[old] -= np.float32(1.0)
            inverse[old] = np.float32(1.0) / (n_z[old] + prior)
            for z in range(width):  # one plain loop, so that it becomes vector code
                chance[z] = (of_doc[z] + a) * (of_word[z] + e) * inverse[z]
            mass = 0.0
            for b in range(blocks):
                of_block[b] = total(load(chance, b * LANES) + load(chance, b * LANES + 8))
                mass += of_block[b]
            target = draws[i] * mass
            b = 0
            while b < blocks - 1 and target >= of_block[b]:
                target -= of_block[b]
                b += 1
            new = b * LANES
            last = min(new + LANES, n_topics) - 1
            while new < last:
                target -= chance[new]
                if target < 0:
                    break
                new += 1
            topic[i] = new
            of_doc[new] += np.float32(1.0)
            of_word[new] += np.float32(1.0)
            n_z[new] += np.float32(1.0)
            inverse[new] = np.float32(1.0) / (n_z[new] + prior)


def count_topics(
    starts: NDArray[np.int64], words: NDArray[np.int32], topic: NDArray[np.int32], n_terms: int, n_topics: int
) -> tuple[Floats, Floats, Floats]:
    """Return (n_dz, n_wz, n_z) of an assignment, K padded to whole lanes."""
    width = -(-n_topics // LANES) * LANES
    n_docs = len(starts) - 1
    doc = np.repeat(np.arange(n_docs), np.diff(starts))
    n_dz = np.bincount(doc * width + topic, minlength=n_docs * width).reshape(n_docs, width)
    n_wz = np.bincount(words * np.int64(width) + topic, minlength=n_terms * width).reshape(n_terms, width)
    return n_dz.astype(np.float32), n_wz.astype(np.float32), n_wz.sum(axis=0).astype(np.float32)


def joint_log_likelihood(n_dz: Floats, n_wz: Floats, n_topics: int, alpha: float, eta: float) -> float:
    """Return log P(words, topics | alpha, eta), what the chain climbs on its way to its equilibrium."""
    dz, wz = n_dz[:, :n_topics].astype(np.float64), n_wz[:, :n_topics].astype(np.float64)
    return _dirichlet_multinomial(dz, alpha) + _dirichlet_multinomial(wz.T, eta)


def _dirichlet_multinomial(counts: NDArray[np.float64], prior: float) -> float:
    width = counts.shape[1]
    rows = gammaln(width * prior) - gammaln(counts.sum(axis=1) + width * prior)
    cells = gammaln(counts + prior) - gammaln(prior)
    return float(rows.sum() + cells.sum())
