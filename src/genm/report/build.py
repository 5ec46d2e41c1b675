"""From a model, its evidence and the data to the whole report: samples, facts about the data, warnings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._typing import Codes, Floats, Ints
from genm.align import UNJUDGED, Aligned
from genm.align.aligned import per_query
from genm.errors import InputError, ModelError
from genm.evaluate import parse_measure
from genm.evidence import RRF, Kept, gather_evidence, keep_evidence, unjudged_share
from genm.evidence.crossval import measure_queries
from genm.explain import gains_by_query, model_losses, why_no_losses
from genm.explain.losses import NEGLIGIBLE_LOSS, about_ranker
from genm.learn import Fuser, find_method, is_method, make_fuser
from genm.learn.auto import AutoFuser, softness_for
from genm.learn.base import FixedWeights
from genm.learn.objectives import beta_of
from genm.model import Model
from genm.normalizers import Normalizer
from genm.progress import Progress, silent
from genm.records import Note
from genm.report.landscape import PLATEAU_LOSS, Landscape
from genm.report.payload import (
    FORMAT,
    VERSION,
    DataCoverage,
    DataWarning,
    InputFile,
    QueryTable,
    RankerCoverage,
    Report,
    Sampled,
    Snippet,
    Verdicts,
    WeightSpread,
    pack,
)
from genm.report.queries import details_of, sliders_of
from genm.report.systems import (
    curves_of,
    headline_of,
    learning_of,
    main_values,
    measure_systems,
    number_or_none,
    rival_values,
    rounded,
    systems_of,
    table_of,
)

DETAIL_QUERIES = 200
"""Queries that open to their documents."""
EXTREMES = 25
"""Of these, the maximum number of the largest gains, and of the largest losses."""
SLIDER_SCORES = 160_000
"""Scores stored in the page, so that the sliders can rank again; in double precision they take 1.7 MB."""
LANDSCAPE_WORK = 4_000_000
"""Rows times relevant documents, for lines and maps over the weights."""
TABLE_SCORES = 8_000_000
"""Rows times rankers, for tables, curves and coverage."""
TABLE_ROWS = 20_000
"""Queries in the table of queries."""

TOP = 10
MUCH_UNJUDGED, MANY_MISSING, MANY_TIES = 0.3, 0.5, 0.1
SCALES_APART = 10.0
FEW_QUERIES = 30

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
EQUAL = "equal"
"""The method of models that were not learned: all weights are equal."""


class Samples(NamedTuple):
    """Positions of queries, in ascending order, for each part of the report."""

    table: Ints
    """Of the measures, the curves and the coverage."""
    landscape: Ints
    """Of the lines and the map over the weights."""
    sliders: Ints
    details: Ints
    rows: Ints
    """Of the table of queries."""


def draw_samples(aligned: Aligned, delta: NDArray[np.float64], *, n_details: int, seed: int, level: int) -> Samples:
    """Draw the queries of every part with the seed.

    All parts take the first queries of the same random order, so that a smaller part is contained in a larger one.
    Details also include the queries with the largest gains and losses, which readers open first.
    """
    n, n_rankers = len(aligned.queries), len(aligned.rankers)
    order = np.random.default_rng([seed, 3]).permutation(n)
    lengths = np.diff(aligned.starts)
    stored = per_query(aligned.retrieved.ravel(), aligned.starts * n_rankers)
    by_delta = np.argsort(delta, kind="stable")
    extremes = min(EXTREMES, n_details // 4)
    ends = np.concatenate((by_delta[:extremes], by_delta[n - extremes :])) if extremes else by_delta[:0]
    first = np.array(list(dict.fromkeys((*ends.tolist(), *order.tolist()))), np.int64)
    return Samples(
        table=_within(order, lengths * n_rankers, TABLE_SCORES),
        landscape=_within(order, lengths * (aligned.n_relevant(level) + 8), LANDSCAPE_WORK),
        sliders=_within(order, stored, SLIDER_SCORES),
        details=np.sort(first[:n_details]),
        rows=np.sort(
            np.array(list(dict.fromkeys((*first[:n_details].tolist(), *order.tolist()))), np.int64)[:TABLE_ROWS]
        )
        if n > TABLE_ROWS
        else np.arange(n),
    )


def say_samples(samples: Samples, n_queries: int, seed: int) -> list[Sampled]:
    """Return a sentence for every part that does not show all queries."""
    parts = {
        "measures": (samples.table, "All measures except the report's main measure are means over"),
        "curves": (samples.table, "The precision-recall curves are means over"),
        "coverage": (samples.table, "Coverage, ties and scales are those of"),
        "lines": (samples.landscape, "The measure along the weights is that of"),
        "ternary": (samples.landscape, "The map over the weights is that of"),
        "sliders": (samples.sliders, "The sliders rank the documents of"),
        "queries": (samples.rows, "The table of queries lists"),
        "details": (samples.details, "The queries that open to their documents are"),
    }
    drawn = f"drawn at random (seed {seed})"
    said: list[Sampled] = []
    for part, (positions, begin) in parts.items():
        if len(positions) < n_queries:
            how = "the largest gains and losses, the others " + drawn if part == "details" else drawn
            sentence = f"{begin} {len(positions):,} of {n_queries:,} queries, {how}."
            said.append({"part": part, "n_shown": len(positions), "n_all": n_queries, "sentence": sentence})
    return said


def _within(order: Ints, costs: Ints, limit: int) -> Ints:
    """Return the first queries of the order whose total cost is within the limit, but at least one."""
    n = int(np.searchsorted(np.cumsum(costs[order]), limit, side="right"))
    return np.sort(order[: max(n, 1)])


def coverage_of(
    aligned: Aligned, model: Model, *, n_queries: int, notes: Iterable[Note] = (), ranks: Codes | None = None
) -> DataCoverage:
    """Return what the runs and the judgments cover; `aligned` may be a sample of `n_queries` queries.

    `ranks` are those of the rankers' lists, where they are known.
    """
    found = aligned.coverage(ranks)
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
    unjudged = unjudged_share(aligned, np.array(model.weights))
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
    """Return the normaliser's kind and all values that differ from the defaults."""
    changed = [
        f"{field.name}={getattr(normalizer, field.name)}"
        for field in fields(Normalizer)
        if field.name != "kind" and getattr(normalizer, field.name) != field.default
    ]
    return normalizer.kind + (f" ({', '.join(changed)})" if changed else "")


def _about_queries(n_queries: int, n_empty: int, n_without: int, n_seen: int) -> list[DataWarning]:
    warnings = []
    if n_queries < FEW_QUERIES:
        text = f"Only {n_queries} queries are judged: intervals are wide, and small gains may be chance."
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
        f"{unjudged:.0%} of the fusion's top {TOP} is not judged and counts as not relevant. The real value may be "
        f"higher, and gains may look smaller than they are. Judging these documents is the best next step."
    )
    return [_warning("unjudged", text)]


def _about_rankers(rankers: list[RankerCoverage], kinds: list[str]) -> list[DataWarning]:
    warnings = []
    for row in rankers:
        name = row["ranker"]
        if row["missing"] > MANY_MISSING:
            text = (
                f"{name} did not return {row['missing']:.0%} of the documents that the others found. Its "
                f"normaliser fills the gaps; retrieving more documents would give it more influence."
            )
            warnings.append(_warning("missing", text))
        if row["ties"] > MANY_TIES:
            text = (
                f"{row['ties']:.0%} of {name}'s documents share their score with another of the same query. Ties "
                f"are ranked by doc id, so part of its order is arbitrary."
            )
            warnings.append(_warning("ties", text))
    ranges = [row["high"] - row["low"] for row in rankers]
    if len(ranges) > 1 and min(ranges) > 0.0 and max(ranges) > SCALES_APART * min(ranges):
        wide, narrow = rankers[int(np.argmax(ranges))]["ranker"], rankers[int(np.argmin(ranges))]["ranker"]
        apart = f"The range of raw scores of {wide} is {max(ranges) / min(ranges):,.0f} times that of {narrow}"
        if "none" in kinds:
            text = f"{apart}, and scores are not normalised: a weight does not show a ranker's influence."
            warnings.append(_warning("scales", text))
        else:
            warnings.append(_warning("scales", f"{apart}; the normaliser corrects this.", level="info"))
    return warnings


def _warning(code: str, text: str, *, level: str = "warning") -> DataWarning:
    return {"code": code, "level": "info" if level == "info" else "warning", "text": text}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a report comes from, beyond what the data contain."""

    title: str = "model"
    command: str = ""
    files: tuple[InputFile, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    """Notes from reading and aligning."""
    evidence_was_read: bool = False
    snippet: Snippet | None = None
    """The model as its search engine takes it."""


def compute_evidence(
    aligned: Aligned, model: Model, *, seed: int | None = None, progress: Progress = silent
) -> Kept:
    """Cross-validate the model's method on these data and refit it, as `genm fit` does for the evidence file.

    Folds and seed are those of the model's training.
    """
    seed = model.seed if seed is None else seed
    make_one, measure = _maker(aligned, model), parse_measure(model.measure)
    fuser, evidence = gather_evidence(aligned, make_one, measure, folds=model.folds, seed=seed, progress=progress)
    return keep_evidence(aligned, fuser, evidence, seed=seed, progress=progress)


def build_report(
    aligned: Aligned,
    model: Model,
    kept: Kept,
    source: Source | None = None,
    *,
    n_details: int = DETAIL_QUERIES,
    progress: Progress = silent,
) -> Report:
    """Build the report; `aligned` must be aligned for the model (`Model.align`).

    Parts that would become too large, or take too long, show a sample of the queries, drawn with the seed of the
    evidence; `sampling` lists these parts and the numbers of queries.
    """
    if not aligned.labelled:
        raise InputError("a report needs judgments. Give qrels when aligning the runs.")
    if tuple(aligned.queries) != kept.evidence.query_ids:
        raise ModelError("the evidence belongs to other queries than these. Compute it again.")
    source = source or Source()
    evidence, weights, seed = kept.evidence, np.array(model.weights), kept.seed
    can_slide = len(weights) > 1 and bool((weights >= 0.0).all())  # sliders go from 0 to 1
    level = _level(model)
    delta = evidence.held_out.per_query - rival_values(evidence)
    samples = draw_samples(aligned, delta, n_details=n_details, seed=seed, level=level)
    same = kept.weights == model.weights
    trained = evidence.train if same else measure_queries(aligned, weights, evidence.measure)
    main = main_values(evidence, trained)
    measured = measure_systems(aligned, model, evidence, samples.table, progress=progress)
    land = Landscape(_part(aligned, samples.landscape), evidence.measure, weights)
    lines, ternary = land.lines(progress=progress), land.ternary()
    verdicts = _verdicts(aligned, model, kept, progress)
    progress("opening queries", 0, 1)
    headline = headline_of(evidence)
    headline["train"] = evidence.mean(trained)
    if headline["unjudged"] is None:  # the evidence is of an older release
        evidence = replace(evidence, unjudged=unjudged_share(aligned, weights))
        headline |= {"unjudged": evidence.unjudged, "caveat": evidence.caveat}
    ids = list(aligned.queries)
    report: Report = {
        "format": FORMAT,
        "version": VERSION,
        "title": source.title,
        "measure": str(evidence.measure),
        "rankers": list(model.rankers),
        "weights": list(model.weights),
        "n_queries": len(ids),
        "headline": headline,
        "spread": _spread(aligned, kept, model, land),
        "verdicts": verdicts,
        "snippet": source.snippet,
        "measures": table_of(measured, main, evidence),
        "curves": curves_of(measured, evidence),
        "lines": lines,
        "ternary": ternary,
        "learning": learning_of(kept),
        "queries": _queries(aligned, model, kept, main, samples),
        "details": details_of(aligned, weights, samples.details, level),
        "sliders": sliders_of(aligned, weights, samples.sliders, level) if can_slide else None,
        "coverage": coverage_of(
            measured.aligned,
            model,
            n_queries=len(ids),
            notes=(*source.notes, *aligned.notes),
            ranks=measured.ranks,
        ),
        "sampling": say_samples(samples, len(ids), seed),
        "made": {
            "command": source.command,
            "versions": dict(source.versions),
            "files": list(source.files),
            "fingerprint": kept.fingerprint,
            "seed": seed,
            "method": model.method,
            "fitted_with": model.library,
            "beta": model.beta,
            "relevance_level": level,
            "target": model.target,
            "evidence": "read" if source.evidence_was_read else "computed",
            "matches_training": model.fingerprint == kept.fingerprint,
        },
    }
    missing = {part for part in ("ternary", "sliders", "lines") if not report[part]}  # a sample of nothing
    report["sampling"] = [said for said in report["sampling"] if said["part"] not in missing]
    report["coverage"]["warnings"][:0] = _whose(model, kept)
    _in_rows(report, samples)
    progress("opening queries", 1, 1)
    return report


def _in_rows(report: Report, samples: Samples) -> None:
    """Turn positions among all queries into positions in the table of queries, which may be a sample."""
    if len(samples.rows) == report["n_queries"]:
        return
    for detail in report["details"]:
        detail["query"] = int(np.searchsorted(samples.rows, detail["query"]))
    sliders = report["sliders"]
    if sliders is not None:
        at = np.searchsorted(samples.rows, samples.sliders)
        found = samples.rows[np.minimum(at, len(samples.rows) - 1)] == samples.sliders
        sliders["queries"] = pack(np.where(found, at, -1), "int32")


def _verdicts(aligned: Aligned, model: Model, kept: Kept, progress: Progress) -> Verdicts:
    """Return what leaving each ranker out costs, on the folds of the evidence."""
    evidence, skipped = kept.evidence, why_no_losses(model, aligned)
    folds = len(evidence.held_out.weights)
    if skipped:
        return {
            "rows": [],
            "skipped": skipped,
            "advice": [],
            "held_out": None,
            "margin": NEGLIGIBLE_LOSS,
            "confidence": evidence.confidence,
            "folds": folds,
        }
    found = model_losses(model, aligned, folds=folds, seed=kept.seed, known=kept.without, progress=progress)
    return {
        "rows": [
            {
                "ranker": part.name,
                "verdict": found.verdicts[part.name],
                "loss": part.loss.value,
                "low": number_or_none(part.loss.joint_low),
                "high": number_or_none(part.loss.joint_high),
                "sentence": about_ranker(found, part),
            }
            for part in found.rankers
        ],
        "skipped": "",
        "advice": found.advice(),
        "held_out": found.value,
        "margin": found.margin,
        "confidence": found.confidence,
        "folds": found.folds,
    }


def _spread(aligned: Aligned, kept: Kept, model: Model, land: Landscape) -> WeightSpread:
    refits, plateaus = kept.refits, land.plateaus()
    kind: Literal["bootstrap", "folds", "none"] = refits.kind
    drawn = refits.weights if refits.kind == "bootstrap" else kept.evidence.held_out.weights
    note = refits.note
    if refits.kind != "bootstrap" and np.ptp(drawn, axis=0).any():
        kind = "folds"
        note += f" The weights shown are those of the {len(drawn)} folds of the cross-validation."
    if refits.held_back == 1.0:
        note += " This removes everything that was learned: every refit gives the same weights."
    held = refits.kind == "bootstrap" and bool(refits.held_back)
    gains: list[float | None] = [None]
    if len(model.rankers) > 1:
        gains = gains_by_query(aligned, model.weights, kept.evidence.measure).mean_gain().tolist()
    return {
        "kind": kind,
        "n_samples": 0 if kind == "none" else len(drawn),
        "levels": list(LEVELS),
        "plateau_loss": None if plateaus is None else PLATEAU_LOSS,
        "held_back": refits.held_back,
        "note": note,
        "rows": [
            {
                "ranker": name,
                "weight": weight,
                "quantiles": None if kind == "none" else np.quantile(drawn[:, k], LEVELS).tolist(),
                "samples": [] if kind == "none" else [rounded(value) for value in drawn[:, k]],
                "before": np.quantile(refits.before[:, k], LEVELS).tolist() if held else None,
                "plateau": None if plateaus is None else plateaus[k],
                "gain": gains[k],
            }
            for k, (name, weight) in enumerate(zip(model.rankers, model.weights, strict=True))
        ],
    }


def _queries(
    aligned: Aligned,
    model: Model,
    kept: Kept,
    main: dict[str, Floats],
    samples: Samples,
) -> QueryTable:
    evidence, rows = kept.evidence, samples.rows
    query_ids = [evidence.query_ids[q] for q in rows.tolist()]
    detail = np.full(len(aligned.queries), -1)
    detail[samples.details] = np.arange(len(samples.details))
    judged = np.diff(aligned.unretrieved_starts) + per_query(aligned.relevance != UNJUDGED, aligned.starts)

    def column(values: Floats) -> list[float]:
        return [round(value, 6) for value in values[rows].tolist()]

    return {
        "query_ids": query_ids,
        "texts": None,
        "values": {one.id: column(main[one.id]) for one in systems_of(evidence)},
        "delta": column(evidence.held_out.per_query - rival_values(evidence)),
        "rival": evidence.strongest,
        "delta_rrf": column(evidence.held_out.per_query - evidence.rules[RRF]),
        "fold": evidence.held_out.fold[rows].tolist(),
        "n_relevant": aligned.n_relevant(_level(model))[rows].tolist(),
        "n_judged": judged[rows].tolist(),
        "n_docs": np.diff(aligned.starts)[rows].tolist(),
        "detail": detail[rows].tolist(),
        "n_all": len(aligned.queries),
    }


def _maker(aligned: Aligned, model: Model) -> Callable[[], Fuser]:
    """Return a function that makes a new fuser with the method and options of the model.

    A method may optimise AP and be evaluated by another measure. For equal weights and for unknown methods, the
    fuser returns the weights of the model.
    """
    reads_grades = not is_method(model.method) or "level" in find_method(model.method).parameters
    options: dict[str, Any] = {"level": model.relevance_level} if reads_grades else {}
    softness = softness_for(len(aligned.rankers)) if model.method == AutoFuser.method else 1.0
    if model.beta is not None and not np.isclose(model.beta, softness * beta_of(aligned)):
        options["beta"] = model.beta  # it was set by the user, not derived from the scores
    if model.online is not None:
        options["schedule"] = model.online.schedule
    if model.signs == "any":
        options["signs"] = "any"
    for measure in (model.measure, "AP"):
        make = partial(make_fuser, model.method, measure=measure, **options)
        try:
            make()
        except InputError:
            continue
        return make
    return partial(FixedWeights, model.weights, level=model.relevance_level)


def _whose(model: Model, kept: Kept) -> list[DataWarning]:
    """Warn if the model was learned from other data, or if its weights differ from those of the evidence."""
    known = is_method(model.method) or model.method == EQUAL
    if not known and (kept.evidence.held_out.weights == model.weights).all():
        text = (
            f"The method {model.method} is not known here, so its weights are evaluated as they are. If they were "
            f"learned from these queries, nothing is held out, and the figures are too optimistic."
        )
        return [{"code": "not-held-out", "level": "warning", "text": text}]
    if model.fingerprint and model.fingerprint != kept.fingerprint:
        text = (
            "The model was learned from other data than these. The held-out figures belong to its method, trained "
            "again on these queries; the training column shows the model's weights."
        )
        return [{"code": "other-data", "level": "warning", "text": text}]
    if kept.weights != model.weights:
        learned = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(kept.rankers, kept.weights, strict=True))
        text = f"Trained again on these queries, the method gives different weights: {learned}."
        return [{"code": "other-weights", "level": "warning", "text": text}]
    return []


def _part(aligned: Aligned, positions: NDArray[np.int64]) -> Aligned:
    return aligned if len(positions) == len(aligned.queries) else aligned.select(positions)


def _level(model: Model) -> int:
    """Return the lowest grade that counts as relevant: the measure's level if it has one."""
    measure = parse_measure(model.measure)
    return measure.rel if measure.takes_level else model.relevance_level
