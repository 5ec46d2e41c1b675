"""The file beside a model: folds, per-query values and refits, versioned JSON that is read back strictly.

It contains the weights and a hash of the data, so that it is never used for another model.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta

from genm._math.linear_algebra import weighted_mean
from genm._typing import Floats
from genm.errors import InputError, ModelError
from genm.evaluate import Contrast, Outcome, parse_measure
from genm.evidence.crossval import HeldOut
from genm.evidence.evidence import Evidence, with_gains
from genm.evidence.resampling import FewerQueries, Kept, LeftOut, Refits
from genm.io import write_text
from genm.model import Model
from genm.normalizers import normalizer_from_json, normalizer_to_json
from genm.strict_json import EDITED, Count, Finite, Strict, check_head, convert, parse_json

EVIDENCE_VERSION = 3
"""Earlier versions are still read. Version 1 had bootstrap intervals and let each fold choose its best single
ranker; version 2 had no training values of the rankers without one, which the intervals of the losses need."""
_HEAD = "genm-evidence"
_LACKS = "it is of version {version} and does not hold what the intervals of the losses without a ranker need"
_Numbers = tuple[Finite, ...]


class _Fold(Strict, frozen=True):
    weights: _Numbers
    normalizers: tuple[dict[str, Any], ...]


class _Gain(Strict, frozen=True):
    """The fields of `Contrast`."""

    name: str
    measure: str
    mean: Finite
    baseline_mean: Finite
    difference: Finite
    low: Finite
    high: Finite
    n_better: Count
    n_worse: Count
    n_equal: Count
    p_values: dict[str, Finite]
    corrected: dict[str, Finite]
    outcome: Outcome


class _RefitRows(Strict, frozen=True):
    kind: Literal["bootstrap", "none"]
    held_back: Finite | None
    note: str
    weights: tuple[_Numbers, ...]
    before: tuple[_Numbers, ...]


class _FewerRows(Strict, frozen=True):
    note: str
    n_queries: _Numbers
    per_query: tuple[_Numbers, ...]


class _EvidenceFile(Strict, frozen=True):
    """The layout of the file, in the order of its keys."""

    format: str
    version: int
    fingerprint: str
    seed: int
    rankers: tuple[str, ...]
    weights: _Numbers
    measure: str
    confidence: Finite
    best_ranker: str
    unjudged: Finite | None
    interval: Annotated[_Numbers, Meta(min_length=2, max_length=2, description="two numbers")]
    query_ids: tuple[str, ...]
    query_weights: _Numbers
    train: _Numbers
    held_out: _Numbers
    fold: tuple[Count, ...]
    singles: dict[str, _Numbers]
    rules: dict[str, _Numbers]
    folds: tuple[_Fold, ...]
    gains: dict[str, _Gain]
    refits: _RefitRows
    fewer: _FewerRows
    without: tuple[_Numbers, ...] = ()
    """Empty where it was not computed."""
    without_training: tuple[_Numbers, ...] = ()


def evidence_path(model_path: str | Path) -> Path:
    """Return the path of a model's evidence file: model.evidence.json for model.json."""
    path = Path(model_path)
    return path.with_name(f"{path.stem if path.suffix == '.json' else path.name}.evidence.json")


def save_evidence(kept: Kept, path: str | Path) -> None:
    """Write the evidence as JSON, a line per part, atomically."""
    document = evidence_to_json(kept)
    lines = [f"{json.dumps(key)}: {_compact(value)}" for key, value in document.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def load_evidence(path: str | Path) -> Kept:
    """Read an evidence file; refuse files that are not valid or of an unknown version."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}).") from error
    advice = "Delete the file, and genm computes it again."
    return evidence_from_json(parse_json(content, str(path), what="evidence", advice=advice), str(path))


def mismatch(kept: Kept, model: Model, fingerprint: str) -> str | None:
    """Return why this evidence does not belong to the model and the data, or None if it does."""
    if kept.rankers != model.rankers:
        return f"it is of the rankers {', '.join(kept.rankers)}"
    if kept.fingerprint != fingerprint:
        return "it is of other runs, judgments or query weights"
    if str(kept.evidence.measure) != model.measure:
        return f"it is measured in {kept.evidence.measure}, and the model in {model.measure}"
    if kept.weights != model.weights:
        return "it is of other weights"
    return None


def evidence_to_json(kept: Kept) -> dict[str, Any]:
    """Return the evidence as a JSON object; floats survive the round trip bit for bit."""
    evidence, held_out = kept.evidence, kept.evidence.held_out
    return {
        "format": _HEAD,
        "version": EVIDENCE_VERSION,
        "fingerprint": kept.fingerprint,
        "seed": kept.seed,
        "rankers": list(kept.rankers),
        "weights": list(kept.weights),
        "measure": str(evidence.measure),
        "confidence": evidence.confidence,
        "best_ranker": evidence.best_name,
        "unjudged": evidence.unjudged,
        "interval": list(evidence.interval),
        "query_ids": list(evidence.query_ids),
        "query_weights": evidence.query_weights.tolist(),
        "train": evidence.train.tolist(),
        "held_out": held_out.per_query.tolist(),
        "fold": held_out.fold.tolist(),
        "singles": {name: values.tolist() for name, values in evidence.singles.items()},
        "rules": {name: values.tolist() for name, values in evidence.rules.items()},
        "folds": [
            {
                "weights": weights.tolist(),
                "normalizers": [normalizer_to_json(normalizer) for normalizer in normalizers],
            }
            for weights, normalizers in zip(held_out.weights, evidence.fold_normalizers, strict=True)
        ],
        "gains": {name: asdict(gain) for name, gain in evidence.gains.items()},
        "refits": {
            "kind": kept.refits.kind,
            "held_back": kept.refits.held_back,
            "note": kept.refits.note,
            "weights": kept.refits.weights.tolist(),
            "before": kept.refits.before.tolist(),
        },
        "fewer": {
            "note": kept.fewer.note,
            "n_queries": kept.fewer.n_queries.tolist(),
            "per_query": kept.fewer.per_query.tolist(),
        },
        "without": [] if kept.without is None else kept.without.held_out.tolist(),
        "without_training": [] if kept.without is None else kept.without.training.tolist(),
    }


def evidence_from_json(document: object, place: str = "evidence") -> Kept:
    """Read the evidence back from its JSON object."""
    version = document.get("version") if isinstance(document, dict) and document.get("format") == _HEAD else None
    if version == 1:
        document = _from_version_1(cast("dict[str, Any]", document), place)
    if version in (1, 2):
        document = {**cast("dict[str, Any]", document), "version": EVIDENCE_VERSION, "without": []}
    check_head(document, _HEAD, EVIDENCE_VERSION, "evidence", place)
    file = convert(document, _EvidenceFile, place)
    n, n_rankers = len(file.query_ids), len(file.rankers)

    def per_query(key: str) -> Floats:
        return _row(getattr(file, key), n, f"{place}: {key}")

    if tuple(file.singles) != file.rankers:
        raise ModelError(
            f"{place}: singles: expected {', '.join(file.rankers)}; found {', '.join(file.singles)}. {EDITED}"
        )
    if file.best_ranker not in file.singles:
        raise ModelError(
            f"{place}: best_ranker: expected one of {', '.join(file.rankers)}; found {file.best_ranker}. {EDITED}"
        )
    low, high = file.interval
    query_weights, held_out = per_query("query_weights"), per_query("held_out")
    fold = per_query("fold").astype(np.int64)
    if n == 0 or not ((fold >= 0) & (fold < len(file.folds))).all():
        raise ModelError(
            f"{place}: fold: expected numbers of the {len(file.folds)} folds, from 0, for at least one query; "
            f"found {sorted(set(file.fold))}. {EDITED}"
        )
    fold_weights = [
        _row(row.weights, n_rankers, f"{place}: folds[{i}].weights") for i, row in enumerate(file.folds)
    ]
    fold_normalizers = (
        tuple(
            normalizer_from_json(normalizer, place, f"folds[{i}].normalizers[{k}]")
            for k, normalizer in enumerate(row.normalizers)
        )
        for i, row in enumerate(file.folds)
    )
    try:
        measure = parse_measure(file.measure)
    except InputError as error:
        raise ModelError(f"{place}: measure: {error} {EDITED}") from None
    evidence = Evidence(
        measure=measure,
        query_ids=file.query_ids,
        train=per_query("train"),
        held_out=HeldOut(
            per_query=held_out,
            mean=weighted_mean(held_out, query_weights),
            fold=fold,
            weights=np.array(fold_weights),
            query_ids=file.query_ids,
            rankers=file.rankers,
            measure=str(measure),
        ),
        singles={name: _row(values, n, f"{place}: singles.{name}") for name, values in file.singles.items()},
        rules={name: _row(values, n, f"{place}: rules.{name}") for name, values in file.rules.items()},
        best_name=file.best_ranker,
        interval=(low, high),
        gains={name: Contrast(**msgspec.structs.asdict(gain)) for name, gain in file.gains.items()},
        query_weights=query_weights,
        confidence=file.confidence,
        fold_normalizers=tuple(fold_normalizers),
        unjudged=file.unjudged,
    )
    if version == 1:
        evidence = with_gains(evidence, file.seed)
    refits, fewer = file.refits, file.fewer
    return Kept(
        rankers=file.rankers,
        weights=tuple(_row(file.weights, n_rankers, f"{place}: weights").tolist()),
        fingerprint=file.fingerprint,
        seed=file.seed,
        evidence=evidence,
        refits=Refits(
            _rows(refits.weights, len(refits.weights), n_rankers, f"{place}: refits.weights"),
            _rows(refits.before, len(refits.weights), n_rankers, f"{place}: refits.before"),
            refits.kind,
            refits.held_back,
            refits.note,
        ),
        fewer=FewerQueries(
            np.array(fewer.n_queries, np.float64),
            _rows(fewer.per_query, len(fewer.n_queries), n, f"{place}: fewer.per_query"),
            fewer.note,
        ),
        without=_left_out(file, place),
        lacks="" if version == EVIDENCE_VERSION else _LACKS.format(version=version),
    )


def _left_out(file: _EvidenceFile, place: str) -> LeftOut | None:
    if not file.without:
        return None
    n_rows, n = len(file.rankers) + 1, len(file.query_ids)
    return LeftOut(
        _rows(file.without, n_rows, n, f"{place}: without"),
        _rows(file.without_training, n_rows, n, f"{place}: without_training"),
    )


def _from_version_1(document: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a document of version 1 in the present layout; `with_gains` then computes its gains anew."""
    if "best_single" not in document or not isinstance(document.get("gains"), dict):
        raise ModelError(f"{place}: expected best_single and gains. {EDITED}")
    kept = {key: value for key, value in document.items() if key != "best_single"}
    return {**kept, "unjudged": None, "gains": {}}


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _row(numbers: Sequence[float], size: int, place: str) -> Floats:
    if len(numbers) != size:
        raise ModelError(f"{place}: expected {size} numbers; found {len(numbers)}. {EDITED}")
    return np.array(numbers, np.float64)


def _rows(rows: Sequence[Sequence[float]], n_rows: int, size: int, place: str) -> Floats:
    if len(rows) != n_rows:
        raise ModelError(f"{place}: expected {n_rows} rows; found {len(rows)}. {EDITED}")
    checked = [_row(row, size, f"{place}[{i}]") for i, row in enumerate(rows)]
    return np.array(checked, np.float64).reshape(n_rows, size)
