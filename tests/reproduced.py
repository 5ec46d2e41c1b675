"""Made-up results of the experiment, and oracles over them, for the tests of figures and page."""

from dataclasses import replace

import numpy as np
import oracles
from problems import made_up

from genm import plotting
from genm.align import select_rankers
from genm.evaluate import AlignedEvaluator, Measure
from genm.evidence import BEST_SINGLE
from genm.reproduce.figures.objective import draw_sigmoid
from genm.reproduce.figures.results import draw_recall, draw_summary
from genm.reproduce.methods import BOOSTING, RULES, UNS_Z
from genm.reproduce.page import render_page
from genm.reproduce.results import (
    MEASURES,
    RECALL_LEVELS,
    CollectionResult,
    Facts,
    MethodResult,
    Results,
    ResultTable,
    figures,
    words,
)

METHODS = {
    "EnM": "baseline", BOOSTING: "baseline", BEST_SINGLE: "baseline", "gEnM.BAT": "supervised",
    "gEnM.ON": "supervised", "gEnM.IP": "supervised", "auto": "supervised", "UnsEnM": "unsupervised",
    UNS_Z: "unsupervised",
}  # fmt: skip


def collection(name="med", title="MED", *, rankers=("tfidf", "lsa", "plsi", "ldi"), seed=1, splits=3):
    """A small collection measured under made-up weights: nothing is learned, everything is consistent."""
    aligned = made_up(seed, quality=(0.3, 0.9, 0.6, 0.5)[: len(rankers)], n_queries=8, normalize="none")
    aligned = replace(aligned, rankers=tuple(rankers))
    levels = [Measure("IPrec", recall=level) for level in RECALL_LEVELS]
    evaluator, rng, K = (
        AlignedEvaluator(aligned, [m for _, m in MEASURES] + levels),
        np.random.default_rng(seed),
        len(rankers),
    )

    def measured(method, kind, weights):
        values = np.array([evaluator.values(w) for w in weights])
        learned = np.array(weights)[:, None] if kind != "single" else np.zeros((0, 0, K))
        train = np.zeros(learned.shape[:2])
        return MethodResult(method, kind, values[:, :, :3], values[:, :, 3:].mean(axis=1), learned, train)

    methods = {r: measured(r, "single", [unit]) for r, unit in zip(rankers, np.eye(K), strict=True)}
    methods |= {r: measured(r, "rule", [np.full(K, 1 / K)]) for r in RULES}
    methods |= {m: measured(m, kind, rng.dirichlet(np.ones(K), splits)) for m, kind in METHODS.items()}
    facts = Facts(60, 9, 8, 100, None, 40)
    return CollectionResult(name, title, facts, aligned, np.zeros((splits, 8), np.int64), methods)


def results(*collections, tables=()):
    """Results with two small tables."""
    rows = tuple((*words(c.title, "MAP"), *figures([0.1, 0.25], strong=[1])) for c in collections)
    made = (
        ResultTable(
            "table-1", "Table 1. Toy", ("", "Ranker 1"), ((*words("Document 1"), *figures([0.35])),), ("A note.",)
        ),
        ResultTable("table-3", "Table 3. Held out", ("Data", "Measure", "paper", "ours"), rows),
    )
    return Results(tuple(collections), 3, 0, made + tuple(tables), {"rankers": 1.5})


def two_collections():
    """Results on two collections."""
    return results(collection(), collection("pydocs", "pydocs", seed=2))


def page_with_figures(made):
    """The page of results, with three figures."""
    drawings = draw_summary(made), draw_recall(made.collections), draw_sigmoid()
    manifest = {"genm": "9.9", "data": {"med": "c0ffee"}, "seeds": [0, 1]}
    return render_page(made, drawings, manifest=manifest, command="genm reproduce -o DIR")


def queries(aligned):
    """Scores, relevance and number of relevant documents of each query, for the oracles."""
    bounds = zip(aligned.starts[:-1], aligned.starts[1:], aligned.n_relevant(), strict=True)
    return [(aligned.scores[a:b], aligned.relevance[a:b] > 0, n) for a, b, n in bounds]


def exact_map(aligned, rankers, weights):
    """P1 by the oracle."""
    two = select_rankers(aligned, list(rankers))
    return np.mean([oracles.average_precision(S, r, n, np.asarray(weights)) for S, r, n in queries(two)])


def smooth_map(aligned, rankers, weights, beta):
    """P2 by the oracle."""
    two = select_rankers(aligned, list(rankers))
    return np.mean([oracles.smooth_ap(S, r, n, np.asarray(weights), beta)[0] for S, r, n in queries(two)])


def capture(monkeypatch):
    """Keep every figure that is turned into SVG, so that a test can read what was plotted."""
    kept, to_svg = [], plotting.to_svg

    def keep(figure, *words):
        kept.append(figure)
        return to_svg(figure, *words)

    monkeypatch.setattr(plotting, "to_svg", keep)
    return kept
