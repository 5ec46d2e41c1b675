"""One fitted model with its report, shared by the tests of the report's parts."""

from typing import NamedTuple

import numpy as np
import pytest
from problems import made_up
from report.visits import browser, visit, visits

from genm.align import Aligned, align_runs
from genm.evaluate import parse_measure
from genm.evidence import Kept, gather_evidence, keep_evidence, with_evidence
from genm.learn import BoostFuser
from genm.model import Model
from genm.report import Report, build_report

__all__ = ["browser", "visit", "visits"]  # fixtures


class Built(NamedTuple):
    aligned: Aligned
    model: Model
    kept: Kept
    report: Report


def gappy(seed: int = 0, *, n_queries: int = 30, missing: float | str = 0.0, normalize: str = "minmax") -> Aligned:
    """Rankers that return only some documents each, with equal scores among them and unjudged documents."""
    from genm.ids import Ids
    from genm.normalizers import Normalizer
    from genm.records import Qrels, ranked_run

    rng = np.random.default_rng(seed)
    queries, docs = Ids.of(f"q{i}" for i in range(n_queries)), Ids.of(f"d{i:03}" for i in range(80))
    relevant = [rng.choice(80, 5, replace=False) for _ in range(n_queries)]
    runs = {}
    for k, quality in enumerate((1.2, 0.8, 0.4)):
        doc, score, starts = [], [], [0]
        for q in range(n_queries):
            seen = np.sort(rng.choice(80, 30, replace=False))
            doc += seen.tolist()
            score += np.round(quality * np.isin(seen, relevant[q]) + rng.normal(0, 0.5, 30), 1).tolist()
            starts.append(len(doc))
        parts = np.array(starts), np.array(doc, np.int32), np.array(score)
        runs[f"r{k}"] = ranked_run(f"r{k}", queries, docs, *parts)
    judged = [np.sort(np.concatenate((own, rng.choice(80, 20)))) for own in relevant]
    judged = [np.unique(own) for own in judged]
    doc = np.concatenate(judged).astype(np.int32)
    grade = np.concatenate([np.isin(own, rel) for own, rel in zip(judged, relevant, strict=True)]).astype(np.int32)
    starts = np.concatenate(([0], np.cumsum([len(own) for own in judged])))
    qrels = Qrels(queries, docs, starts, doc, grade)
    weights = {f"q{i}": float(1 + i % 3) for i in range(n_queries)}
    return align_runs(runs, qrels, normalize=Normalizer(normalize, missing=missing), query_weights=weights)


def fit(aligned: Aligned, measure: str = "AP", make=BoostFuser) -> tuple[Model, Kept]:
    fuser, found = gather_evidence(aligned, make, parse_measure(measure), folds=4)
    kept = keep_evidence(aligned, fuser, found)
    return with_evidence(fuser.to_model(), aligned, found), kept


@pytest.fixture(scope="session")
def built() -> Built:
    aligned = gappy()
    model, kept = fit(aligned)
    return Built(aligned, model, kept, build_report(aligned, model, kept))


@pytest.fixture(scope="session")
def plain_problem() -> Aligned:
    return made_up(3, n_queries=12)
