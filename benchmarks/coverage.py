"""How often the printed 95 % intervals of held-out gains hold, and how often a verdict is wrong.

    python -m benchmarks.coverage                                   # a small sample of the cells, some minutes
    python -m benchmarks.coverage --cells pydocs:4:50:AP:auto,generated:8:20:AP:newton --draws 200 --output c.jsonl
    python -m benchmarks.coverage --table c.jsonl                   # what the lines of a file add up to
    python -m benchmarks.coverage --losses --draws 100 --output l.jsonl     # the losses of genm explain
    python -m benchmarks.coverage --shapley --draws 100 --output s.jsonl    # its Shapley values
    python -m benchmarks.coverage --grid --list                     # the names of all cells
    python -m benchmarks.coverage --grid "*:8:*" --jobs 16 --pools ranked.npz --seconds 540 --output c.jsonl

A cell is POOL:RANKERS:QUERIES:MEASURE:METHOD. Each draw takes that many queries from the pool, without
replacement, learns weights from them and computes the evidence of `genm fit`. What an interval claims to hold is
the mean gain of these very weights over the rival on further queries of the same kind; the truth is their mean
gain on the rest of the pool. That rest is finite and has an error of its own: the difference of two means, of n
and of N - n queries, varies sqrt(N / (N - n)) times as much as the first alone, so the distance from the estimate
to either end is taken that much longer before it is compared with the truth. (MC has 383 queries, so n = 400 does
not exist there.)

Pools: pydocs and merged (MC), with up to eight rankers of which some are near-copies, the top 100 of each;
generated, 3,000 queries with rankers from good to useless. `--pools` takes them from a file of
`benchmarks._ranked_pools`, so that a machine without the collections draws from the same lists.

A draw depends on its cell and its number only, whatever `--jobs` is. Draws that the output file holds already are
not drawn again, so a long study can be run in parts; `--seconds` begins no draw after that time.

The candidates beside the printed interval are Student's t without the variance of learning ("t"), the same with
Nadeau and Bengio's factor ("nb", variance times 1 + k / (k - 1)), and widened by 1.3 ("1.3").

A wrong verdict is "better" where the truth is below 0, or "worse" where it is above. "Under a true null" is
stricter: had the gain been 0, the verdict is wrong whenever the interval lies wholly above or wholly below the
truth; the two shares stand in the columns "above" and "below". Each should be at most 2.5 %.

`--losses` does the same for what `genm explain`, `fit` and `report` print as lost without a ranker. The truth is
the mean on the rest of the pool of the weights learned from the drawn queries with all rankers, less that of the
weights learned without the ranker. "joint" is the share of draws in which the joint intervals of all rankers hold.
Wrong verdicts: "keep" where the truth is not above 0, "hurts" where it is, "not needed" where it is above the
margin. `--shapley` does it for the Shapley values, whose truth comes from the weights of every subset. "t" is
Student's interval without the variance of learning here too.
"""

import argparse
import json
import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks._ranked_pools import ranked_pool
from genm.align import Aligned, align_runs, select_rankers
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, Evidence, gather_evidence, ranker_ids, single_values
from genm.explain import Figure, measure_losses, measure_worth, shapley_values
from genm.explain.losses import NEGLIGIBLE_LOSS
from genm.explain.subsets import members_of
from genm.fuse import rule_scores
from genm.learn import make_fuser
from genm.version import __version__

SMALL = (
    "pydocs:4:20:AP:auto",
    "pydocs:8:50:AP:auto",
    "merged:2:50:AP:auto",
    "generated:4:20:AP:auto",
    "generated:8:100:AP:auto",
)
METHODS = ("auto", "newton")
LOSSES = (
    "generated:4:50:AP:auto",
    "pydocs:4:50:AP:auto",
    "generated:4:20:AP:auto",
    "merged:4:50:AP:auto",
    "generated:8:50:AP:auto",
)
RULES = ("printed", "t", "nb", "1.3")
STRONGEST = "strongest"
BLOCK = 10  # so many draws of a cell in a row: a study that is stopped early has as many of each
POOL_FILE: Path | None = None
THREADS = ("GENM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Cell(NamedTuple):
    """One setting of the simulation."""

    pool: str
    n_rankers: int
    n_queries: int
    measure: str
    method: str

    @classmethod
    def parse(cls, text: str) -> "Cell":
        """Read POOL:RANKERS:QUERIES:MEASURE:METHOD."""
        pool, n_rankers, n_queries, measure, method = text.split(":")
        return cls(pool, int(n_rankers), int(n_queries), measure, method)

    def __str__(self) -> str:
        return ":".join(map(str, self))


def grid() -> list[str]:
    """Return the names of all cells of the study; MC has too few queries for 400."""
    sizes = product(("generated", "merged", "pydocs"), (2, 4, 8), (20, 50, 100, 400))
    kept = [size for size in sizes if size[0] != "merged" or size[2] < 400]
    return [
        str(Cell(*size, measure, method)) for size in kept for measure in ("AP", "nDCG@10") for method in METHODS
    ]


class Pool:
    """Queries to draw from, with the values of everything that needs no learning on all of them."""

    def __init__(self, aligned: Aligned, measure: Measure) -> None:
        self.aligned = aligned
        self._evaluator = AlignedEvaluator(aligned, [measure])
        n_rankers = len(aligned.rankers)
        singles = [single_values(aligned, name, measure) for name in aligned.rankers]
        self.fixed = dict(zip(ranker_ids(aligned.rankers), singles, strict=True))
        self.fixed[UNIFORM] = self.values(np.full(n_rankers, 1.0 / n_rankers))
        self.fixed[RRF] = self.values(rule_scores(aligned, "rrf"))

    def values(self, blend: np.ndarray) -> np.ndarray:
        """Return the measure of every query of the pool."""
        return self._evaluator.values(blend)[:, 0]


@cache
def pool_of(name: str, n_rankers: int, measure: str) -> Pool:
    """Return the pool with the first of its rankers; queries without relevant documents are left out."""
    runs, qrels = ranked_pool(name, POOL_FILE)
    aligned = align_runs({run: runs[run] for run in list(runs)[:n_rankers]}, qrels, normalize="minmax")
    return Pool(aligned.select(np.flatnonzero(aligned.n_relevant() > 0)), parse_measure(measure))


def draw(cell: Cell, number: int) -> dict[str, Any]:
    """Return one draw: for every rival the estimate, the ends by every rule, and the truth."""
    pool = pool_of(cell.pool, cell.n_rankers, cell.measure)
    n_all = len(pool.aligned.queries)
    inside, outside = drawn_queries(cell, number, n_all)
    options = {"measure": cell.measure} if cell.method == "auto" else {}
    fuser, evidence = gather_evidence(
        pool.aligned.select(inside), lambda: make_fuser(cell.method, **options), parse_measure(cell.measure)
    )
    learned = pool.values(fuser.weights_)[outside].mean()
    rows = {}
    for rival in (*pool.fixed, BEST_SINGLE, STRONGEST):
        asked = evidence.strongest if rival == STRONGEST else rival
        own = ranker_ids([evidence.best_name])[0] if asked == BEST_SINGLE else asked
        truth = float(learned - pool.fixed[own][outside].mean())
        rows[rival] = {"truth": truth, "outcome": evidence.outcome(asked), **ends(evidence, asked)}
    return {"cell": str(cell), "draw": number, "n_all": n_all, "rivals": rows}


@cache
def pool_of_subset(name: str, n_rankers: int, measure: str, subset: int) -> Pool:
    """Return the pool with some of its rankers, and without the documents that only the others returned."""
    whole = pool_of(name, n_rankers, measure).aligned
    return Pool(select_rankers(whole, [whole.rankers[k] for k in members_of(subset)]), parse_measure(measure))


def drawn_queries(cell: Cell, number: int, n_all: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries of a draw, and the rest of the pool."""
    seed = [number, cell.n_queries, cell.n_rankers, 7]
    inside = np.random.default_rng(seed).choice(n_all, cell.n_queries, replace=False)
    return inside, np.setdiff1d(np.arange(n_all), inside)


class Truth:
    """What subsets of the rankers, learned from the queries of a draw, reach on the rest of the pool."""

    def __init__(self, cell: Cell, number: int) -> None:
        pool = pool_of(cell.pool, cell.n_rankers, cell.measure)
        self.n_all = len(pool.aligned.queries)
        self._cell, (self._inside, self._outside) = cell, drawn_queries(cell, number, self.n_all)
        self.drawn = pool.aligned.select(self._inside)
        self.everyone = (1 << cell.n_rankers) - 1

    @cache  # noqa: B019 - lives as long as one draw
    def mean(self, subset: int) -> float:
        """Return the mean of a subset; no rankers are worth 0."""
        if subset == 0:
            return 0.0
        cell = self._cell
        of = pool_of_subset(cell.pool, cell.n_rankers, cell.measure, subset)
        options = {"measure": cell.measure} if cell.method == "auto" else {}
        weights = np.ones(1)
        if subset.bit_count() > 1:
            weights = make_fuser(cell.method, **options).fit(of.aligned.select(self._inside)).weights_
        return float(of.values(weights)[self._outside].mean())


def draw_losses(cell: Cell, number: int) -> dict[str, Any]:
    """Return one draw: for every ranker the loss without it, its intervals, the verdict, and the truth."""
    truth = Truth(cell, number)
    found = measure_losses(truth.drawn, method=cell.method, measure=parse_measure(cell.measure), folds=5)
    held_out = found.left_out.held_out
    rows = {
        part.name: {
            "truth": truth.mean(truth.everyone) - truth.mean(truth.everyone & ~(1 << k)),
            **figure_ends(part.loss, held_out[0] - held_out[k + 1]),
            "verdict": found.verdicts[part.name],
        }
        for k, part in enumerate(found.rankers)
    }
    return {"cell": str(cell), "draw": number, "n_all": truth.n_all, "losses": rows}


def draw_shapley(cell: Cell, number: int) -> dict[str, Any]:
    """Return one draw: for every ranker the Shapley value, its intervals and the truth."""
    truth = Truth(cell, number)
    found = measure_worth(truth.drawn, method=cell.method, measure=cell.measure, folds=5)
    true_values = shapley_values(cell.n_rankers, lambda subset: np.array(truth.mean(subset)))
    rows = {
        part.name: {"truth": float(true_values[k]), **figure_ends(part.shapley, None)}
        for k, part in enumerate(found.rankers)
    }
    return {"cell": str(cell), "draw": number, "n_all": truth.n_all, "shapley": rows}


def figure_ends(figure: Figure, differences: np.ndarray | None) -> dict[str, Any]:
    """Return the estimate and its intervals; Student's where the differences of all queries are given."""
    found = {
        "estimate": figure.value,
        "printed": [figure.low, figure.high],
        "joint": [figure.joint_low, figure.joint_high],
    }
    if differences is not None:
        n = len(differences)
        half = float(stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n))
        found["t"] = [figure.value - half, figure.value + half]
    return found


def print_losses(draws: list[dict[str, Any]]) -> None:
    """Print the coverage of losses or Shapley values, cell by cell."""
    wrong = {"keep": "wrong: keep", "hurts": "wrong: hurts", "not needed": "wrong: not needed"}
    columns = ["each ranker alone", "above", "below", "joint", "t alone", *wrong.values(), "undecided"]
    print_header(["cell", "draws", *columns, "bias"])
    for cell in dict.fromkeys(one["cell"] for one in draws):
        of_cell = [one for one in draws if one["cell"] == cell]
        missed: dict[str, list[tuple[bool, bool]]] = {"printed": [], "t": []}
        joint, verdicts, errors = [], [], []
        for one in of_cell:
            longer = np.sqrt(one["n_all"] / (one["n_all"] - Cell.parse(cell).n_queries))
            rows = list((one.get("losses") or one["shapley"]).values())
            for rule, found in missed.items():
                found += [sides(row["estimate"], row[rule], row["truth"], longer) for row in rows if rule in row]
            joint.append(not any(any(sides(row["estimate"], row["joint"], row["truth"], longer)) for row in rows))
            verdicts += [_judged(row) for row in rows]
            errors += [row["estimate"] - row["truth"] for row in rows]
        n, (above, below) = len(verdicts), np.array(missed["printed"]).sum(axis=0).tolist()
        rates = [f"{verdicts.count(verdict) / n:.1%}" for verdict in (*wrong, "undecided")]
        student = share(sum(not any(one) for one in missed["t"]), n) if missed["t"] else "-"
        print(
            f"| {cell} | {len(of_cell)} | {share(n - above - below, n)} | {above / n:.1%} | {below / n:.1%} "
            f"| {share(sum(joint), len(joint))} | {student} | {' | '.join(rates)} | {np.mean(errors):+.4f} |"
        )


def _judged(row: dict[str, Any]) -> str:
    """Return the verdict of a row if it is wrong or undecided; else nothing."""
    truth, verdict = row["truth"], row.get("verdict", "")
    right = {"keep": truth > 0.0, "hurts": truth < 0.0, "not needed": truth <= NEGLIGIBLE_LOSS, "undecided": False}
    return "" if right.get(verdict, True) else verdict


def sides(estimate: float, interval: list[float], truth: float, longer: float) -> tuple[bool, bool]:
    """Return whether an interval, moved out for the error of the rest of the pool, is above or below the truth."""
    low, high = (estimate + longer * (end - estimate) for end in interval)
    return low > truth, high < truth


def ends(evidence: Evidence, rival: str) -> dict[str, Any]:
    """Return the estimate and the ends of its interval by every rule."""
    gain = evidence.gains[rival]
    theirs = evidence.best_single if rival == BEST_SINGLE else (evidence.rules | evidence.singles)[rival]
    differences = evidence.held_out.per_query - theirs
    n, k = len(differences), len(evidence.held_out.weights)
    half = float(stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    widened = {"t": half, "nb": half * np.sqrt(1.0 + k / (k - 1.0)), "1.3": 1.3 * half}
    middle = gain.difference
    others = {rule: [middle - width, middle + width] for rule, width in widened.items()}
    return {"estimate": middle, "printed": [gain.low, gain.high], **others}


def lines_of(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the draws of a kind that a file holds, without a last line that was cut short."""
    if path.exists():
        *lines, rest = path.read_text(encoding="utf-8").split("\n")
        if rest:
            print(f"{path}: the last line has no end and is left out", flush=True)
        for line in lines:
            found = json.loads(line)
            if kind in found:
                yield found


def cut_last_line(path: Path) -> None:
    """Take away what comes after the last end of a line, so that the next line can follow."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


DRAW = {"rivals": draw, "losses": draw_losses, "shapley": draw_shapley}


def _start_worker(pool_file: Path | None) -> None:
    global POOL_FILE
    POOL_FILE = pool_file
    warnings.simplefilter("ignore", ConvergenceWarning)


def _draw_in_worker(kind: str, cell: str, number: int) -> dict[str, Any]:
    started = time.process_time()
    found = DRAW[kind](Cell.parse(cell), number)
    return {**found, "cpu_s": round(time.process_time() - started, 2)}


def drawn(tasks: list[tuple[str, str, int]], *, jobs: int, seconds: float | None) -> Iterator[dict[str, Any]]:
    """Yield the draws as they are done, by so many processes with one thread each; begin none after `seconds`."""
    os.environ |= dict.fromkeys(THREADS, "1")  # the processes inherit them, and are started below
    ends = time.monotonic() + (float("inf") if seconds is None else seconds)
    context, left = multiprocessing.get_context("spawn"), iter(tasks)
    with ProcessPoolExecutor(jobs, context, _start_worker, (POOL_FILE,)) as workers:
        running: set[Future[dict[str, Any]]] = set()
        while True:
            while len(running) < jobs and time.monotonic() < ends and (task := next(left, None)) is not None:
                running.add(workers.submit(_draw_in_worker, *task))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


class Count(NamedTuple):
    """Draws of one cell against one rival, under one rule."""

    n: int
    covered: int
    above: int
    """Intervals wholly above the truth."""
    below: int
    better: int
    """Verdicts "better" although the truth is below 0."""
    worse: int


def count(draws: Iterable[dict[str, Any]], rivals: Iterable[str], rule: str) -> Count:
    """Add up; the ends are moved out for the error of the rest of the pool."""
    found = []
    for one in draws:
        n = int(one["cell"].split(":")[2])
        longer = np.sqrt(one["n_all"] / (one["n_all"] - n))
        for rival in rivals:
            row = one["rivals"][rival]
            (low, high), truth = row[rule], row["truth"]
            above, below = sides(row["estimate"], row[rule], truth, longer)
            found.append((not above and not below, above, below, low > 0.0 > truth, high < 0.0 < truth))
    return Count(len(found), *np.array(found).sum(axis=0).tolist())


def share(part: int, whole: int) -> str:
    """Write a share with its own 95 % interval (Clopper and Pearson)."""
    low, high = stats.binomtest(part, whole).proportion_ci()
    return f"{part / whole:.3f} [{low:.3f}, {high:.3f}]"


def print_header(columns: list[str]) -> None:
    """Print the head of a Markdown table."""
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def print_table(draws: list[dict[str, Any]]) -> None:
    """Print the coverage of every cell and rival, by every setting, and of everything under every rule."""
    cells = list(dict.fromkeys(one["cell"] for one in draws))
    kinds: dict[str, list[str] | None] = {"each ranker": None}
    kinds |= {name: [name] for name in (UNIFORM, RRF, BEST_SINGLE, STRONGEST)}
    columns = ["rival", "covered", "above", "below", "wrong: better", "wrong: worse"]
    print_header(["cell", "draws", *columns])

    def rivals_of(one: dict[str, Any], kind: list[str] | None) -> list[str]:
        fixed = (UNIFORM, RRF, BEST_SINGLE, STRONGEST)
        return [name for name in one["rivals"] if name not in fixed] if kind is None else kind

    for cell in cells:
        of_cell = [one for one in draws if one["cell"] == cell]
        for label, kind in kinds.items():
            c = count(of_cell, rivals_of(of_cell[0], kind), "printed")
            rates = (c.above, c.below, c.better, c.worse)
            cells_text = " | ".join(f"{rate / c.n:.1%}" for rate in rates)
            print(f"| {cell} | {len(of_cell)} | {label} | {share(c.covered, c.n)} | {cells_text} |")

    def counted(some: list[dict[str, Any]], kind: list[str] | None, rule: str) -> Count:
        parts = [count([one], rivals_of(one, kind), rule) for one in some]
        return Count(*np.array(parts).sum(axis=0).tolist())

    print()
    print_header(["cells with", "cells", "draws", *kinds])
    for field in Cell._fields:
        values = sorted({getattr(Cell.parse(cell), field) for cell in cells})
        for value in values:
            some = [one for one in draws if getattr(Cell.parse(one["cell"]), field) == value]
            found = [counted(some, kind, "printed") for kind in kinds.values()]
            shares = " | ".join(f"{c.covered / c.n:.3f}" for c in found)
            n_cells = len({one["cell"] for one in some})
            print(f"| {field} {value} | {n_cells} | {len(some)} | {shares} |")
    print()
    print_header(["rule", *columns])
    for rule in RULES:
        for label, kind in kinds.items():
            c = counted(draws, kind, rule)
            rates = " | ".join(f"{rate / c.n:.1%}" for rate in (c.above, c.below, c.better, c.worse))
            print(f"| {rule} | {label} | {share(c.covered, c.n)} | {rates} |")


def main() -> None:
    global POOL_FILE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", action="store_true", help="of what is lost without each ranker")
    parser.add_argument("--shapley", action="store_true", help="of the Shapley values")
    parser.add_argument(
        "--cells", help=f"default: {','.join(SMALL)}; of losses and Shapley values: {','.join(LOSSES)}"
    )
    parser.add_argument("--grid", nargs="?", const="*", help='all cells of the study, or those like "pydocs:8:*"')
    parser.add_argument("--list", action="store_true", help="only print the names of the cells")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, which seeds it")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--seconds", type=float, help="begin no draw after so many seconds")
    parser.add_argument("--pools", type=Path, help="the file of benchmarks._ranked_pools")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there already is not drawn again")
    parser.add_argument("--table", type=Path, nargs="+", help="only add up the lines of these files")
    options = parser.parse_args()
    kind = "losses" if options.losses else "shapley" if options.shapley else "rivals"
    show = print_table if kind == "rivals" else print_losses
    cells = options.cells.split(",") if options.cells else SMALL if kind == "rivals" else LOSSES
    if options.grid is not None:
        cells = [cell for cell in grid() if fnmatchcase(cell, options.grid)]
    if options.list:
        print("\n".join(cells))
        return
    if options.table is not None:
        lines = [line for path in options.table for line in lines_of(path, kind)]
        show(list({(line["cell"], line["draw"]): line for line in lines}.values()))
        return
    print(json.dumps({"genm": __version__, "machine": platform.machine(), "draws": options.draws}), flush=True)
    found = [] if options.output is None else list(lines_of(options.output, kind))
    done = {(one["cell"], one["draw"]) for one in found}
    numbers = range(options.first, options.first + options.draws)
    blocks = [numbers[start : start + BLOCK] for start in range(0, len(numbers), BLOCK)]
    tasks = [(cell, number) for block in blocks for cell in cells for number in block]
    left = [(kind, *task) for task in tasks if task not in done]
    POOL_FILE = options.pools
    if options.output is not None:
        cut_last_line(options.output)
    n_new = 0
    for one in drawn(left, jobs=options.jobs, seconds=options.seconds):
        n_new += 1
        found.append(one)
        if options.output is not None:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
    print(f"{n_new} draws made, {len(left) - n_new} of {len(tasks)} left", flush=True)
    show(found)


if __name__ == "__main__":
    main()
