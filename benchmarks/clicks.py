"""Judgments from simulated clicks, where the truth is known.

    python -m benchmarks.clicks                      # MED and CRAN, some CPU minutes
    python -m benchmarks.clicks --lists 50           # fewer lists for each query

For two thirds of a collection's queries lists of ten documents are shown, each by one ranker drawn at random, and
users click as one of these models says; a relevant document attracts with .7, another one with .1:

- pbm: a position is looked at with 1 / position;
- steep: the same with 1 / position squared;
- dbn: users read downwards, stop when satisfied (.8 by a relevant document, .3 by another) or, each time, with .1;
- trust: as pbm, and what stands higher is clicked in error more often (.2 at the first position, / position);
- careless: as pbm, and one click in five goes to a random position.

"trust" and "careless" fit none of the models. For each model of the package: the correlation (Spearman, over all
documents shown) with the truth, the share of relevant documents ranked above others (AUC), and the MAP, on the
other third of the queries, of weights learned from the clicks, less that of weights learned from the true judgments
of the same documents. Raw click rates (ctr) and equal weights stand beside them. Documents are relevant from half
of the median query's best value on; "pbm by probability" counts them by their probability instead, as
`--grades probability` does.
"""

import argparse
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.stats import rankdata, spearmanr

from genm._math.scaling import rank_lists
from genm.align import UNJUDGED, Aligned, align_runs
from genm.collections import load_collection
from genm.errors import ConvergenceWarning
from genm.evaluate import AlignedEvaluator
from genm.judge.click_models import MODELS, ShownLists
from genm.judge.clicks import Z_95, ClickJudgment
from genm.learn import ExpectedFuser
from genm.rankers import rank_collection

LENGTH = 10
USERS = ("pbm", "steep", "dbn", "trust", "careless")


@cache
def load(name: str) -> Aligned:
    """Return the aligned runs of a collection with all its judgments."""
    collection = load_collection(name)
    return align_runs(rank_collection(collection, ("bm25", "tfidf", "lsa", "plsi"), top=100), collection.qrels)


def show(aligned: Aligned, n_lists: int, rng: np.random.Generator) -> np.ndarray:
    """Return (lists, LENGTH) rows: for each query the tops of rankers drawn at random."""
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts)
    shown = []
    for q in range(len(aligned.queries)):
        own = ranks[aligned.starts[q] : aligned.starts[q + 1]]
        tops = [
            aligned.starts[q] + np.argsort(np.where(own[:, k] > 0, own[:, k], 10**6))[:LENGTH] for k in range(4)
        ]
        shown.append(np.array(tops)[rng.integers(0, 4, n_lists)])
    return np.concatenate(shown)


def click(relevant: np.ndarray, users: str, rng: np.random.Generator) -> np.ndarray:
    """Return which documents are clicked; `relevant` is (lists, LENGTH)."""
    attracted = rng.random(relevant.shape) < np.where(relevant, 0.7, 0.1)
    place = np.arange(1.0, LENGTH + 1.0)
    if users == "dbn":
        satisfied = attracted & (rng.random(relevant.shape) < np.where(relevant, 0.8, 0.3))
        leaves = satisfied | (rng.random(relevant.shape) < 0.1)
        gone = np.cumsum(leaves, axis=1) - leaves > 0
        return attracted & ~gone
    looked = rng.random(relevant.shape) < 1.0 / place ** (2.0 if users == "steep" else 1.0)
    clicks = attracted & looked
    if users == "trust":
        clicks |= looked & (rng.random(relevant.shape) < 0.2 / place)
    if users == "careless":
        row, _ = np.nonzero(clicks & (rng.random(relevant.shape) < 0.2))
        clicks[row, rng.integers(0, LENGTH, len(row))] = True
    return clicks


def raw_rate(lists: ShownLists) -> np.ndarray:
    """Return clicks over showings."""
    repeated = lists.repeated()
    return lists.by_pair(repeated * lists.clicked) / np.maximum(lists.by_pair(repeated), 1.0)


def auc(values: np.ndarray, relevant: np.ndarray) -> float:
    """Return how often a relevant document has a higher value than another, ties half."""
    n = relevant.sum()
    return float((rankdata(values)[relevant].sum() - n * (n + 1) / 2) / (n * (~relevant).sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default="med,cran")
    parser.add_argument("--lists", type=int, default=100, help="lists shown for each query")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for name in options.collections.split(","):
        for seed in range(options.seeds):
            for users in USERS:
                for way, figures in measure(load(name), users, options.lists, seed).items():
                    found.setdefault((users, way), []).append(figures)
    print(f"{'users':10}{'model':20}{'Spearman':>10}{'AUC':>8}{'MAP less true':>15}")
    for (users, way), figures in found.items():
        correlation, area, loss = np.mean(figures, axis=0)
        print(f"{users:10}{way:20}{correlation:10.3f}{area:8.3f}{loss:15.4f}")


def measure(aligned: Aligned, users: str, n_lists: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return correlation, AUC and loss of MAP for each model on one draw."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(aligned.queries))
    cut = round(len(order) * 2 / 3)
    train, test = aligned.select(np.sort(order[:cut])), aligned.select(np.sort(order[cut:]))
    evaluator = AlignedEvaluator(test, ["AP"])
    rows = show(train, n_lists, rng)
    clicks = click(train.relevance[rows] > 0, users, rng)
    seen, pair = np.unique(rows, return_inverse=True)
    lists = ShownLists(pair.reshape(rows.shape), clicks, np.ones(len(rows)), len(seen))
    truth = train.relevance[seen] > 0

    def value(weights: np.ndarray) -> float:
        return float(evaluator.values(weights)[:, 0].mean())

    def learned(relevant: np.ndarray, probability: np.ndarray | None = None) -> float:
        grades = np.full(len(train.doc), UNJUDGED, np.int32)
        grades[seen] = relevant
        judged = with_grades(train, grades)
        if probability is not None:
            likely = np.full(len(train.doc), np.nan)
            likely[seen] = probability
            judged = replace(judged, probability=likely)
        return value(ExpectedFuser(repeats=1).fit(judged).weights_)

    best = learned(truth)
    query = np.repeat(np.arange(len(train.queries)), np.diff(train.starts))[seen]
    results = {"equal weights": (np.nan, np.nan, value(np.full(len(train.rankers), 1.0)) - best)}
    for way in ("ctr", *MODELS):
        found = None if way == "ctr" else MODELS[way](lists)
        values = raw_rate(lists) if found is None else found.value
        highest = np.zeros(len(train.queries))
        np.maximum.at(highest, query, values)
        top = np.median(highest)
        relevant = values >= 0.5 * top
        correlation, area = spearmanr(values, truth).statistic, auc(values, truth)
        results[way] = (correlation, area, learned(relevant) - best)
        if found is not None and way == "pbm":
            likely = probabilities(values / top, found.error / top)
            results["pbm by probability"] = (correlation, area, learned(likely >= 0.5, likely) - best)
    return results


def probabilities(relevance: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the probabilities that `genm clicks` writes."""
    sure = np.maximum(1.0 - 2.0 * Z_95 * error, 0.0)
    pairs = zip(np.minimum(relevance, 1.0).tolist(), sure.tolist(), strict=True)
    return np.array([ClickJudgment("q", "d", *pair).probability for pair in pairs])


def with_grades(aligned: Aligned, grades: np.ndarray) -> Aligned:
    """Return the runs with these judgments alone."""
    starts = np.zeros(len(aligned.queries) + 1, np.int64)
    return replace(aligned, relevance=grades, unretrieved=np.zeros(0, np.int32), unretrieved_starts=starts)


if __name__ == "__main__":
    main()
