"""How often intervals of a mean difference hold for two fixed systems, where nothing is learned.

    python -m benchmarks.skewness [--pools ranked.npz] [--draws 60]

Queries are drawn from the pools of `benchmarks.coverage`. Every pair of the eight rankers, equal weights and RRF is
compared; the truth is the mean difference on the rest of the pool, and the ends are moved out for its error as
there. What misses here, misses because of the differences' skewness and not because of learning. The rules are
Student's t, Johnson's t (1978), which moves the interval by the skewness, the studentised bootstrap of 300
resamples, and the wider of the first and the last. The table has the mean and the least over the pairs.
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks import coverage

SIZES = (20, 50, 100)
RULES = ("Student", "Johnson", "bootstrap", "wider")
Interval = tuple[float, float]


def studentised_bootstrap(
    sample: np.ndarray, rng: np.random.Generator, *, n_resamples: int = 300
) -> Interval | None:
    """Return the interval, or None where most resamples have no spread."""
    n = len(sample)
    drawn = sample[rng.integers(0, n, (n_resamples, n))]
    spread = drawn.std(axis=1, ddof=1)
    t = (drawn.mean(axis=1) - sample.mean())[spread > 0.0] / (spread[spread > 0.0] / np.sqrt(n))
    if len(t) < n_resamples / 2:
        return None
    low, high = np.quantile(t, (0.025, 0.975)) * sample.std(ddof=1) / np.sqrt(n)
    return float(sample.mean() - high), float(sample.mean() - low)


def intervals(sample: np.ndarray, rng: np.random.Generator) -> dict[str, Interval]:
    """Return the interval of a sample's mean by every rule."""
    n, mean, variance = len(sample), float(sample.mean()), float(sample.var(ddof=1))
    half = float(stats.t.ppf(0.975, n - 1)) * np.sqrt(variance / n)
    moved = float(((sample - mean) ** 3).mean()) / (6.0 * variance * n) if variance > 0.0 else 0.0
    student = mean - half, mean + half
    bootstrap = studentised_bootstrap(sample, rng) or student
    wider = min(student[0], bootstrap[0]), max(student[1], bootstrap[1])
    return dict(zip(RULES, (student, (student[0] + moved, student[1] + moved), bootstrap, wider), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=Path, help="the file of benchmarks._ranked_pools")
    parser.add_argument("--draws", type=int, default=60)
    options = parser.parse_args()
    coverage.POOL_FILE = options.pools
    rng = np.random.default_rng(5)
    coverage.print_header(["pool", "queries", "rule", "covered", "least of the pairs", "above", "below"])
    for name in ("merged", "pydocs", "generated"):
        systems = np.array(list(coverage.pool_of(name, 8, "AP").fixed.values()))
        pairs, n_all = list(combinations(range(len(systems)), 2)), systems.shape[1]
        for n in SIZES:
            longer = np.sqrt(n_all / (n_all - n))
            missed = np.zeros((len(RULES), len(pairs), 2))
            for _ in range(options.draws):
                inside = np.zeros(n_all, np.bool_)
                inside[rng.choice(n_all, n, replace=False)] = True
                for p, (one, other) in enumerate(pairs):
                    differences = systems[one] - systems[other]
                    sample, truth = differences[inside], float(differences[~inside].mean())
                    for r, ends in enumerate(intervals(sample, rng).values()):
                        missed[r, p] += coverage.sides(float(sample.mean()), list(ends), truth, longer)
            for rule, share in zip(RULES, missed / options.draws, strict=True):
                above, below = share.mean(axis=0)
                covered = 1.0 - share.sum(axis=1)
                rates = f"{covered.mean():.3f} | {covered.min():.2f} | {above:.3f} | {below:.3f}"
                print(f"| {name} | {n} | {rule} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
