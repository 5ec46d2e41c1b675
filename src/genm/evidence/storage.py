"""The file beside a model: folds, per-query values and refits, versioned JSON that is read back strictly.

It holds the hash of its data and the weights it speaks of, so that it is never taken for another model's.
"""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from genm._math.linear_algebra import weighted_mean
from genm._typing import Floats
from genm.errors import ModelError
from genm.evaluate import Contrast, parse_measure
from genm.evidence.crossval import HeldOut
from genm.evidence.evidence import Evidence
from genm.evidence.resampling import FewerQueries, Kept, Refits
from genm.io import write_text
from genm.model import JsonObject, Model, read_normalizer

EVIDENCE_VERSION = 1
_HEAD = "genm-evidence"
_COUNTS = ("n_better", "n_worse", "n_equal")
_P = ("p_values", "corrected")


def evidence_path(model_path: str | Path) -> Path:
    """Return where the evidence of a model lies: model.json has model.evidence.json beside it."""
    path = Path(model_path)
    return path.with_name(f"{path.stem if path.suffix == '.json' else path.name}.evidence.json")


def save_evidence(kept: Kept, path: str | Path) -> None:
    """Write the evidence as JSON, a line per part; the file appears whole or not at all."""
    document = evidence_to_json(kept)
    lines = [f"{json.dumps(key)}: {_compact(value)}" for key, value in document.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def load_evidence(path: str | Path) -> Kept:
    """Read an evidence file; anything that is not exactly one of a known version is refused."""
    advice = "Delete it, and it is computed anew."
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError:
        raise ModelError(f"{path}: expected UTF-8 JSON; found other bytes. {advice}") from None
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}:{error.lineno}: expected JSON; {error.msg}. {advice}") from None
    return evidence_from_json(document, str(path))


def mismatch(kept: Kept, model: Model, fingerprint: str) -> str | None:
    """Say why this evidence is not that of the model and the data, or None if it is."""
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
        "interval": list(evidence.interval),
        "query_ids": list(evidence.query_ids),
        "query_weights": evidence.query_weights.tolist(),
        "train": evidence.train.tolist(),
        "held_out": held_out.per_query.tolist(),
        "fold": held_out.fold.tolist(),
        "best_single": evidence.best_single.tolist(),
        "singles": {name: values.tolist() for name, values in evidence.singles.items()},
        "rules": {name: values.tolist() for name, values in evidence.rules.items()},
        "folds": [
            {"weights": weights.tolist(), "normalizers": [asdict(normalizer) for normalizer in normalizers]}
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
    }


def evidence_from_json(document: object, place: str = "evidence") -> Kept:
    """Read the evidence back from its JSON object."""
    top = JsonObject(document, place)
    top.check_head(_HEAD, EVIDENCE_VERSION, "evidence")
    rankers, query_ids = (_words(top, key) for key in ("rankers", "query_ids"))
    n, n_rankers = len(query_ids), len(rankers)
    weights = _floats(top, "weights", (n_rankers,))
    query_weights = _floats(top, "query_weights", (n,))
    folds = [JsonObject(row, f"{place}: folds[{i}]") for i, row in enumerate(top.take("folds", list))]
    fold, per_query = _floats(top, "fold", (n,)).astype(np.int64), _floats(top, "held_out", (n,))
    if n == 0 or not ((fold >= 0) & (fold < len(folds))).all():
        raise ModelError(f'{place}: expected "fold" to number the {len(folds)} folds from 0 on for each query.')
    measure = parse_measure(top.take("measure", str))
    evidence = Evidence(
        measure=measure,
        query_ids=query_ids,
        train=_floats(top, "train", (n,)),
        held_out=HeldOut(
            per_query=per_query,
            mean=weighted_mean(per_query, query_weights),
            fold=fold,
            weights=np.array([_floats(row, "weights", (n_rankers,)) for row in folds]),
            query_ids=query_ids,
            rankers=rankers,
            measure=str(measure),
        ),
        singles=_columns(top, "singles", n, rankers),
        rules=_columns(top, "rules", n),
        best_single=_floats(top, "best_single", (n,)),
        best_name=top.take("best_ranker", str),
        interval=tuple(_floats(top, "interval", (2,)).tolist()),
        gains={name: _gain(row, f"{place}: gains.{name}") for name, row in top.take("gains", dict).items()},
        query_weights=query_weights,
        confidence=top.number("confidence"),
        fold_normalizers=tuple(
            tuple(read_normalizer(one, row.place) for one in row.take("normalizers", list)) for row in folds
        ),
    )
    kept = Kept(
        rankers=rankers,
        weights=tuple(weights.tolist()),
        fingerprint=top.take("fingerprint", str),
        seed=top.take("seed", int),
        evidence=evidence,
        refits=_refits(top.take("refits", dict), f"{place}: refits", n_rankers),
        fewer=_fewer(top.take("fewer", dict), f"{place}: fewer", n),
    )
    for table in (top, *folds):
        table.close()
    return kept


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _words(table: JsonObject, key: str) -> tuple[str, ...]:
    found = table.take(key, list)
    if not all(isinstance(word, str) for word in found):
        raise ModelError(f'{table.place}: expected "{key}" to be a list of strings.')
    return tuple(found)


def _floats(table: JsonObject, key: str, shape: tuple[int, ...]) -> Floats:
    """Take numbers of the given shape; -1 stands for any length of a list, and any number of rows."""
    found = table.take(key, list)
    rows: list[Any] = found if len(shape) > 1 else [found]
    wide = shape[-1]
    if len(shape) > 1 and shape[0] not in (-1, len(rows)):
        raise ModelError(f'{table.place}: expected "{key}" to have {shape[0]} rows; found {len(rows)}.')
    for row in rows:
        if not isinstance(row, list) or wide not in (-1, len(row)):
            size = len(row) if isinstance(row, list) else type(row).__name__
            raise ModelError(f'{table.place}: expected "{key}" to hold {wide} numbers; found {size}.')
        if not all(type(number) in (int, float) for number in row):
            raise ModelError(f'{table.place}: expected "{key}" to hold numbers only.')
    array = np.array(found, np.float64)
    if not np.isfinite(array).all():
        raise ModelError(f'{table.place}: expected "{key}" to hold finite numbers.')
    return array.reshape(len(rows), wide) if len(shape) > 1 else array


def _columns(table: JsonObject, key: str, n: int, names: tuple[str, ...] | None = None) -> dict[str, Floats]:
    found: dict[str, Any] = table.take(key, dict)
    if names is not None and tuple(found) != names:
        raise ModelError(f'{table.place}: expected "{key}" to hold {", ".join(names)}; found {", ".join(found)}.')
    inner = JsonObject(found, f"{table.place}: {key}")
    return {name: _floats(inner, name, (n,)) for name in found}


def _gain(value: object, place: str) -> Contrast:
    table, found = JsonObject(value, place), dict[str, Any]()
    for field in fields(Contrast):
        if field.name in _P:
            inner = JsonObject(table.take(field.name, dict), f"{place}.{field.name}")
            found[field.name] = {test: inner.number(test) for test in tuple(inner._left)}
        elif field.name in _COUNTS:
            found[field.name] = table.take(field.name, int)
        elif field.name in ("name", "measure"):
            found[field.name] = table.take(field.name, str)
        else:
            found[field.name] = table.number(field.name)
    table.close()
    return Contrast(**found)


def _refits(value: object, place: str, n_rankers: int) -> Refits:
    table = JsonObject(value, place)
    kind: Literal["bootstrap", "none"] = table.choice(
        "kind", get_args(Literal["bootstrap", "none"]), number=False, null=False
    )
    weights = _floats(table, "weights", (-1, n_rankers))
    before = _floats(table, "before", (len(weights), n_rankers))
    refits = Refits(weights, before, kind, table.number_or_none("held_back"), table.take("note", str))
    table.close()
    return refits


def _fewer(value: object, place: str, n: int) -> FewerQueries:
    table = JsonObject(value, place)
    numbers = _floats(table, "n_queries", (-1,))
    fewer = FewerQueries(numbers, _floats(table, "per_query", (len(numbers), n)), table.take("note", str))
    table.close()
    return fewer
