"""What to judge next: judgments of the collections are hidden and revealed on request.

    python -m benchmarks.judging                                  # draws for choosing, some CPU minutes
    python -m benchmarks.judging --seeds 100:105 --output j.jsonl # draws that were not used for choosing
    python -m benchmarks.judging --table j.jsonl                  # what the lines of a file add up to

A draw is a random two thirds of a collection's queries; rankers are bm25, tfidf, lsa and plsi, the top 100 of each.

Comparisons: how many judgments an order needs until the sign of the estimated difference of two systems is right
and stays right, up to 2,000 (counted as 4,000 where it is still wrong). Only differences of at least .01 AP are
asked about. The systems: weights learned from all judgments against equal weights, equal weights against single
rankers, and two rankers. Every order is read by expected AP, and depth-k pooling also as usual, where unjudged
documents count as not relevant.

Weights: MAP on the remaining third of the queries, with all judgments, of weights that were learned from some
judgments, less that of weights learned from all judgments.

Traps: the estimated less the true difference of equal weights and the best single ranker, from pools that are
judged completely down to a depth, as usual and by expected AP; and how often the interval for unjudged documents
alone holds the difference of these queries under all judgments.

Stubs: a made-up judge grades 500 pairs (depth-k) with known error rates and always says that it is .9 sure; people
have judged 60 of the pairs. MAP on the remaining third, less that of weights learned from the true grades of the
same pairs, where the judge's grades are relevant from 1 or from 2 on, or count by their probability: by the judge's
own confidence, or calibrated against the people's sample (`genm.judge.store.settle`).
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from genm._math.expected_ap import expected_ap, expected_size
from genm.align import UNJUDGED, Aligned, align_runs
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator
from genm.judge.estimates import difference_of
from genm.judge.pooling import METHODS, next_rows
from genm.judge.store import PERSON, Opinion, settle
from genm.judge.systems import Target, target_of
from genm.learn import AutoFuser, ExpectedFuser
from genm.learn.relevance import known_relevant
from genm.rankers import rank_collection

COLLECTIONS = ("med", "cran", "cisi", "cacm", "pydocs")
RANKERS = ("bm25", "tfidf", "lsa", "plsi")
BUDGETS = (10, 20, 30, 40, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1250, 1500, 2000)
LEARNING_BUDGETS = (50, 100, 200, 500, 1000)
DEPTHS = (0, 1, 5, 20)
STUB = "model:stub"
STUB_JUDGES = {
    "lenient": ((0.03, 0.12, 0.40, 0.45), (0.45, 0.35, 0.15, 0.05)),
    "strict": ((0.35, 0.15, 0.30, 0.20), (0.90, 0.07, 0.02, 0.01)),
    "good": ((0.05, 0.10, 0.35, 0.50), (0.85, 0.10, 0.04, 0.01)),
}
"""Probabilities of the grades 0 to 3 for relevant documents, and for others."""
STUB_PAIRS, SAMPLE, CONFIDENCE = 500, 60, 0.9
STILL_WRONG = 4000
LEAST = 0.01
MOST_BELOW = 0.002
"""How far below equal weights learned ones may be, in the mean over draws, at any budget on any collection."""


@cache
def load(name: str) -> Aligned:
    """Return the aligned runs of a collection with all its judgments."""
    collection = load_collection(name)
    return align_runs(rank_collection(collection, RANKERS, top=100), collection.qrels)


def draw(name: str, seed: int) -> tuple[Aligned, Aligned]:
    """Return a random two thirds of the queries, and the others."""
    aligned = load(name)
    order = np.random.default_rng(1000 + seed).permutation(len(aligned.queries))
    cut = round(len(order) * 2 / 3)
    return aligned.select(np.sort(order[:cut])), aligned.select(np.sort(order[cut:]))


def hidden(aligned: Aligned) -> Aligned:
    """Return the same runs without any judgment."""
    return replace(
        aligned,
        relevance=np.full(len(aligned.doc), UNJUDGED, np.int32),
        unretrieved=np.zeros(0, np.int32),
        unretrieved_starts=np.zeros(len(aligned.queries) + 1, np.int64),
    )


def grades_on_request(aligned: Aligned) -> np.ndarray:
    """Return the grade that a judge would give to each row: what the collection does not list is not relevant."""
    return np.where(aligned.relevance == UNJUDGED, 0, aligned.relevance).astype(np.int32)


def judged_by(order: str, start: Aligned, grades: np.ndarray, target: Target, budgets: tuple[int, ...], seed: int):
    """Yield the runs with as many judgments as each budget allows, asked for by this order."""
    now, done = replace(start, relevance=start.relevance.copy()), 0
    for budget in budgets:
        while done < budget:
            rows = next_rows(now, target, order, budget - done, seed=seed)
            if order == "mtf":  # every round needs the judgments of the one before
                rows = rows[: max(1, min(len(rows), len(now.queries)))]
            if len(rows) == 0:
                return
            now.relevance[rows] = grades[rows]
            done += len(rows)
        yield budget, now


def true_difference(aligned: Aligned, target: Target) -> float:
    """Return the difference in MAP under all judgments."""
    p = (aligned.relevance > 0).astype(np.float64)
    size = expected_size(aligned.starts, p, known_relevant(aligned))
    first, second = (expected_ap(aligned.starts, ranks, p, size).value for ranks in target.ranks)
    return float((first - second).mean())


def judgments_needed(estimates: list[float], truth: float) -> int:
    """Return the budget from which on the sign is right."""
    wrong = [i for i, estimate in enumerate(estimates) if np.sign(estimate) != np.sign(truth)]
    if not wrong:
        return BUDGETS[0]
    return STILL_WRONG if wrong[-1] == len(BUDGETS) - 1 else BUDGETS[wrong[-1] + 1]


def best_single(aligned: Aligned) -> str:
    evaluator = AlignedEvaluator(aligned, ["AP"])
    return aligned.rankers[int(np.argmax([evaluator.values(w)[:, 0].mean() for w in np.eye(len(aligned.rankers))]))]


def compare_orders(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield, for each pair of systems and order, the judgments that it needs."""
    aligned, _ = draw(name, seed)
    start, grades = hidden(aligned), grades_on_request(aligned)
    learned = dict(zip(aligned.rankers, AutoFuser(repeats=1).fit(aligned).weights_.tolist(), strict=True))
    pairs = {
        "learned against equal": (learned, "equal"),
        "equal against bm25": ("equal", "bm25"),
        "equal against lsa": ("equal", "lsa"),
        "bm25 against lsa": ("bm25", "lsa"),
    }
    for label, pair in pairs.items():
        target = target_of(start, pair)
        truth = true_difference(aligned, target)
        if abs(truth) < LEAST:
            yield {"kind": "small", "collection": name, "seed": seed, "pair": label}
            continue
        for order in METHODS:
            found = [
                difference_of(now, target) for _, now in judged_by(order, start, grades, target, BUDGETS, seed)
            ]
            needed = judgments_needed([one.difference for one in found], truth)
            covered = [abs(one.difference - truth) <= 1.96 * one.unjudged_error for one in found]
            row = {"kind": "order", "collection": name, "seed": seed, "pair": label, "order": order}
            yield row | {"needed": needed, "covered": float(np.mean(covered))}
            if order == "depth":
                needed = judgments_needed([one.if_nonrelevant for one in found], truth)
                yield row | {"order": "depth, unjudged not relevant", "needed": needed}


def learn_from_few(name: str, seed: int, orders: Sequence[str] = METHODS) -> Iterator[dict[str, Any]]:
    """Yield the loss of weights that were learned from some judgments."""
    aligned, rest = draw(name, seed)
    start, grades = hidden(aligned), grades_on_request(aligned)
    evaluator = AlignedEvaluator(rest, ["AP"])

    def value(weights: np.ndarray) -> float:
        return float(evaluator.values(weights)[:, 0].mean())

    best = value(AutoFuser(repeats=1).fit(aligned).weights_)
    row = {"kind": "weights", "collection": name, "seed": seed}
    equal = value(np.full(len(aligned.rankers), 1.0 / len(aligned.rankers))) - best
    target = target_of(start)
    for order in orders:
        for budget, now in judged_by(order, start, grades, target, LEARNING_BUDGETS, seed):
            n = int((now.n_relevant() > 0).sum())
            equally = np.full(len(now.rankers), 1.0)
            weights = ExpectedFuser(repeats=1).fit(now).weights_ if n else equally
            yield row | {"way": order, "budget": budget, "loss": value(weights) - best, "informative": n}
            if order == "depth":
                usual = AutoFuser(repeats=1).fit(now).weights_ if n else equally
                yield row | {"way": "depth, unjudged not relevant", "budget": budget, "loss": value(usual) - best}
            if order == orders[0]:
                yield row | {"way": "equal weights", "budget": budget, "loss": equal}


def traps(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the error of complete shallow pools for fusion against the best single ranker."""
    aligned, _ = draw(name, seed)
    start, grades = hidden(aligned), grades_on_request(aligned)
    target = target_of(start, ("equal", best_single(aligned)))
    truth = true_difference(aligned, target)
    depth_of = np.min([np.where(ranks > 0, ranks, 10**9) for ranks in target.ranks], axis=0)
    for depth in DEPTHS:
        now = replace(start, relevance=np.where(depth_of <= depth, grades, UNJUDGED).astype(np.int32))
        found = difference_of(now, target)
        row = {"kind": "trap", "collection": name, "seed": seed, "depth": depth}
        yield row | {"usual": found.if_nonrelevant - truth, "expected": found.difference - truth}


def judge_by_stub(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the loss of weights learned from a made-up judge's grades, as they are read in several ways."""
    aligned, rest = draw(name, seed)
    start, grades = hidden(aligned), grades_on_request(aligned)
    evaluator, rng = AlignedEvaluator(rest, ["AP"]), np.random.default_rng(seed)
    rows = next_rows(start, target_of(start), "depth", STUB_PAIRS, seed=seed)
    by_people = set(rng.permutation(rows)[:SAMPLE].tolist())

    def value(probability: dict[int, float]) -> float:
        relevance, likely = start.relevance.copy(), np.full(len(start.doc), np.nan)
        for row, p in probability.items():
            relevance[row], likely[row] = p >= 0.5, p
        now = replace(start, relevance=relevance, probability=likely)
        return float(evaluator.values(ExpectedFuser(repeats=1).fit(now).weights_)[:, 0].mean())

    truth = {row: float(grades[row] > 0) for row in rows.tolist()}
    best = value(truth)
    equal = float(evaluator.values(np.full(len(start.rankers), 1.0))[:, 0].mean())
    row = {"kind": "stub", "collection": name, "seed": seed}
    for judge, (if_relevant, if_not) in STUB_JUDGES.items():
        given = {i: int(rng.choice(4, p=if_relevant if true else if_not)) for i, true in truth.items()}
        opinions = [said(i, STUB, grade, CONFIDENCE) for i, grade in given.items()]
        sample = [said(i, PERSON, int(truth[i]), None) for i in by_people]
        people = {i: truth[i] for i in by_people}
        yield row | {"judge": judge, "way": "equal weights", "loss": equal - best}
        for level in (1, 2):
            hard = {i: float(grade >= level) for i, grade in given.items()}
            yield row | {"judge": judge, "way": f"grades from {level} on", "loss": value(hard | people) - best}
        for way, known in (("stated confidence", []), ("calibrated", sample)):
            found = {int(one.document): one.probability for one in settle([*opinions, *known])}
            yield row | {"judge": judge, "way": way, "loss": value(found | people) - best}


def said(row: int, source: str, grade: int, confidence: float | None) -> Opinion:
    """Return an opinion on a row of the runs."""
    return Opinion(row, f"{source} {row}", 0, source, source, "q", str(row), "grade", grade, confidence, "", None)


def table(rows: list[dict[str, Any]]) -> None:
    """Print what the rows add up to, for each part that they have."""
    parts = {"order": table_of_orders, "weights": table_of_weights, "trap": table_of_traps, "stub": table_of_stubs}
    for kind, of_part in parts.items():
        if any(row["kind"] == kind for row in rows):
            of_part(rows)


def table_of_orders(rows: list[dict[str, Any]]) -> None:
    """Print the judgments that each order needs."""
    orders = [row for row in rows if row["kind"] == "order"]
    ways = list(dict.fromkeys(row["order"] for row in orders))
    pairs = list(dict.fromkeys(row["pair"] for row in orders))
    small = sum(row["kind"] == "small" for row in rows)
    print(f"Judgments until the sign stays right ({small} differences below {LEAST} are not asked about)")
    print(f"{'':32}" + "".join(f"{pair:>24}" for pair in (*pairs, "all")) + f"{'of depth':>10}{'covered':>9}")
    cells = {(row["collection"], row["seed"], row["pair"], row["order"]): row for row in orders}
    for way in ways:
        means = [
            np.mean([r["needed"] for r in orders if r["order"] == way and r["pair"] == pair]) for pair in pairs
        ]
        every = np.mean([r["needed"] for r in orders if r["order"] == way])
        base = np.mean([r["needed"] for r in orders if r["order"] == "depth"])
        held = [r["covered"] for r in orders if r["order"] == way and "covered" in r]
        counts = "".join(f"{mean:24.0f}" for mean in (*means, every))
        print(f"{way:32}{counts}{every / base:10.2f}{np.mean(held) if held else np.nan:9.2f}")
    wins = [cells[*key, "mtc"]["needed"] / cells[*key, "depth"]["needed"] for key in {k[:3] for k in cells}]
    print(f"mtc over depth, case by case: geometric mean {np.exp(np.mean(np.log(wins))):.2f} of {len(wins)} cases")


def table_of_weights(rows: list[dict[str, Any]]) -> None:
    """Print the loss against all judgments, and the worst of the gains over equal weights."""
    learning = [row for row in rows if row["kind"] == "weights"]
    names = list(dict.fromkeys(row["collection"] for row in learning))
    ways = list(dict.fromkeys(row["way"] for row in learning))

    def mean(name: str, way: str, budget: int) -> float:
        own = [r["loss"] for r in learning if (r["collection"], r["way"], r["budget"]) == (name, way, budget)]
        return float(np.mean(own)) if own else np.nan

    print("\nMAP on held-out queries less that of weights from all judgments")
    for name in names:
        for way in ways:
            losses = "".join(f"{mean(name, way, budget):9.4f}" for budget in LEARNING_BUDGETS)
            print(f"{name:20} {way:32}{losses}")
    for way in ways:
        means = [np.mean([mean(name, way, budget) for name in names]) for budget in LEARNING_BUDGETS]
        print(f"{'mean of collections':20} {way:32}" + "".join(f"{one:9.4f}" for one in means))
    gains = {
        (name, way, budget): mean(name, way, budget) - mean(name, "equal weights", budget)
        for name in names
        for way in ways
        for budget in LEARNING_BUDGETS
        if way in METHODS
    }
    worst = sorted(gains.items(), key=lambda one: one[1])[:5]
    print(f"Furthest below equal weights; the limit is {-MOST_BELOW}:")
    for (name, way, budget), gain in worst:
        print(f"  {gain:+.4f} {name}, {way}, {budget} judgments")


def table_of_traps(rows: list[dict[str, Any]]) -> None:
    """Print the error of shallow pools."""
    print("\nError for equal weights against the best single ranker, pools judged completely")
    for depth in DEPTHS:
        own = [row for row in rows if row["kind"] == "trap" and row["depth"] == depth]
        usual, expected = (np.mean([row[key] for row in own]) for key in ("usual", "expected"))
        print(f"depth {depth:3}: usual {usual:+.3f}, expected AP {expected:+.3f}")


def table_of_stubs(rows: list[dict[str, Any]]) -> None:
    """Print the loss by judge and reading."""
    stubs = [row for row in rows if row["kind"] == "stub"]
    print(f"\nMAP less that of weights from the true grades of the same {STUB_PAIRS} pairs (standard error)")
    for judge in STUB_JUDGES:
        for way in dict.fromkeys(row["way"] for row in stubs):
            own = [row["loss"] for row in stubs if (row["judge"], row["way"]) == (judge, way)]
            print(f"{judge:10} {way:20}{np.mean(own):+9.4f} ({np.std(own) / max(len(own) - 1, 1) ** 0.5:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--seeds", default="0:2", help="first:last, the last not included")
    parser.add_argument("--parts", default="orders,weights,traps,stubs")
    parser.add_argument("--orders", default=",".join(METHODS), help="of the part weights")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        table([json.loads(line) for line in options.table.read_text().splitlines()])
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    by_order = partial(learn_from_few, orders=options.orders.split(","))
    parts = {"orders": compare_orders, "weights": by_order, "traps": traps, "stubs": judge_by_stub}
    rows: list[dict[str, Any]] = []
    for name in options.collections.split(","):
        began = time.process_time()
        for seed in range(*map(int, options.seeds.split(":"))):
            for part in options.parts.split(","):
                new = list(parts[part](name, seed))
                rows += new
                if options.output:
                    with options.output.open("a") as file:
                        file.writelines(json.dumps(row) + "\n" for row in new)
        print(f"{name}: {time.process_time() - began:.0f} s of CPU", flush=True)
    table(rows)


if __name__ == "__main__":
    main()
