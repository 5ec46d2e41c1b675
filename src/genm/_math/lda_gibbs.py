"""Collapsed Gibbs sampling of latent Dirichlet allocation (Griffiths and Steyvers 2004), eight chains at a time.

Tokens of a document are contiguous, tokens[starts[d]:starts[d + 1]]; each has a topic in every chain. n_wz (terms,
K, 8) and n_z (K, 8) count the tokens by topic and chain, as floats (whole numbers, exact far beyond any collection
that fits in memory). Chains share nothing but the texts: eight of them fill the lanes of a vector, one does not.
The random numbers of a sweep are given, and sums are float64 in one fixed order, so a chain depends on its seed
alone, not on the processor.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from genm._math.lanes import WIDTH, at_most, fill, load, store
from genm._math.parallel import kernel

N_CHAINS = WIDTH

Counts = NDArray[np.float32]
Array = NDArray[np.float64]
Topics = NDArray[np.int32]
"""(tokens, 8)."""


@kernel
def sweep(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    topic: Topics,
    n_wz: Counts,
    n_z: Array,
    draws: Counts,
    alpha: float,
    eta: float,
) -> None:
    """Draw every token's topic anew: P(z) ~ (n_dz + alpha) (n_wz + eta) / (n_z + V eta), itself left out.

    Topics are summed in blocks of eight: a draw is located among the blocks first, then within its block.
    """
    n_terms, K = n_wz.shape[0], n_wz.shape[1]
    n_blocks = (K + 7) // 8
    in_all_words = n_terms * eta
    of_doc, inverse, ends = np.empty((K, 8)), np.empty((K, 8)), np.empty((n_blocks, 8))
    goal, passed = np.empty(8), np.empty(8)
    for z in range(K):
        for c in range(8):
            inverse[z, c] = 1.0 / (n_z[z, c] + in_all_words)
    for d in range(len(starts) - 1):
        for z in range(K):
            store(of_doc, 8 * z, fill(alpha))
        for i in range(starts[d], starts[d + 1]):
            for c in range(8):
                of_doc[topic[i, c], c] += 1.0
        for i in range(starts[d], starts[d + 1]):
            w = words[i]
            row = 8 * K * w
            for c in range(8):
                z = topic[i, c]
                of_doc[z, c] -= 1.0
                n_wz[w, z, c] -= np.float32(1.0)
                n_z[z, c] -= 1.0
                inverse[z, c] = 1.0 / (n_z[z, c] + in_all_words)
            end = fill(0.0)
            for b in range(n_blocks):
                mass = fill(0.0)
                for z in range(8 * b, min(8 * b + 8, K)):
                    mass += load(of_doc, 8 * z) * (load(n_wz, row + 8 * z) + eta) * load(inverse, 8 * z)
                end += mass
                store(ends, 8 * b, end)
            target = load(draws, 8 * i) * end
            n_passed = fill(0.0)
            for b in range(n_blocks - 1):
                n_passed += at_most(load(ends, 8 * b), target)
            store(goal, 0, target)
            store(passed, 0, n_passed)
            for c in range(8):
                b = int(passed[c])
                z, last = 8 * b, min(8 * b + 8, K) - 1
                left = goal[c] - (ends[b - 1, c] if b > 0 else 0.0)
                while z < last:
                    left -= of_doc[z, c] * (n_wz[w, z, c] + eta) * inverse[z, c]
                    if left < 0.0:
                        break
                    z += 1
                topic[i, c] = z
                of_doc[z, c] += 1.0
                n_wz[w, z, c] += np.float32(1.0)
                n_z[z, c] += 1.0
                inverse[z, c] = 1.0 / (n_z[z, c] + in_all_words)


def count_words(words: NDArray[np.int32], topic: Topics, n_terms: int, n_topics: int) -> Counts:
    """Return n_wz (terms, topics, 8) of an assignment."""
    place = (words[:, None] * np.int64(n_topics) + topic) * N_CHAINS + np.arange(N_CHAINS)
    counts = np.bincount(place.ravel(), minlength=n_terms * n_topics * N_CHAINS)
    return counts.astype(np.float32).reshape(n_terms, n_topics, N_CHAINS)


def joint_log_likelihood(n_dz: Array, n_wz: Array, alpha: float, eta: float) -> float:
    """Return log P(words, topics | alpha, eta) of one chain: what it climbs on its way to equilibrium."""
    return _dirichlet_multinomial(n_dz, alpha) + _dirichlet_multinomial(n_wz.T, eta)


def _dirichlet_multinomial(counts: Array, prior: float) -> float:
    width = counts.shape[1]
    rows = gammaln(width * prior) - gammaln(counts.sum(axis=1) + width * prior)
    cells = gammaln(counts + prior) - gammaln(prior)
    return float(rows.sum() + cells.sum())
