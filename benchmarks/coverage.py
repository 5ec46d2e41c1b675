"""How often the printed 95 % intervals of held-out gains hold, and how often a verdict is wrong.

    python -m benchmarks.coverage                                   # a small sample of the cells, some minutes
    python -m benchmarks.coverage --cells pydocs:4:50:AP:auto,generated:8:20:AP:newton --draws 200 --output c.jsonl
    python -m benchmarks.coverage --table c.jsonl                   # what the lines of a file add up to
    python -m benchmarks.coverage --losses --draws 100 --output l.jsonl     # the losses of genm explain

A cell is POOL:RANKERS:QUERIES:MEASURE:METHOD. Each draw takes that many queries from the pool, without
replacement, learns weights from them and computes the evidence of `genm fit`. What an interval claims to hold is
the mean gain of these very weights over the rival on further queries of the same kind; the truth is their mean
gain on the rest of the pool. That rest is finite and has an error of its own: the difference of two means, of n
and of N - n queries, varies sqrt(N / (N - n)) times as much as the first alone, so the distance from the estimate
to either end is taken that much longer before it is compared with the truth. (MC has 383 queries, so n = 400 does
not exist there.)

Pools: pydocs and merged (MC), with up to eight rankers of which some are near-copies, the top 100 of each;
generated, 3,000 queries with rankers from good to useless. Draws that the output file holds already are not drawn
again, so a long study can be run in parts. The candidates beside the printed interval are Student's t without the
variance of learning ("t"), the same with Nadeau and Bengio's factor ("nb", variance times 1 + k / (k - 1)), and
widened by 1.3 ("1.3").

A wrong verdict is "better" where the truth is below 0, or "worse" where it is above. "Under a true null" is
stricter: had the gain been 0, the verdict is wrong whenever the interval lies wholly above or wholly below the
truth; the two shares stand in the columns "above" and "below". Each should be at most 2.5 %.

`--losses` does the same for what `genm explain`, `fit` and `report` print as lost without a ranker. The truth is
the mean on the rest of the pool of the weights learned from the drawn queries with all rankers, less that of the
weights learned without the ranker. "joint" is the share of draws in which the joint intervals of all rankers hold.
Wrong verdicts: "keep" where the truth is not above 0, "hurts" where it is, "not needed" where it is above the
margin.
"""

import argparse
import json
import platform
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from genm.align import Aligned, align_runs, select_rankers
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator, Measure, parse_measure
from genm.evidence import BEST_SINGLE, RRF, UNIFORM, Evidence, gather_evidence, ranker_ids, single_values
from genm.explain import measure_losses
from genm.explain.losses import NEGLIGIBLE_LOSS
from genm.fuse import rule_scores
from genm.learn import make_fuser
from genm.rankers import make_ranker, rank_collection
from genm.records import Qrels, Run
from genm.version import __version__

SMALL = (
    "pydocs:4:20:AP:auto",
    "pydocs:8:50:AP:auto",
    "merged:2:50:AP:auto",
    "generated:4:20:AP:auto",
    "generated:8:100:AP:auto",
)
LOSSES = ("generated:4:50:AP:auto", "pydocs:4:50:AP:auto")
RULES = ("printed", "t", "nb", "1.3")
STRONGEST = "strongest"


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
def runs_of(pool: str) -> tuple[dict[str, Run], Qrels]:
    """Return eight runs, the most useful first, and the judgments."""
    if pool == "generated":
        return generated()
    collection = load_collection(pool)
    rankers = {
        "bm25": make_ranker("bm25"),
        "lsa": make_ranker("lsa"),
        "tfidf": make_ranker("tfidf"),
        "plsi": make_ranker("plsi"),
        "bm25, b=.2": make_ranker("bm25", b=0.2),
        "tfidf, log": make_ranker("tfidf", tf="log"),
        "lsa, 20": make_ranker("lsa", n_factors=(20,)),
        "bm25, k1=3": make_ranker("bm25", k1=3.0),
    }
    return rank_collection(collection, rankers, top=100), collection.qrels


def generated(*, n_queries: int = 3000, n_docs: int = 60, seed: int = 1) -> tuple[dict[str, Run], Qrels]:
    """Return made-up runs: a document's score is its relevance, as far as the ranker sees it, plus shared noise."""
    rng = np.random.default_rng(seed)
    strength = np.array([1.0, 0.8, 0.6, 0.5, 0.3, 0.2, 0.9, 0.0])
    runs: list[dict[str, dict[str, float]]] = [{} for _ in strength]
    qrels: dict[str, dict[str, int]] = {}
    for q in range(n_queries):
        relevant = np.arange(n_docs) < min(1 + rng.geometric(0.3), n_docs // 2)
        seen = (strength + rng.normal(0.0, 0.5, len(strength))) * rng.lognormal(0.0, 0.5)
        noise = 0.6 * rng.normal(size=(n_docs, 1)) + rng.normal(size=(n_docs, len(strength)))
        scores, ids = relevant[:, None] * seen + noise, [f"d{i:02}" for i in rng.permutation(n_docs)]
        query_id = f"q{q:05}"
        qrels[query_id] = {ids[i]: 1 for i in np.flatnonzero(relevant).tolist()}
        for k, run in enumerate(runs):
            top = np.argsort(-scores[:, k], kind="stable")[:30].tolist()
            run[query_id] = {ids[i]: float(scores[i, k]) for i in top}
    return {f"r{k}": Run.from_dict(run, name=f"r{k}") for k, run in enumerate(runs)}, Qrels.from_dict(qrels)


@cache
def pool_of(name: str, n_rankers: int, measure: str) -> Pool:
    """Return the pool with the first of its rankers; queries without relevant documents are left out."""
    runs, qrels = runs_of(name)
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
def pool_without(name: str, n_rankers: int, measure: str, left_out: int) -> Pool:
    """Return the pool without one of its rankers, and without the documents that only that one returned."""
    whole = pool_of(name, n_rankers, measure).aligned
    names = [ranker for k, ranker in enumerate(whole.rankers) if k != left_out]
    return Pool(select_rankers(whole, names), parse_measure(measure))


def drawn_queries(cell: Cell, number: int, n_all: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries of a draw, and the rest of the pool."""
    seed = [number, cell.n_queries, cell.n_rankers, 7]
    inside = np.random.default_rng(seed).choice(n_all, cell.n_queries, replace=False)
    return inside, np.setdiff1d(np.arange(n_all), inside)


def draw_losses(cell: Cell, number: int) -> dict[str, Any]:
    """Return one draw: for every ranker the loss without it, its intervals, the verdict, and the truth."""
    pool = pool_of(cell.pool, cell.n_rankers, cell.measure)
    n_all = len(pool.aligned.queries)
    inside, outside = drawn_queries(cell, number, n_all)
    options = {"measure": cell.measure} if cell.method == "auto" else {}

    def true_mean(of: Pool) -> float:
        fuser = make_fuser(cell.method, **options).fit(of.aligned.select(inside))
        return float(of.values(fuser.weights_)[outside].mean())

    found = measure_losses(
        pool.aligned.select(inside), method=cell.method, measure=parse_measure(cell.measure), folds=5
    )
    everyone = true_mean(pool)
    rows = {
        part.name: {
            "truth": everyone - true_mean(pool_without(cell.pool, cell.n_rankers, cell.measure, k)),
            "estimate": part.loss.value,
            "printed": [part.loss.low, part.loss.high],
            "joint": [part.loss.joint_low, part.loss.joint_high],
            "verdict": found.verdicts[part.name],
        }
        for k, part in enumerate(found.rankers)
    }
    return {"cell": str(cell), "draw": number, "n_all": n_all, "losses": rows}


def print_losses(draws: list[dict[str, Any]]) -> None:
    """Print the coverage of the losses, cell by cell."""
    wrong = {"keep": "wrong: keep", "hurts": "wrong: hurts", "not needed": "wrong: not needed"}
    print_header(["cell", "draws", "each ranker alone", "above", "below", "joint", *wrong.values(), "undecided"])
    for cell in dict.fromkeys(one["cell"] for one in draws):
        of_cell = [one for one in draws if one["cell"] == cell]
        alone, joint, mistakes, undecided = [], [], [], 0
        for one in of_cell:
            longer = np.sqrt(one["n_all"] / (one["n_all"] - Cell.parse(cell).n_queries))
            holds = []
            for row in one["losses"].values():
                truth, verdict = row["truth"], row["verdict"]
                sides = {rule: _sides(row["estimate"], row[rule], truth, longer) for rule in ("printed", "joint")}
                alone.append(sides["printed"])
                holds.append(not any(sides["joint"]))
                right = {"keep": truth > 0.0, "hurts": truth < 0.0, "not needed": truth <= NEGLIGIBLE_LOSS}
                mistakes.append(verdict if not right.get(verdict, True) else "")
                undecided += verdict == "undecided"
            joint.append(all(holds))
        n = len(alone)
        above, below = np.array(alone).sum(axis=0).tolist()
        rates = [f"{mistakes.count(verdict) / n:.1%}" for verdict in wrong]
        print(
            f"| {cell} | {len(of_cell)} | {share(n - above - below, n)} | {above / n:.1%} | {below / n:.1%} "
            f"| {share(sum(joint), len(joint))} | {' | '.join(rates)} | {undecided / n:.1%} |"
        )


def _sides(estimate: float, interval: list[float], truth: float, longer: float) -> tuple[bool, bool]:
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


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the draws that a file holds."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            if "cell" in found:
                yield found


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
            above, below = _sides(row["estimate"], row[rule], truth, longer)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", action="store_true", help="of what is lost without each ranker")
    parser.add_argument("--cells", help=f"default: {','.join(SMALL)}; of losses: {','.join(LOSSES)}")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, which seeds it")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there already is not drawn again")
    parser.add_argument("--table", type=Path, help="only add up the lines of this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    draw_one, show = (draw_losses, print_losses) if options.losses else (draw, print_table)
    cells = options.cells.split(",") if options.cells else LOSSES if options.losses else SMALL
    if options.table is not None:
        show(list(lines_of(options.table)))
        return
    print(json.dumps({"genm": __version__, "machine": platform.machine(), "draws": options.draws}), flush=True)
    found = [] if options.output is None else list(lines_of(options.output))
    done = {(one["cell"], one["draw"]) for one in found}
    for cell in map(Cell.parse, cells):
        for number in range(options.first, options.first + options.draws):
            if (str(cell), number) in done:
                continue
            found.append(draw_one(cell, number))
            if options.output is not None:
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    show(found)


if __name__ == "__main__":
    main()
