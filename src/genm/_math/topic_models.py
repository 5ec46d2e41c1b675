"""Tempered expectation maximisation of probabilistic latent semantic indexing (Hofmann 1999) on sparse counts.

n(d, w) count of term w in document d, given by rows in compressed form; b tempering exponent;
pz (K) P(z), pd (documents, K) P(d|z), pw (terms, K) P(w|z): topics lie side by side, so that the inner loops
run over contiguous numbers.

One step maximises  sum n log s(d, w),  s(d, w) = sum_z P(z) [P(d|z) P(w|z)]^b,  from below: the E-step's posterior
is P(z) [P(d|z) P(w|z)]^b / s, the M-step sums it. b = 1 is plain EM and the sum is then the log-likelihood.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import STEEPEST, exponential, exponentials, logarithm, logarithms
from genm._math.lanes import fill, load, total
from genm._math.parallel import kernel
from genm._math.parts import part

Array = NDArray[np.float64]
Counts = tuple[NDArray[np.int64], NDArray[np.int32], Array]
"""Starts of rows, terms and counts of a sparse table."""


@part()
def _dot(left: Array, right: Array) -> float:
    """Return the dot product of two rows: in eight lanes, the rest one by one."""
    lanes, whole = fill(0.0), len(left) - len(left) % 8
    for z in range(0, whole, 8):
        lanes += load(left, z) * load(right, z)
    found = total(lanes)
    for z in range(whole, len(left)):
        found += left[z] * right[z]
    return found


@kernel
def accumulate(
    starts: NDArray[np.int64],
    terms: NDArray[np.int32],
    counts: Array,
    left: Array,
    right: Array,
    new_left: Array,
    new_right: Array,
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
            if s <= 0.0:  # every topic gives this pair nothing: it can teach nothing
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


def raised(p: Array, b: float) -> Array:
    """Return p^b; by logarithms."""
    if b in (0, 1):
        return p.copy() if b else np.ones_like(p)
    return exponentials(b * logarithms(p))  # log 0 = -inf, and exp(-inf) is the 0 it should be


def step(
    starts: NDArray[np.int64], terms: NDArray[np.int32], counts: Array, pz: Array, pd: Array, pw: Array, b: float
) -> tuple[float, Array, Array, Array]:
    """Return the tempered objective at (pz, pd, pw) and the parameters after one EM step.

    A topic that lost all its mass keeps its old distributions and P(z) = 0.
    """
    left, right = raised(pd, b) * pz, raised(pw, b)
    new_d, new_w = np.empty_like(left), np.empty_like(right)
    value = accumulate(starts, terms, counts, left, right, new_d, new_w)
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
def log_likelihood(
    starts: NDArray[np.int64], terms: NDArray[np.int32], counts: Array, left: Array, right: Array
) -> float:
    """Return sum n log sum_z left[d, z] right[w, z]; pairs of probability 0 count as 1e-300."""
    value = 0.0
    for d in range(len(starts) - 1):
        for i in range(starts[d], starts[d + 1]):
            w = terms[i]
            s = _dot(left[d], right[w])
            value += counts[i] * logarithm(max(s, 1e-300))
    return value


@kernel
def fold_in(
    starts: NDArray[np.int64],
    terms: NDArray[np.int32],
    counts: Array,
    right: Array,
    prior: Array,
    b: float,
    n_steps: int,
    mixture: Array,
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
