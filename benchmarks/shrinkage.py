"""Which rule of shrinkage the default learner should use, and whether its inner held-out estimate is unbiased.

    python -m benchmarks._pools pools.npz                                    # the query sets, once
    python -m benchmarks.shrinkage pools.npz --jobs 2 --output s.jsonl       # draws; then the tables
    python -m benchmarks.shrinkage --table s.jsonl                           # the tables of a file

Each draw takes n training queries from a set, learns weights from them, and measures the weights of every rule on
the rest of the set. n is 20, 50, 100, 200, 400 and 800, as far as ten queries are left for the test. Ten draws.

The rules were written down here before the study. One trial draw of MED and pydocs came first, to measure the CPU;
after it the cold folds were cut from both starts to the better one, and nothing else was changed:

- today: the folds start at the optimum of all training queries (3 x 5 folds). Three quarters towards uniform
  weights, unless another share gains clearly more: 0, 1/4, 1/2, 3/4 or 1 towards uniform weights or the best single
  ranker.
- cold: the same choice, but every fold starts where the fit itself starts (2 x 5 folds): at uniform weights, or
  half-way from there to the best single ranker of its training queries, whichever start was better for all queries.
- vote: the choice of "cold" is made on 200 resamples of the training queries, and the chosen shares are averaged.
- best: the share with the highest inner mean on each of 200 resamples, averaged; there is no default.
- ratio: towards uniform weights by (G - H) / 2G, where G is the gain over uniform weights in training and H the
  gain in the cold folds: the best share if the objective is quadratic.
- falling: as "vote", but the default share is m / (m + n) for n queries, with m = 30 (rankers - 1), instead of 3/4.

Controls that do not adapt, and are no candidates: none, half and three quarters, always towards uniform weights.

The test, fixed beforehand: the gain over "today" is averaged for each query over the draws that tested it, then
over the queries of a set, then over the six sets. A rule is accepted if that pooled mean is not below 0 and if, on
pydocs with 400 or more training queries, it gains at least .0015 and the 95 % interval (Student's t over queries)
lies above 0. Of several, the one with the higher pooled mean is taken. If none passes, the rule stays.

`held_out_` is compared with what the weights reach on the rest of the set. Both are taken as gains over uniform
weights on the same queries, so that easy and difficult queries cancel. The error is that of the mean over draws.
The row "auto" is `AutoFuser.held_out_` as it is now; "today" is what it was: the value of the chosen share in the
folds that start at the optimum of all queries.
"""

import argparse
import json
import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks._pools import load_pools, pools_at
from genm._math.simplex_optimizers import Ascent, quasi_newton
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evaluate import parse_measure
from genm.learn.auto import (
    DEFAULT_SHRINKAGE,
    FOLD_TOLERANCE,
    SHRINKAGES,
    AutoFuser,
    SimpleWeights,
    WarmRestart,
    _polish,
    best_weights,
    clearly_best,
)
from genm.learn.objectives import Problem, Scorer, fold_of_queries
from genm.learn.starts import simple_starts
from genm.version import __version__

AP = parse_measure("AP")
SIZES = (20, 50, 100, 200, 400, 800)
LEAST_TEST = 10
FOLDS, WARM_REPEATS, COLD_REPEATS = 5, 3, 2
N_RESAMPLES = 200
RULES = ("cold", "vote", "best", "ratio", "falling")
CONTROLS = ("none", "half", "three quarters")
ADVANCE_GAIN = 0.0015
"""What an accepted rule must gain on pydocs with 400 or more training queries."""

Shares = np.ndarray
"""(2,) how far to move towards uniform weights, and towards the best single ranker."""


class Fold(NamedTuple):
    """What one inner fold learned, and what it is measured on."""

    learned: np.ndarray
    simple: dict[str, np.ndarray]
    outside: np.ndarray
    test: Scorer

    def values(self, shares: Shares) -> np.ndarray:
        """Return the held-out values of the fold's queries under these shares."""
        return self.test.per_query(move(self.learned, shares, self.simple))


def move(learned: np.ndarray, shares: Shares, simple: dict[str, np.ndarray]) -> np.ndarray:
    """Return the weights moved by a share towards uniform weights and by another towards the best single ranker."""
    uniform, single = shares
    return (1.0 - uniform - single) * learned + uniform * simple["uniform"] + single * simple["single"]


def move_safely(learned: np.ndarray, shares: Shares, simple: dict[str, np.ndarray], scorer: Scorer) -> np.ndarray:
    """Return the weights moved as chosen, or less where simple weights would be better in training."""
    least = max(scorer.mean(weights) for weights in simple.values())
    for part in np.linspace(1.0, 0.0, 11):
        weights = move(learned, part * np.asarray(shares), simple)
        if scorer.mean(weights) >= least:
            return weights
    return max(simple.values(), key=scorer.mean)


CANDIDATES = np.array([[s.amount * (s.target == t) for t in ("uniform", "single")] for s in SHRINKAGES])
DEFAULT = SHRINKAGES.index(DEFAULT_SHRINKAGE)


class Training:
    """The training queries of one draw, with everything that the rules share."""

    def __init__(self, aligned: Aligned, seed: int = 0) -> None:
        self.problem = Problem(aligned)
        self.scorer = Scorer(aligned, self.problem, AP, 1)
        self.simple = SimpleWeights.of(self.scorer, len(aligned.rankers))
        self.n, self.n_rankers, self.seed = len(self.problem.kept), len(aligned.rankers), seed
        self.ends = self._optima(self.problem, self.simple, tol=1e-6)
        self.learned = _polish(best_weights(self.ends, self.scorer, self.simple), self.scorer)
        self.targets = self.simple.targets

    @staticmethod
    def _optima(problem: Problem, simple: SimpleWeights, *, tol: float) -> list[Ascent]:
        starts = simple_starts(**simple.targets)
        return [quasi_newton(problem.gradient, start, tol=tol, max_iter=100) for start in starts]

    def _cold(self, simple: SimpleWeights, inside: np.ndarray) -> Ascent:
        better = int(np.argmax([self.scorer.mean(end.alpha) for end in self.ends]))
        start = simple_starts(**simple.targets)[better]
        return quasi_newton(self.problem.select(inside).gradient, start, tol=FOLD_TOLERANCE, max_iter=100)

    def folds(self, repeats: int, *, warm: bool) -> list[Fold]:
        """Return what the inner folds learn, from the optimum of all queries or from the fit's own starts."""
        restart = WarmRestart(self.problem, max(self.ends, key=lambda end: end.value))
        found = []
        for repeat in range(repeats):
            fold = fold_of_queries(self.n, FOLDS, self.seed + 1 + repeat)
            for f in range(FOLDS):
                inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
                simple, scorer = self.simple.select(inside), self.scorer.select(inside)
                start = partial(restart, tol=FOLD_TOLERANCE, max_iter=100) if warm else partial(self._cold, simple)
                learned = best_weights([start(inside)], scorer, simple)
                found.append(Fold(learned, simple.targets, outside, self.scorer.select(outside)))
        return found

    def reached(self, folds: list[Fold], shares: Shares) -> np.ndarray:
        """Return each training query's held-out value under these shares, averaged over the repeats."""
        values = np.zeros(self.n)
        for fold in folds:
            values[fold.outside] += fold.values(shares)
        return values / (len(folds) / FOLDS)

    def table(self, folds: list[Fold]) -> np.ndarray:
        """Return the held-out values of every candidate, a column per query."""
        return np.array([self.reached(folds, shares) for shares in CANDIDATES])


def resampled(table: np.ndarray, choose: Callable[[np.ndarray], int], seed: int) -> np.ndarray:
    """Return how often each row is chosen on resamples of the columns."""
    rng, n = np.random.default_rng([seed, 5]), table.shape[1]
    chosen = [choose(table[:, rng.integers(0, n, n)]) for _ in range(N_RESAMPLES)]
    return np.bincount(chosen, minlength=len(table)) / N_RESAMPLES


def choices(training: Training) -> dict[str, tuple[Shares, float]]:
    """Return what every rule chooses, and the value that it expects on other queries."""
    ones = np.ones(training.n)
    warm, cold = training.folds(WARM_REPEATS, warm=True), training.folds(COLD_REPEATS, warm=False)
    known, table = training.table(warm), training.table(cold)
    found: dict[str, tuple[Shares, float]] = {}

    def switch(values: np.ndarray, default: int = DEFAULT) -> int:
        return clearly_best(values, np.ones(values.shape[1]), default)

    chosen = clearly_best(known, ones, DEFAULT)
    found["today"] = CANDIDATES[chosen], float(known[chosen].mean())
    chosen = clearly_best(table, ones, DEFAULT)
    found["cold"] = CANDIDATES[chosen], float(table[chosen].mean())
    m = 30.0 * (training.n_rankers - 1)
    falling = np.array([m / (m + training.n), 0.0])
    with_falling = np.vstack([table, training.reached(cold, falling)])
    shares = {
        "vote": resampled(table, switch, training.seed) @ CANDIDATES,
        "best": resampled(table, lambda values: int(np.argmax(values.mean(axis=1))), training.seed) @ CANDIDATES,
        "falling": resampled(with_falling, lambda values: switch(values, len(table)), training.seed)
        @ np.vstack([CANDIDATES, falling]),
        "ratio": np.array([ratio(training, table), 0.0]),
        "none": np.array([0.0, 0.0]),
        "half": np.array([0.5, 0.0]),
        "three quarters": np.array([0.75, 0.0]),
    }
    found |= {name: (one, float(training.reached(cold, one).mean())) for name, one in shares.items()}
    return found


def ratio(training: Training, table: np.ndarray) -> float:
    """Return (G - H) / 2G for the gains in training and held out, between 0 and 1."""
    uniform = training.scorer.mean(training.targets["uniform"])
    gain = training.scorer.mean(training.learned) - uniform
    held_out = float(table[0].mean()) - uniform
    return float(np.clip((gain - held_out) / (2.0 * gain), 0.0, 1.0)) if gain > 0.0 else 1.0


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the CPU seconds that a call takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def draw(pool: Aligned, name: str, n: int, number: int) -> dict[str, Any]:
    """Return one draw: for every rule its shares, its estimate, and the test value of each query it left out."""
    order = np.random.default_rng([number, n, 11]).permutation(len(pool.queries))
    inside, outside = np.sort(order[:n]), np.sort(order[n:])
    begun = time.process_time()
    training = Training(pool.select(inside))
    outer = time.process_time() - begun
    costs = {
        "warm": outer + seconds_of(lambda: training.table(training.folds(WARM_REPEATS, warm=True))),
        "cold": outer + seconds_of(lambda: training.table(training.folds(COLD_REPEATS, warm=False))),
    }
    test = Problem(pool.select(outside))
    begun = time.process_time()
    fuser = AutoFuser().fit_problem(Problem(pool.select(inside)))
    costs["auto"] = time.process_time() - begun
    values = np.round(test.exact_per_query(fuser.weights_), 5).tolist()
    rules: dict[str, dict[str, Any]] = {"auto": {"held_out": fuser.held_out_, "test": values}}
    for rule, (shares, estimate) in choices(training).items():
        weights = move_safely(training.learned, shares, training.targets, training.scorer)
        rules[rule] = {
            "shares": np.round(shares, 4).tolist(),
            "held_out": round(estimate, 6),
            "train": round(training.scorer.mean(weights), 6),
            "test": np.round(test.exact_per_query(weights), 5).tolist(),
        }
    uniform = training.targets["uniform"]
    return {
        "set": name,
        "n": n,
        "draw": number,
        "outside": outside.tolist(),
        "uniform": [round(training.scorer.mean(uniform), 6), round(test.exact(uniform), 6)],
        "costs": costs,
        "rules": rules,
    }


_pools: dict[str, Aligned] = {}


def _start(path: Path) -> None:
    os.environ["GENM_THREADS"] = "1"
    warnings.simplefilter("ignore", ConvergenceWarning)
    _pools.update(load_pools(path))
    Training(_pools["med"]).folds(1, warm=True)  # compiles the kernels before anything is timed


def _work(job: tuple[str, int, int]) -> dict[str, Any]:
    name, n, number = job
    return draw(_pools[name], name, n, number)


def lines_of(path: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the draws that a file holds."""
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            if "set" in found:
                yield found


def gains(draws: list[dict[str, Any]], rule: str) -> np.ndarray:
    """Return each query's mean gain over today's rule, over the draws that tested it."""
    total: dict[int, list[float]] = {}
    for one in draws:
        ours, theirs = (one["rules"][which]["test"] for which in (rule, "today"))
        for query, a, b in zip(one["outside"], ours, theirs, strict=True):
            total.setdefault(query, []).append(a - b)
    return np.array([np.mean(values) for values in total.values()])


def with_error(values: np.ndarray) -> str:
    """Write the mean with its standard error."""
    return f"{values.mean():+.4f} ({values.std(ddof=1) / np.sqrt(len(values)):.4f})"


def print_table(title: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    for row in (title, ["---"] * len(title), *rows):
        print(f"| {' | '.join(row)} |")
    print()


def print_tables(draws: list[dict[str, Any]]) -> None:
    """Print the gains, the verdicts, the shares by n, the bias of the estimates and the costs."""
    sets = list(dict.fromkeys(one["set"] for one in draws))
    by_set = {name: [one for one in draws if one["set"] == name] for name in sets}
    large = [one for one in draws if one["set"] == "pydocs" and one["n"] >= 400]
    rows = []
    for rule in (*RULES, *CONTROLS):
        found = {name: gains(by_set[name], rule) for name in sets}
        pooled = float(np.mean([values.mean() for values in found.values()]))
        errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in found.values()]
        row = [rule, *(with_error(values) for values in found.values())]
        row.append(f"{pooled:+.4f} ({np.sqrt(np.square(errors).sum()) / len(errors):.4f})")
        if large:
            values = gains(large, rule)
            half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
            low, high = values.mean() - half, values.mean() + half
            passed = pooled >= 0.0 and values.mean() >= ADVANCE_GAIN and low > 0.0
            verdict = ("passes" if passed else "fails") if rule in RULES else "control"
            row += [f"{values.mean():+.4f} [{low:+.4f}, {high:+.4f}]", verdict]
        rows.append(row)
    print("Gain over today's rule, with its standard error\n")
    print_table(["rule", *sets, "pooled", "pydocs, 400 or more", "test"][: len(rows[0])], rows)
    print("Gain over today's rule by the number of training queries, all sets\n")
    sizes = sorted({one["n"] for one in draws})
    rows = []
    for rule in (*RULES, *CONTROLS):
        parts = [[gains([o for o in by_set[s] if o["n"] == n], rule) for s in sets] for n in sizes]
        rows.append([rule, *(f"{np.mean([v.mean() for v in part if len(v)]):+.4f}" for part in parts)])
    print_table(["rule", *map(str, sizes)], rows)
    print(
        "Share, towards uniform weights + towards the best single ranker, and its standard deviation over draws\n"
    )
    rows = []
    for rule in ("today", *RULES):
        row = [rule]
        for n in sizes:
            shares = np.array([one["rules"][rule]["shares"] for one in draws if one["n"] == n])
            row.append(f"{shares[:, 0].mean():.2f} + {shares[:, 1].mean():.2f}, {shares.sum(axis=1).std():.2f}")
        rows.append(row)
    print_table(["rule", *map(str, sizes)], rows)
    print("held_out_ minus the test value, both as gains over uniform weights, with the error of the mean\n")
    rows = []
    for rule in ("auto", "today", *RULES, *CONTROLS):
        row = [rule]
        for name in sets:
            bias = []
            for one in by_set[name]:
                ours, (inner, outer) = one["rules"][rule], one["uniform"]
                bias.append((ours["held_out"] - inner) - (float(np.mean(ours["test"])) - outer))
            row.append(with_error(np.array(bias)))
        rows.append(row)
    print_table(["rule", *sets], rows)
    cost = {kind: sum(one["costs"][kind] for one in draws) for kind in ("warm", "cold", "auto")}
    print(f"CPU of a fit by today's rule: 1; with cold folds: {cost['cold'] / cost['warm']:.2f}", end="; ")
    print(f"of auto, with its estimate: {cost['auto'] / cost['warm']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="?", type=Path, help="the file of benchmarks._pools; made if not given")
    parser.add_argument("--sets", default="", help="some of the sets, separated by commas")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, which seeds it")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there already is not drawn again")
    parser.add_argument("--table", type=Path, help="only add up the lines of this file")
    options = parser.parse_args()
    if options.table is not None:
        print_tables(list(lines_of(options.table)))
        return
    pools = pools_at(options.pools)
    print(json.dumps({"genm": __version__, "machine": platform.machine(), "draws": options.draws}), flush=True)
    found = list(lines_of(options.output))
    done = {(one["set"], one["n"], one["draw"]) for one in found}
    counts = {name: len(pool.queries) for name, pool in load_pools(pools).items()}
    wanted = options.sets.split(",") if options.sets else list(counts)
    numbers = range(options.first, options.first + options.draws)
    jobs = [(s, n, d) for s in wanted for n in SIZES[::-1] if n + LEAST_TEST <= counts[s] for d in numbers]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, _start, (pools,)) as workers:
        for one in workers.imap(_work, [job for job in jobs if job not in done]):
            found.append(one)
            if options.output is not None:
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(one) + "\n")
    print_tables(found)


if __name__ == "__main__":
    main()
