"""Two questions about the default learner, answered by cross-validation on the sets of `benchmarks._pools`.

    python -m benchmarks.learning signs pools.npz --jobs 2 --output signs.jsonl
    python -m benchmarks.learning measures pools.npz --jobs 2 --output measures.jsonl
    python -m benchmarks.learning signs --table signs.jsonl

signs: what weights of any sign (`signs="any"`) gain over weights on the simplex; AP, five-fold cross-validation.

measures: whether nDCG@10, RR and P@10 should be learned by a smoothing of their own. Two-fold cross-validation. The
rules, written down before the first run, all without shrinkage, so that only the search differs:

- today: the optimum of smoothed AP, then the direct search of the exact measure (`AutoFuser.learned_`);
- AP: the optimum of smoothed AP alone;
- own: the optimum of the measure's own smoothing, from the simple starts and from the optimum of smoothed AP;
- own, then search: the same, then the direct search.

The measure's own smoothing puts the smoothed ranks R of the relevant documents into its formula: nDCG@k sums
gain / log2(1 + R), P@k sums 1 / k, RR takes 1 / R of the relevant document with the highest score. The cutoff is
smooth: a document counts by the sigmoid of k + 1/2 - R. It is accepted if "own", or "own, then search", gains over
"today" on the mean of all sets and measures, with an interval (Student's t over queries) above 0.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy import stats

from benchmarks._pools import load_pools, pools_at
from genm._math.simplex_optimizers import quasi_newton
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.learn import AutoFuser
from genm.learn.auto import SimpleWeights, best_weights
from genm.learn.objectives import Problem, Scorer, direct_search, fold_of_queries
from genm.learn.starts import simple_starts
from genm.version import __version__

MEASURES = ("nDCG@10", "RR", "P@10")
FOLDS = {"signs": 5, "measures": 2}
Rules = dict[str, tuple[np.ndarray, float]]
"""Weights and CPU seconds by the name of the rule."""


@numba.njit(cache=False)
def smoothed_measure(kind, cutoff, beta, weights, starts, scores, gains, ideal, gradient):
    """Return the mean of a smoothed measure over queries, and write its gradient.

    kind 0 is nDCG, 1 is RR, 2 is precision. `gains` are 0 for documents that are not relevant; `ideal` is what a
    query's sum is divided by. R = 1 + sum over the other documents of sigmoid(beta (s_other - s)), and
    dR = sum of beta slope (S_other - S) over them.
    """
    n_rankers, total = len(weights), 0.0
    gradient[:] = 0.0
    dR = np.empty(n_rankers)
    for q in range(len(starts) - 1):
        low, high = starts[q], starts[q + 1]
        s = np.zeros(high - low)
        for d in range(high - low):
            for k in range(n_rankers):
                s[d] += weights[k] * scores[low + d, k]
        highest = -1
        if kind == 1:
            for d in range(high - low):
                if gains[low + d] > 0.0 and (highest < 0 or s[d] > s[highest]):
                    highest = d
        for j in range(high - low):
            if gains[low + j] <= 0.0 or (kind == 1 and j != highest):
                continue
            R = 1.0
            dR[:] = 0.0
            for d in range(high - low):
                if d == j:
                    continue
                x = beta * (s[d] - s[j])
                g = 1.0 / (1.0 + math.exp(-x)) if x > -37.0 else 0.0
                R += g
                slope = beta * g * (1.0 - g)
                if slope > 1e-12:
                    for k in range(n_rankers):
                        dR[k] += slope * (scores[low + d, k] - scores[low + j, k])
            if kind == 0:
                log = math.log2(1.0 + R)
                value, by_rank = gains[low + j] / log, -gains[low + j] / (log * log * (1.0 + R) * math.log(2.0))
            elif kind == 1:
                value, by_rank = 1.0 / R, -1.0 / (R * R)
            else:
                value, by_rank = 1.0, 0.0
            if cutoff > 0:
                inside = 1.0 / (1.0 + math.exp(min(R - cutoff - 0.5, 500.0)))
                by_rank = by_rank * inside - value * inside * (1.0 - inside)
                value *= inside
            total += value / ideal[q]
            for k in range(n_rankers):
                gradient[k] += by_rank * dR[k] / ideal[q]
    n = len(starts) - 1
    gradient /= n
    return total / n


class OwnSmoothing:
    """The smoothed mean of nDCG, RR or precision, with an optional cutoff."""

    def __init__(self, aligned: Aligned, problem: Problem, measure: Measure) -> None:
        self._aligned, self._beta = aligned.select(problem.kept), problem.beta
        self._cutoff = measure.cutoff or 0
        self._kind = ("nDCG", "RR", "P").index(measure.name)
        self._gains = np.maximum(self._aligned.relevance, 0).astype(np.float64)
        n_relevant = self._aligned.n_relevant()
        self._ideal = np.ones(len(n_relevant))
        if self._kind == 0:  # binary grades in all the sets
            tops = np.minimum(n_relevant, self._cutoff or n_relevant.max())
            self._ideal = np.array([(1.0 / np.log2(np.arange(2.0, n + 2.0))).sum() for n in tops.tolist()])
        elif self._kind == 2:
            self._ideal[:] = self._cutoff

    def gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean and its gradient."""
        found = np.empty(len(weights))
        one = self._aligned
        value = smoothed_measure(
            self._kind, self._cutoff, self._beta, weights, one.starts, one.scores, self._gains, self._ideal, found
        )
        return value, found


def timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """Return what a call returns, and its CPU seconds."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def by_sign(aligned: Aligned, measure: Measure) -> Rules:
    """Learn with positive weights and with weights of any sign."""
    return {
        signs: timed(lambda signs=signs: AutoFuser(measure=measure, signs=signs).fit(aligned).weights_)
        for signs in ("positive", "any")
    }


def by_smoothing(aligned: Aligned, measure: Measure) -> Rules:
    """Learn without shrinkage, by smoothed AP or by the measure's own smoothing."""
    problem = Problem(aligned)
    scorer = Scorer(aligned, problem, measure, 1)
    simple = SimpleWeights.of(scorer, len(aligned.rankers))
    starts = simple_starts(**simple.targets)
    ends = [quasi_newton(problem.gradient, start, tol=1e-6, max_iter=100) for start in starts]
    ap = max((end.alpha for end in ends), key=scorer.mean)
    own = OwnSmoothing(aligned, problem, measure)

    def optimum() -> np.ndarray:
        found = [quasi_newton(own.gradient, start, tol=1e-6, max_iter=100).alpha for start in (*starts, ap)]
        return max(found, key=scorer.mean)

    smoothed, seconds = timed(optimum)
    searched, more = timed(lambda: direct_search(scorer, smoothed))
    return {
        "today": timed(lambda: best_weights(ends, scorer, simple)),
        "AP": (ap, 0.0),
        "own": (smoothed, seconds),
        "own, then search": (searched, seconds + more),
    }


_pools: dict[str, Aligned] = {}


def _start(path: Path) -> None:
    os.environ["GENM_THREADS"] = "1"
    warnings.simplefilter("ignore", ConvergenceWarning)
    _pools.update(load_pools(path))


def _work(job: tuple[str, str, str, int]) -> dict[str, Any]:
    study, name, text, number = job
    pool, measure = _pools[name], parse_measure(text)
    evaluator, n = AlignedEvaluator(pool, [measure]), len(pool.queries)
    fold = fold_of_queries(n, FOLDS[study], 100 + number)
    rows: dict[str, dict[str, Any]] = {}
    for f in range(FOLDS[study]):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        found = (by_sign if study == "signs" else by_smoothing)(pool.select(inside), measure)
        for rule, (weights, seconds) in found.items():
            row = rows.setdefault(rule, {"values": np.zeros(n), "seconds": 0.0, "weights": [], "train": 0.0})
            values = evaluator.values(weights)[:, 0]
            row["values"][outside] = values[outside]
            row["train"] += float(values[inside].mean()) / FOLDS[study]
            row["seconds"] += seconds
            row["weights"].append(np.round(weights, 4).tolist())
    for row in rows.values():
        row["values"] = np.round(row["values"], 5).tolist()
    return {"study": study, "set": name, "measure": text, "split": number, "rules": rows}


def lines_of(path: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the rows that a file holds."""
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print, for each set and measure, what the rules reach held out and their gain over the first rule."""
    rules = list(rows[0]["rules"])
    title = ["set", "measure", *rules, *(f"{rule} - {rules[0]}" for rule in rules[1:])]
    title += [f"{rule}, training" for rule in rules]
    print(f"| {' | '.join(title)} |\n|{'---|' * len(title)}")
    pooled: dict[str, list[np.ndarray]] = {rule: [] for rule in rules[1:]}
    for name, measure in dict.fromkeys((row["set"], row["measure"]) for row in rows):
        chosen = [row["rules"] for row in rows if (row["set"], row["measure"]) == (name, measure)]
        values = {rule: np.mean([one[rule]["values"] for one in chosen], axis=0) for rule in rules}
        cells = [name, measure, *(f"{values[rule].mean():.4f}" for rule in rules)]
        for rule in rules[1:]:
            pooled[rule].append(values[rule] - values[rules[0]])
            gain = pooled[rule][-1]
            cells.append(f"{gain.mean():+.4f} ({gain.std(ddof=1) / np.sqrt(len(gain)):.4f})")
        cells += [f"{np.mean([one[rule]['train'] for one in chosen]):.4f}" for rule in rules]
        print(f"| {' | '.join(cells)} |")
    print()
    for rule, gains in pooled.items():
        mean = float(np.mean([gain.mean() for gain in gains]))
        error = float(np.sqrt(sum(gain.var(ddof=1) / len(gain) for gain in gains)) / len(gains))
        half = float(stats.norm.ppf(0.975)) * error
        seconds = sum(row["rules"][rule]["seconds"] for row in rows)
        usual = sum(row["rules"][rules[0]]["seconds"] for row in rows)
        text = f"{mean:+.4f} [{mean - half:+.4f}, {mean + half:+.4f}], CPU {seconds:.1f} s against {usual:.1f} s"
        print(f"{rule} - {rules[0]}, mean of all rows: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", choices=tuple(FOLDS), default="signs")
    parser.add_argument("pools", nargs="?", type=Path, help="the file of benchmarks._pools; made if not given")
    parser.add_argument("--sets", default="", help="some of the sets, separated by commas")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there already is not computed again")
    parser.add_argument("--table", type=Path, help="only print the table of this file")
    options = parser.parse_args()
    if options.table is not None:
        print_table([row for row in lines_of(options.table) if row["study"] == options.study])
        return
    pools = pools_at(options.pools)
    print(json.dumps({"genm": __version__, "machine": platform.machine(), "splits": options.splits}), flush=True)
    found = [row for row in lines_of(options.output) if row["study"] == options.study]
    done = {(row["set"], row["measure"], row["split"]) for row in found}
    sets = options.sets.split(",") if options.sets else list(load_pools(pools))
    measures = ("AP",) if options.study == "signs" else MEASURES
    jobs = [(s, m, i) for s in sets for m in measures for i in range(options.splits)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, _start, (pools,)) as workers:
        for row in workers.imap(_work, [(options.study, *job) for job in jobs if job not in done]):
            found.append(row)
            if options.output is not None:
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print_table(found)


if __name__ == "__main__":
    main()
