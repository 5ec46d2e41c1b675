"""Topic models: one sweep of collapsed Gibbs sampling for LDA, one step of tempered EM for pLSI.

LDA (Griffiths and Steyvers 2004), eight chains at a time. Tokens of a document are contiguous,
tokens[starts[d]:starts[d + 1]]; each has a topic in every chain. n_wz (terms, K, 8) and n_z (K, 8) count the
tokens by topic and chain, as floats (whole numbers, exact far beyond any collection that fits in memory). Chains
share nothing but the texts: eight of them fill the lanes of a vector, one does not. The random numbers of a
sweep are given, and sums are float64 in one fixed order, so a chain depends on its seed alone, not on the
processor.

pLSI (Hofmann 1999) on sparse counts. n(d, w) count of term w in document d, given by rows in compressed form; b
tempering exponent; pz (K) P(z), pd (documents, K) P(d|z), pw (terms, K) P(w|z): topics lie side by side, so that
the inner loops run over contiguous numbers. One step maximises  sum n log s(d, w),  s(d, w) = sum_z P(z) [P(d|z)
P(w|z)]^b, from below: the E-step's posterior is P(z) [P(d|z) P(w|z)]^b / s, the M-step sums it. b = 1 is plain
EM and the sum is then the log-likelihood.
"""

import numpy as np
from scipy.special import gammaln

from genm._math.elementary import STEEPEST, exponential, exponentials, logarithm, logarithms
from genm._math.lanes import WIDTH, at_most, fill, load, store, total
from genm._math.parallel import kernel, part
from genm._typing import Codes, Floats, Ints, Singles

SparseCounts = tuple[Ints, Codes, Floats]
"""Starts of rows, terms and counts of a sparse table."""

N_CHAINS = WIDTH

TopicCounts = Singles
Topics = Codes
"""(tokens, 8)."""


@part()
def _dot(left: Floats, right: Floats) -> float:
    """Return the dot product of two rows: in eight lanes, the rest one by one."""
    lanes, whole = fill(0.0), len(left) - len(left) % 8
    for z in range(0, whole, 8):
        lanes += load(left, z) * load(right, z)
    found = total(lanes)
    for z in range(whole, len(left)):
        found += left[z] * right[z]
    return found


@kernel
def em_accumulate(
    starts: Ints, terms: Codes, counts: Floats, left: Floats, right: Floats, new_left: Floats, new_right: Floats
) -> float:
    """Add up one E-step: posteriors of `left[d] * right[w]`, weighted by the counts; return sum n log s.

    `left` is P(z) P(d|z)^b and `right` is P(w|z)^b. What is written still lacks the factor of its own row:
    the caller multiplies `new_left` by `left` and `new_right` by `right`.
    """
    K = left.shape[1]
    value = 0.0
    new_right[:] = 0.0
    for d in range(len(starts) - 1):
        for z in range(K):
            new_left[d, z] = 0.0
        for i in range(starts[d], starts[d + 1]):
            w = terms[i]
            s = _dot(left[d], right[w])
            if s <= 0.0:  # every topic gives this pair probability 0: skip it
                continue
            value += counts[i] * logarithm(s)
            share = counts[i] / s
            for z in range(K):
                new_left[d, z] += share * right[w, z]
                new_right[w, z] += share * left[d, z]
    return value


@part()
def _power(p: float, b: float) -> float:
    exponent = b * logarithm(p)
    return exponential(exponent) if exponent > -STEEPEST else 0.0


def raised(p: Floats, b: float) -> Floats:
    """Return p^b; by logarithms."""
    if b in (0, 1):
        return p.copy() if b else np.ones_like(p)
    return exponentials(b * logarithms(p))  # log 0 = -inf, and exp(-inf) is the 0 it should be


def em_step(
    starts: Ints, terms: Codes, counts: Floats, pz: Floats, pd: Floats, pw: Floats, b: float
) -> tuple[float, Floats, Floats, Floats]:
    """Return the tempered objective at (pz, pd, pw) and the parameters after one EM step.

    A topic that lost all its mass keeps its old distributions and P(z) = 0.
    """
    left, right = raised(pd, b) * pz, raised(pw, b)
    new_d, new_w = np.empty_like(left), np.empty_like(right)
    value = em_accumulate(starts, terms, counts, left, right, new_d, new_w)
    new_d *= left
    new_w *= right
    mass = new_d.sum(axis=0)
    alive = mass > 0
    if not alive.all():
        new_d[:, ~alive], new_w[:, ~alive] = pd[:, ~alive], pw[:, ~alive]
    new_d /= np.where(alive, mass, 1.0)
    new_w /= np.where(alive, new_w.sum(axis=0), 1.0)
    return value, mass / (mass.sum() or 1.0), new_d, new_w


@kernel
def plsi_log_likelihood(starts: Ints, terms: Codes, counts: Floats, left: Floats, right: Floats) -> float:
    """Return sum n log sum_z left[d, z] right[w, z]; pairs of probability 0 count as 1e-300."""
    value = 0.0
    for d in range(len(starts) - 1):
        for i in range(starts[d], starts[d + 1]):
            w = terms[i]
            s = _dot(left[d], right[w])
            value += counts[i] * logarithm(max(s, 1e-300))
    return value


@kernel(makes_arrays=True)
def plsi_fold_in(
    starts: Ints,
    terms: Codes,
    counts: Floats,
    right: Floats,
    prior: Floats,
    b: float,
    n_steps: int,
    mixture: Floats,
) -> None:
    """Find P(z|q) for new texts with P(w|z) held: E-step ~ P(z)^(1-b) P(z|q)^b P(w|z)^b; rows of `mixture`.

    `right` is P(w|z)^b and `prior` P(z)^(1-b). A text without a known term gets a row of zeros.
    """
    K = right.shape[1]
    raised, gathered = np.empty(K), np.empty(K)
    for q in range(len(starts) - 1):
        mixture[q] = 0.0
        if starts[q] == starts[q + 1]:
            continue
        for z in range(K):
            mixture[q, z] = 1.0 / K
        for _ in range(n_steps):
            for z in range(K):
                raised[z] = prior[z] * _power(mixture[q, z], b)
                gathered[z] = 0.0
            for i in range(starts[q], starts[q + 1]):
                w = terms[i]
                s = _dot(raised, right[w])
                if s <= 0.0:
                    continue
                share = counts[i] / s
                for z in range(K):
                    gathered[z] += share * right[w, z]
            mass = 0.0
            for z in range(K):
                gathered[z] *= raised[z]
                mass += gathered[z]
            if mass <= 0.0:
                mixture[q] = 0.0
                break
            for z in range(K):
                mixture[q, z] = gathered[z] / mass


@kernel(makes_arrays=True)
def gibbs_sweep(
    starts: Ints,
    words: Codes,
    topic: Topics,
    n_wz: TopicCounts,
    n_z: Floats,
    draws: TopicCounts,
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


def count_words(words: Codes, topic: Topics, n_terms: int, n_topics: int) -> TopicCounts:
    """Return n_wz (terms, topics, 8) of an assignment."""
    place = (words[:, None] * np.int64(n_topics) + topic) * N_CHAINS + np.arange(N_CHAINS)
    counts = np.bincount(place.ravel(), minlength=n_terms * n_topics * N_CHAINS)
    return counts.astype(np.float32).reshape(n_terms, n_topics, N_CHAINS)


def lda_log_likelihood(n_dz: Floats, n_wz: Floats, alpha: float, eta: float) -> float:
    """Return log P(words, topics | alpha, eta) of one chain; it rises until the chain reaches equilibrium."""
    return _dirichlet_multinomial(n_dz, alpha) + _dirichlet_multinomial(n_wz.T, eta)


def _dirichlet_multinomial(counts: Floats, prior: float) -> float:
    width = counts.shape[1]
    rows = gammaln(width * prior) - gammaln(counts.sum(axis=1) + width * prior)
    cells = gammaln(counts + prior) - gammaln(prior)
    return float(rows.sum() + cells.sum())
