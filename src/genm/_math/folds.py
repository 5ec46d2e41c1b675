"""Seeded folds of query positions."""

import numpy as np
from numpy.typing import NDArray


def fold_of_queries(n_queries: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return each query's fold, 0 to n_folds - 1: shuffled by the seed, sizes differ by at most one."""
    return np.random.default_rng(seed).permutation(np.arange(n_queries) % n_folds)
