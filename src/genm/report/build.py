"""From a model, its evidence and the data to the whole report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genm.align import UNJUDGED, Aligned
from genm.align.aligned import per_query
from genm.errors import InputError, ModelError
from genm.evaluate import parse_measure
from genm.evidence import BEST_SINGLE, RRF, GivenFuser, Kept, gather_evidence, keep_evidence
from genm.evidence.crossval import measure_queries
from genm.learn import Fuser
from genm.learn.auto import METHODS, make_fuser
from genm.learn.objectives import beta_of
from genm.model import Model
from genm.progress import Progress, silent
from genm.records import Note
from genm.report.data import coverage_of
from genm.report.documents import details_of
from genm.report.headline import headline_of, learning_of
from genm.report.landscape import PLATEAU_LOSS, Landscape
from genm.report.packing import pack
from genm.report.payload import FORMAT, VERSION, DataWarning, InputFile, QueryTable, Report, WeightSpread
from genm.report.sample import DETAIL_QUERIES, Samples, draw_samples, say_samples
from genm.report.sliders import sliders_of
from genm.report.systems import curves_of, main_values, measure_systems, rounded, systems_of, table_of

Array = NDArray[np.float64]

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
EQUAL = "equal"
"""The method of models that were never learned: every ranker counts the same."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a report comes from, as far as the data do not say it themselves."""

    title: str = "model"
    command: str = ""
    files: tuple[InputFile, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    """What reading and aligning saw or repaired."""
    evidence_was_read: bool = False


def compute_evidence(aligned: Aligned, model: Model, *, seed: int = 0, progress: Progress = silent) -> Kept:
    """Cross-validate the model's method on these data, and refit it: what `genm fit` keeps beside the model."""
    make_one = _maker(aligned, model)
    fuser, evidence = gather_evidence(aligned, make_one, parse_measure(model.measure), seed=seed, progress=progress)
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
    """Put everything together; `aligned` must be aligned for the model (`genm.learn.align_for_model`).

    Parts that would grow too large, or take too long, show a sample of the queries drawn by the evidence's seed;
    `sampling` says which and how many.
    """
    if not aligned.labelled:
        raise InputError("a report needs judgments. Give qrels when aligning the runs.")
    if tuple(aligned.queries) != kept.evidence.query_ids:
        raise ModelError("the evidence is of other queries than these. Compute it anew.")
    source = source or Source()
    evidence, weights, seed = kept.evidence, np.array(model.weights), kept.seed
    level = _level(model)
    delta = evidence.held_out.per_query - evidence.best_single
    samples = draw_samples(aligned, delta, n_details=n_details, seed=seed, level=level)
    same = kept.weights == model.weights
    trained = evidence.train if same else measure_queries(aligned, weights, evidence.measure)
    main = main_values(evidence, trained)
    measured = measure_systems(aligned, model, evidence, samples.table, progress=progress)
    land = Landscape(_part(aligned, samples.landscape), evidence.measure, weights)
    lines, ternary = land.lines(progress=progress), land.ternary()
    progress("opening queries", 0, 1)
    headline = headline_of(evidence, model.method)
    headline["train"] = evidence.mean(trained)
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
        "spread": _spread(kept, model, land),
        "measures": table_of(measured, main, evidence, model.rankers),
        "curves": curves_of(measured, model.rankers),
        "lines": lines,
        "ternary": ternary,
        "learning": learning_of(kept),
        "queries": _queries(aligned, model, kept, main, samples),
        "details": details_of(aligned, weights, samples.details, level),
        "sliders": sliders_of(aligned, weights, samples.sliders, level) if len(weights) > 1 else None,
        "coverage": coverage_of(
            _part(aligned, samples.table), model, n_queries=len(ids), notes=(*source.notes, *aligned.notes)
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


def _spread(kept: Kept, model: Model, land: Landscape) -> WeightSpread:
    refits, plateaus = kept.refits, land.plateaus()
    kind: Literal["bootstrap", "folds", "none"] = refits.kind
    drawn = refits.weights if refits.kind == "bootstrap" else kept.evidence.held_out.weights
    note = refits.note
    if refits.kind != "bootstrap" and np.ptp(drawn, axis=0).any():
        kind = "folds"
        note += f" What is shown are the weights of the {len(drawn)} folds of the cross-validation."
    if refits.held_back == 1.0:
        note += " Nothing of what was learned is left after that: every refit gives the same weights."
    held = refits.kind == "bootstrap" and bool(refits.held_back)
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
                "gain": land.worth(k),
            }
            for k, (name, weight) in enumerate(zip(model.rankers, model.weights, strict=True))
        ],
    }


def _queries(
    aligned: Aligned,
    model: Model,
    kept: Kept,
    main: dict[str, Array],
    samples: Samples,
) -> QueryTable:
    evidence, rows = kept.evidence, samples.rows
    query_ids = [evidence.query_ids[q] for q in rows.tolist()]
    detail = np.full(len(aligned.queries), -1)
    detail[samples.details] = np.arange(len(samples.details))
    judged = np.diff(aligned.unretrieved_starts) + per_query(aligned.relevance != UNJUDGED, aligned.starts)

    def column(values: Array) -> list[float]:
        return [round(value, 6) for value in values[rows].tolist()]

    return {
        "query_ids": query_ids,
        "texts": None,
        "values": {one.id: column(main[one.id]) for one in systems_of(model.rankers)},
        "delta": column(evidence.held_out.per_query - evidence.best_single),
        "rival": BEST_SINGLE,
        "delta_rrf": column(evidence.held_out.per_query - evidence.rules[RRF]),
        "fold": evidence.held_out.fold[rows].tolist(),
        "n_relevant": aligned.n_relevant(_level(model))[rows].tolist(),
        "n_judged": judged[rows].tolist(),
        "n_docs": np.diff(aligned.starts)[rows].tolist(),
        "detail": detail[rows].tolist(),
        "n_all": len(aligned.queries),
    }


def _maker(aligned: Aligned, model: Model) -> Callable[[], Fuser]:
    """Return what makes the fuser that learned the model, not yet fitted.

    A method may climb AP and be measured otherwise. Of equal weights, and of a method that is not known here, the
    model's weights are taken as they are.
    """
    options: dict[str, Any] = {} if model.method == "uns" else {"level": model.relevance_level}
    if model.beta is not None and not np.isclose(model.beta, beta_of(aligned)):
        options["beta"] = model.beta  # it was given, not found
    if model.online is not None:
        options["schedule"] = model.online.schedule
    for measure in (model.measure, "AP"):
        make = partial(make_fuser, model.method, measure=measure, **options)
        try:
            make()
        except InputError:
            continue
        return make
    return partial(GivenFuser, model.weights, level=model.relevance_level)


def _whose(model: Model, kept: Kept) -> list[DataWarning]:
    """Say if the model was learned from other data, or its weights are not those that the evidence would choose."""
    if model.method not in (*METHODS, EQUAL) and (kept.evidence.held_out.weights == model.weights).all():
        text = (
            f"How {model.method} learns is not known here: its weights were taken as they are. If it learned them "
            f"from these queries, nothing is held out, and the figures are too good."
        )
        return [{"code": "not-held-out", "level": "warning", "text": text}]
    if model.fingerprint and model.fingerprint != kept.fingerprint:
        text = (
            "The model was learned from other data than these. What is held out here is its method, learned anew "
            "on these queries; the training column shows the model's own weights."
        )
        return [{"code": "other-data", "level": "warning", "text": text}]
    if kept.weights != model.weights:
        learned = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(kept.rankers, kept.weights, strict=True))
        text = f"Learned anew on these queries, the method gives other weights than the model's: {learned}."
        return [{"code": "other-weights", "level": "warning", "text": text}]
    return []


def _part(aligned: Aligned, positions: NDArray[np.int64]) -> Aligned:
    return aligned if len(positions) == len(aligned.queries) else aligned.select(positions)


def _level(model: Model) -> int:
    """Return from which grade on documents count as relevant: the measure's own level where it names one."""
    measure = parse_measure(model.measure)
    return measure.rel if measure.name not in ("nDCG", "Judged") else model.relevance_level
