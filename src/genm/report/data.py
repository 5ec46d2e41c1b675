"""What is in the data, and what about it a reader should be warned of."""

from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from genm.align import Aligned
from genm.evaluate import evaluate_aligned
from genm.model import Model
from genm.records import Normalizer, Note
from genm.report.payload import Coverage, DataWarning, RankerCoverage

TOP = 10
MUCH_UNJUDGED, MANY_MISSING, MANY_TIES = 0.3, 0.5, 0.1
SCALES_APART = 10.0
FEW_QUERIES = 30


def coverage_of(aligned: Aligned, model: Model, *, n_queries: int, notes: Iterable[Note] = ()) -> Coverage:
    """Return what the runs and the judgments cover; `aligned` may be a sample of `n_queries` queries."""
    found = aligned.coverage()
    at = found.depths.index(TOP)
    judged = found.judged if found.judged is not None else np.ones((len(found.depths), len(found.rankers)))
    rankers: list[RankerCoverage] = [
        {
            "ranker": name,
            "normalizer": normalizer_text(model.normalizers[k]),
            "depth": model.depths[k],
            "low": float(found.scales[k, 0]),
            "median": float(found.scales[k, 1]),
            "high": float(found.scales[k, 2]),
            "missing": float(found.missing[k]),
            "ties": float(found.ties[k]),
            "unjudged": 1.0 - float(judged[at, k]),
        }
        for k, name in enumerate(found.rankers)
    ]
    fused = evaluate_aligned(aligned, np.array(model.weights), f"Judged@{TOP}").values[:, 0]
    with_docs = np.diff(aligned.starts) > 0
    unjudged = 1.0 - float(fused[with_docs].mean()) if with_docs.any() else None
    warnings = [
        *_about_queries(n_queries, found.n_empty, found.n_without_relevant or 0, found.n_queries),
        *_about_judgments(unjudged),
        *_about_rankers(rankers, [normalizer.kind for normalizer in model.normalizers]),
        *(_warning("note", note.text, level="info") for note in notes),
    ]
    return {
        "rankers": rankers,
        "unjudged_fused": unjudged,
        "overlap": found.overlap[at].tolist(),
        "n_queries": n_queries,
        "n_without_documents": found.n_empty,
        "n_without_relevant": found.n_without_relevant or 0,
        "warnings": warnings,
    }


def normalizer_text(normalizer: Normalizer) -> str:
    """Return the normaliser's kind and whatever differs from the default."""
    changed = [
        f"{field.name}={getattr(normalizer, field.name)}"
        for field in fields(Normalizer)
        if field.name != "kind" and getattr(normalizer, field.name) != field.default
    ]
    return normalizer.kind + (f" ({', '.join(changed)})" if changed else "")


def _about_queries(n_queries: int, n_empty: int, n_without: int, n_seen: int) -> list[DataWarning]:
    warnings = []
    if n_queries < FEW_QUERIES:
        text = f"Only {n_queries} queries are judged: intervals are wide, and small gains cannot be told from luck."
        warnings.append(_warning("few-queries", text))
    if n_empty:
        text = f"For {n_empty:,} of {n_seen:,} queries no ranker returned anything; they count 0 for every system."
        warnings.append(_warning("empty-queries", text))
    if n_without:
        text = f"{n_without:,} of {n_seen:,} queries have no relevant document; they count 0 for every system."
        warnings.append(_warning("no-relevant", text))
    return warnings


def _about_judgments(unjudged: float | None) -> list[DataWarning]:
    if unjudged is None or unjudged <= MUCH_UNJUDGED:
        return []
    text = (
        f"{unjudged:.0%} of the fusion's top {TOP} was never judged and counts as not relevant. Its real value may "
        f"be higher, and gains may look smaller than they are. Judging these documents is the best next step."
    )
    return [_warning("unjudged", text)]


def _about_rankers(rankers: list[RankerCoverage], kinds: list[str]) -> list[DataWarning]:
    warnings = []
    for row in rankers:
        name = row["ranker"]
        if row["missing"] > MANY_MISSING:
            text = (
                f"{name} did not return {row['missing']:.0%} of the documents that the others found. Its "
                f"normaliser fills the gaps; retrieving deeper would give it more of a say."
            )
            warnings.append(_warning("missing", text))
        if row["ties"] > MANY_TIES:
            text = (
                f"{row['ties']:.0%} of {name}'s documents share their score with another of the same query. Ties "
                f"are ranked by doc id, so some of its order means nothing."
            )
            warnings.append(_warning("ties", text))
    ranges = [row["high"] - row["low"] for row in rankers]
    if len(ranges) > 1 and min(ranges) > 0.0 and max(ranges) > SCALES_APART * min(ranges):
        wide, narrow = rankers[int(np.argmax(ranges))]["ranker"], rankers[int(np.argmin(ranges))]["ranker"]
        apart = f"Raw scores of {wide} spread {max(ranges) / min(ranges):,.0f} times as far as those of {narrow}"
        if "none" in kinds:
            text = f"{apart}, and scores are not normalised: weights say little about what a ranker counts."
            warnings.append(_warning("scales", text))
        else:
            warnings.append(_warning("scales", f"{apart}; the normaliser evens that out.", level="info"))
    return warnings


def _warning(code: str, text: str, *, level: str = "warning") -> DataWarning:
    return {"code": code, "level": "info" if level == "info" else "warning", "text": text}
