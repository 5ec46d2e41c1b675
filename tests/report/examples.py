"""A small payload whose parts agree with each other: three rankers, hostile names, every section filled."""

import numpy as np
from problems import made_up

from genm.evaluate import evaluate_aligned
from genm.report.payload import FORMAT, VERSION, Report, pack

HOSTILE = (
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><b>bold & <i>brave</i>",
    "😀 emoji \u202eright-to-left\u202c \u2028 line",
    "عربي مع نص",
    "a_b|c`d`*e* $x^2$ \\textbf{f} #1 {}%",
)


def example_report(*, n_queries: int = 24, seed: int = 0, n_rankers: int = 3) -> Report:
    """Return a report as the page receives it. Figures that need a fit are drawn; the sliders' are measured."""
    rng = np.random.default_rng(seed)
    quality = tuple(np.linspace(1.0, 0.3, n_rankers))
    aligned = made_up(seed, n_queries=n_queries, quality=quality)
    rankers = ["bm25", "<b>dense</b> & co", *(f"ranker {k}" for k in range(2, n_rankers))][:n_rankers]
    weights = rng.dirichlet(np.full(n_rankers, 4.0)) if n_rankers > 1 else np.ones(1)
    ap = evaluate_aligned(aligned, weights, "AP").values[:, 0]
    query_ids = [HOSTILE[q] if q < len(HOSTILE) else f"q{q}" for q in range(n_queries)]
    systems = [*rankers, "uniform weights", "RRF (k=60)", "best single ranker", "learned weights"]
    per_query = {name: np.round(np.clip(ap + rng.normal(0, 0.1, n_queries), 0, 1), 6).tolist() for name in systems}
    per_query["learned weights (training)"] = np.round(ap, 6).tolist()
    systems.append("learned weights (training)")
    means = {name: float(np.mean(values)) for name, values in per_query.items()}
    delta = np.round(np.array(per_query["learned weights"]) - per_query["best single ranker"], 6).tolist()
    delta_rrf = np.round(np.array(per_query["learned weights"]) - per_query["RRF (k=60)"], 6).tolist()
    samples = np.round(rng.dirichlet(50 * weights, 60), 4) if n_rankers > 1 else np.ones((60, 1))
    kinds = {"uniform weights": "rule", "RRF (k=60)": "rule", "best single ranker": "best-single"}
    labels = {"best single ranker": f"{rankers[0]} (the best single ranker)", "uniform weights": "equal weights"}
    levels = [0.025, 0.25, 0.5, 0.75, 0.975]
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": "model.json",
        "measure": "AP",
        "rankers": rankers,
        "weights": weights.tolist(),
        "n_queries": n_queries,
        "headline": {
            "verdict": f"Held out, the learned weights beat the strongest rival, {rankers[0]}.",
            "advice": "adopt",
            "significant": True,
            "held_out": means["learned weights"],
            "interval": [means["learned weights"] - 0.05, means["learned weights"] + 0.05],
            "train": means["learned weights (training)"],
            "confidence": 0.95,
            "folds": 5,
            "best_single": rankers[0],
            "strongest": "best single ranker",
            "unjudged": 0.55,
            "caveat": "55% of the top 10 of the learned weights has no judgment and counts as not relevant.",
            "criterion": "Better and worse mean that the interval leaves out 0.",
            "gains": [
                _gain(rival, labels.get(rival, rival), means[rival], i, n_queries)
                for i, rival in enumerate(("best single ranker", "RRF (k=60)", "uniform weights"))
            ],
            "over_rankers": [_gain(name, name, means[name], i, n_queries) for i, name in enumerate(rankers)],
        },
        "verdicts": _verdicts(rankers),
        "snippet": {"engine": "OpenSearch", "file_name": "pipeline.json", "text": '{"weights": "</script><b>"}\n'},
        "spread": {
            "kind": "bootstrap",
            "n_samples": len(samples),
            "levels": levels,
            "plateau_loss": 0.005,
            "held_back": 0.25,
            "note": f"{len(samples)} refits on resampled queries.",
            "rows": [
                {
                    "ranker": name,
                    "weight": float(weights[k]),
                    "quantiles": np.quantile(samples[:, k], levels).tolist(),
                    "samples": samples[:, k].tolist(),
                    "before": np.quantile(samples[:, k], levels).tolist(),
                    "plateau": [max(0.0, float(weights[k]) - 0.1), min(1.0, float(weights[k]) + 0.15)],
                    "gain": 0.03 / (k + 1),
                }
                for k, name in enumerate(rankers)
            ],
        },
        "measures": {
            "measures": ["AP", "P@1", "P@5", "P@10", "nDCG@10", "RR"],
            "n_queries": n_queries,
            "main_n_queries": n_queries,
            "systems": [
                {
                    "id": name,
                    "label": name,
                    "kind": "ranker" if name in rankers else kinds.get(name, "fused"),
                    "held_out": not name.endswith("(training)"),
                    "values": [means[name], *np.round(rng.random(5), 4).tolist()],
                }
                for name in systems
            ],
        },
        "curves": [
            {"system": name, "precision": np.sort(np.round(rng.random(11), 4))[::-1].tolist()}
            for name in systems
            if name != "best single ranker"
        ],
        "lines": [_line(name, float(weights[k]), rng) for k, name in enumerate(rankers)] if n_rankers > 1 else [],
        "ternary": _ternary(rankers, weights) if n_rankers == 3 else None,
        "learning": {
            "points": [
                {
                    "n_queries": float(n),
                    "mean": 0.5 - 0.6 / n,
                    "low": 0.42 - 0.6 / n,
                    "high": 0.57 - 0.6 / n,
                    "difference": 0.6 / 19 - 0.6 / n,
                    "difference_low": -0.02,
                    "difference_high": 0.01,
                }
                for n in (3, 5, 10, 19)
            ],
            "rivals": {name: means[name] for name in ("best single ranker", "RRF (k=60)")},
            "sentence": "The curve is flat: more judgments would bring little.",
        },
        "queries": {
            "query_ids": query_ids,
            "texts": [f"what is {name}?" for name in query_ids],
            "values": per_query,
            "delta": delta,
            "rival": "best single ranker",
            "delta_rrf": delta_rrf,
            "fold": [q % 5 for q in range(n_queries)],
            "n_relevant": [5] * n_queries,
            "n_judged": [5] * n_queries,
            "n_docs": np.diff(aligned.starts).tolist(),
            "detail": list(range(n_queries)),
            "n_all": n_queries,
        },
        "details": [_detail(aligned, q, weights) for q in range(n_queries)],
        "sliders": _sliders(aligned, weights, ap) if n_rankers > 1 else None,
        "coverage": {
            "rankers": [
                {
                    "ranker": name,
                    "normalizer": "minmax",
                    "depth": None,
                    "low": -1.2,
                    "median": 0.1,
                    "high": 2.5 * 10**k,
                    "missing": 0.1 * k,
                    "ties": 0.02,
                    "unjudged": 0.6,
                }
                for k, name in enumerate(rankers)
            ],
            "unjudged_fused": 0.55,
            "overlap": np.round(np.eye(n_rankers) * 0.7 + 0.3, 3).tolist(),
            "n_queries": n_queries,
            "n_without_documents": 0,
            "n_without_relevant": 1,
            "warnings": [
                {"code": "unjudged", "level": "warning", "text": "55% of the fusion's top 10 was never judged."},
                {"code": "reading", "level": "info", "text": f"run {rankers[-1]!r}: 3 queries <set> aside."},
            ],
        },
        "sampling": [
            {"part": "details", "n_shown": n_queries, "n_all": 900, "sentence": "24 of 900 queries can be opened."}
        ],
        "made": {
            "command": "genm report --model model.json --qrels qrels.txt bm25=b.trec 'x=<y>.trec' -o report.html",
            "versions": {"genm": "0.1.0", "python": "3.12.1", "numpy": "2.1.0"},
            "files": [
                {"role": "model", "name": "model.json", "sha256": "ab" * 32, "n_bytes": 1234},
                {"role": "judgments", "name": "-", "sha256": None, "n_bytes": None},
            ],
            "fingerprint": "cd" * 32,
            "seed": 0,
            "method": "auto",
            "fitted_with": "0.1.0",
            "beta": 91.5,
            "relevance_level": 1,
            "target": None,
            "evidence": "read",
            "matches_training": True,
        },
    }


def _gain(over: str, label: str, mean: float, i: int, n_queries: int) -> dict:
    return {
        "over": over,
        "label": label,
        "rival_mean": mean,
        "difference": 0.0421 / (i + 1),
        "low": 0.01 - 0.01 * i,
        "high": 0.08,
        "p": 0.003 * 10**i if i < 3 else 0.5,
        "p_values": {"wilcoxon": 0.003 * 10**i if i < 3 else 0.5, "t": 0.004, "randomization": 0.004},
        "n_better": 14,
        "n_worse": 8,
        "n_equal": n_queries - 22,
        "outcome": "better" if i < 2 else "perhaps better",
        "significant": i < 2,
        "sentence": f"{0.0421 / (i + 1):+.4f} AP over {label}.",
    }


def _verdicts(rankers: list[str]) -> dict:
    verdicts = ("keep", "not needed", "hurts", "undecided")
    rows = [
        {
            "ranker": name,
            "verdict": verdicts[k % 4],
            "loss": (0.02, 0.001, -0.02, 0.004)[k % 4],
            "low": (0.01, -0.002, -0.03, -0.01)[k % 4],
            "high": (0.03, 0.004, -0.01, 0.02)[k % 4],
            "sentence": f"A sentence about {name}.",
        }
        for k, name in enumerate(rankers)
    ]
    if len(rankers) == 1:
        return _skipped("There is one ranker: there is nothing to leave out.")
    return _skipped("") | {
        "rows": rows,
        "held_out": 0.4321,
        "advice": [f"Leave out {row['ranker']}: a reason." for row in rows if row["verdict"] in verdicts[1:3]],
    }


def _skipped(reason: str) -> dict:
    return {
        "rows": [],
        "skipped": reason,
        "advice": [],
        "held_out": None,
        "margin": 0.005,
        "confidence": 0.95,
        "folds": 5,
    }


def _line(name: str, weight: float, rng: np.random.Generator) -> dict:
    points = np.concatenate(([0.0], np.sort(rng.random(60)), [1.0]))
    values = 0.5 - (0.5 * (points[1:] + points[:-1]) - weight) ** 2 + rng.normal(0, 0.002, 61)
    best = int(np.argmax(values))
    at = int(np.searchsorted(points, weight, side="right")) - 1
    return {
        "ranker": name,
        "points": points.tolist(),
        "values": values.tolist(),
        "tolerance": 0.0,
        "n_steps": 61,
        "exact": True,
        "weight": weight,
        "value": float(values[at]),
        "best": [float(points[best]), float(points[best + 1]), float(values[best])],
    }


def _ternary(rankers: list[str], weights: np.ndarray) -> dict:
    n = 12
    grid = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    values = 0.5 - ((grid - weights) ** 2).sum(axis=1) / 4
    return {
        "rankers": rankers,
        "step": 1 / n,
        "weights": grid.tolist(),
        "values": values.tolist(),
        "chosen": weights.tolist(),
        "chosen_value": 0.5,
        "best": int(np.argmax(values)),
    }


def _detail(aligned, q: int, weights: np.ndarray) -> dict:
    rows = np.arange(aligned.starts[q], aligned.starts[q + 1])
    scores = aligned.scores[rows]
    fused = scores @ weights
    order = np.argsort(-fused, kind="stable")
    own = [np.argsort(-aligned.raw[rows, k], kind="stable") for k in range(len(weights))]
    shown = list(dict.fromkeys([*order[:10].tolist(), *(d for o in own for d in o[:10].tolist())]))
    place = {d: i for i, d in enumerate(shown)}
    rank = np.argsort(order)
    return {
        "query": q,
        "docs": [
            {
                "id": HOSTILE[d] if d < len(HOSTILE) else aligned.docs[int(aligned.doc[rows[d]])],
                "text": f"text of {HOSTILE[d % len(HOSTILE)]}",
                "grade": 1 if aligned.relevance[rows[d]] == 1 else (0 if d % 3 else None),
                "relevant": bool(aligned.relevance[rows[d]] == 1),
                "score": float(f"{fused[d]:.6g}"),
                "contributions": [float(f"{w * s:.6g}") for w, s in zip(weights, scores[d], strict=True)],
                "ranks": [int(np.flatnonzero(o == d)[0]) + 1 if d % 7 or k else None for k, o in enumerate(own)],
                "raw": [float(v) if d % 7 or k else None for k, v in enumerate(aligned.raw[rows[d]])],
                "fused_rank": int(rank[d]) + 1,
            }
            for d in shown
        ],
        "fused": [place[d] for d in order[:10].tolist()],
        "rankers": [[place[d] for d in o[:10].tolist()] for o in own],
        "n_relevant": 5,
    }


def _sliders(aligned, weights: np.ndarray, ap: np.ndarray) -> dict:
    n_queries, n_rows = len(aligned.queries), len(aligned.doc)
    return {
        "queries": pack(np.arange(n_queries), "int32"),
        "row_starts": pack(aligned.starts, "int32"),
        "stored": pack(np.packbits(np.ones(aligned.scores.size, np.uint8)), "uint8"),
        "values": pack(aligned.scores.ravel(), "float64"),
        "fill": pack(np.zeros((n_queries, len(weights))), "float64"),
        "marks": pack(np.where(aligned.relevance == 1, 2, np.arange(n_rows) % 2), "uint8"),
        "n_relevant": pack(np.full(n_queries, 5), "int32"),
        "query_weights": pack(np.ones(n_queries), "float64"),
        "named_rows": pack(np.arange(n_rows), "int32"),
        "names": [f"{HOSTILE[r % len(HOSTILE)]} {r}" for r in range(n_rows)],
        "measure": "AP",
        "ap": ap.tolist(),
        "map": float(ap.mean()),
        "map_all": float(ap.mean()),
        "n_scores": aligned.scores.size,
    }
