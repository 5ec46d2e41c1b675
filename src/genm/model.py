"""The model: weights and everything that fusing at serving time needs to equal training; its file; serving.

The file is a versioned JSON document, written atomically and read back strictly: an unknown version, a missing
or misspelt key, a weight that is not a number are refused with the place and what was expected. No pickle. Runs
are aligned and fused under exactly the rules that the model was trained with.
"""

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from genm.align import Aligned, Runs, align_runs, named_runs
from genm.errors import ModelError
from genm.fuse import fuse_runs
from genm.io import whole_file
from genm.normalizers import Normalizer
from genm.records import Qrels, Run, check_kind

MODEL_VERSION = 1
_HEAD = "genm-model"


@dataclass(frozen=True, slots=True)
class OnlineState:
    """Where a stream of judged queries stopped, so that going on equals never having stopped."""

    raw_weights: tuple[float, ...]
    """alpha of Problem P4, before it is turned into a distribution."""
    n_seen: int
    schedule: str
    beta: float
    memory: tuple[float, ...] = ()
    """What the schedule remembers from step to step (sums of squared gradients, averaged weights)."""


@dataclass(frozen=True, slots=True)
class Model:
    """Learned weights with the rules they were learned under."""

    rankers: tuple[str, ...]
    weights: tuple[float, ...]
    normalizers: tuple[Normalizer, ...]
    depths: tuple[int | None, ...]
    method: str
    measure: str
    relevance_level: int = 1
    beta: float | None = None
    target: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the training: queries, value on them, cross-validated value, baselines."""
    fingerprint: str = ""
    """A hash of the training data, to tell whether two models saw the same."""
    library: str = ""
    online: OnlineState | None = None

    def __repr__(self) -> str:
        """Say the weights and how they came about, on one line."""
        return f"<Model by {self.method!r} for {self.measure}: {named_weights(self.rankers, self.weights)}>"

    def align(self, runs: Runs, qrels: Qrels | None = None) -> Aligned:
        """Align runs as training did: the model's rankers in its order, its normalisers, its depths."""
        named = named_runs(runs)
        check_rankers(self, tuple(named))
        ordered = {name: named[name] for name in self.rankers}
        return align_runs(ordered, qrels, normalize=self.normalizers, depth=self.depths)

    def fuse(self, runs: Runs, *, name: str = "fused", top: int | None = None) -> Run:
        """Return the fused run of new runs; runs whose names do not fit the model are refused."""
        return fuse_runs(self.align(runs), self.weights, name=name, top=top)


def named_weights(rankers: Iterable[str], weights: Iterable[float]) -> str:
    """Write each ranker with its weight, on one line."""
    return ", ".join(f"{name} {weight:.4g}" for name, weight in zip(rankers, weights, strict=True))


def save_model(model: Model, path: str | Path) -> None:
    """Write the model as JSON; the file appears whole or not at all."""
    check_kind("model", model, Model, "A fuser gives its own by to_model().")
    text = json.dumps(model_to_json(model), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if Path(path).is_dir():
        raise ModelError(f"{path}: expected a file to write; found a folder. Name a file in it.")
    try:
        with whole_file(path) as file:
            file.write(text.encode())
            file.flush()
            if Path(file.name).is_file():
                os.fsync(file.fileno())  # a stream's state must not be lost with the power
    except OSError as error:
        raise ModelError(
            f"{path}: could not be written ({error.strerror}); nothing was left behind. Choose another place."
        ) from error


def load_model(path: str | Path) -> Model:
    """Read a model file, `-` for standard input; what is not exactly a model of a known version is refused."""
    place = "<stdin>" if str(path) == "-" else str(path)
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
        text = content.decode()
    except FileNotFoundError:
        raise ModelError(f"{place}: no such file. Make one with: genm fit ... -o {path}") from None
    except OSError as error:
        raise ModelError(f"{place}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{place}: expected UTF-8 JSON; found byte {error.object[error.start]:#x}.") from None
    if not text.strip():
        raise ModelError(f"{place}: expected a model; found an empty file. Make one with: genm fit ... -o FILE")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ModelError(f"{place}:{error.lineno}: expected JSON; {_why_not_json(text, error)}") from None
    return model_from_json(document, place)


def _why_not_json(text: str, error: json.JSONDecodeError) -> str:
    if not text.lstrip().startswith("{"):
        return "found something else. Give a file that genm fit wrote."
    if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return "the file ends in the middle. Was it copied in full?"
    return f"{error.msg}. Was the file edited by hand?"


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the model as a JSON object; floats survive the round trip bit for bit."""
    document: dict[str, Any] = {"format": _HEAD, "version": MODEL_VERSION}
    document["rankers"] = [
        {"name": name, "weight": weight, "depth": depth, "normalizer": asdict(normalizer)}
        for name, weight, depth, normalizer in zip(
            model.rankers, model.weights, model.depths, model.normalizers, strict=True
        )
    ]
    for key in ("method", "measure", "relevance_level", "beta", "target", "fingerprint", "library"):
        document[key] = getattr(model, key)
    document["training"] = dict(model.training)
    state = None if model.online is None else asdict(model.online)
    document["online"] = state and {k: list(v) if isinstance(v, tuple) else v for k, v in state.items()}
    return document


def model_from_json(document: object, place: str = "model") -> Model:
    """Read a model back from its JSON object."""
    top = JsonObject(document, place)
    top.check_head(_HEAD, MODEL_VERSION, "a model")
    rows = [JsonObject(row, f"{place}: rankers[{i}]") for i, row in enumerate(top.take("rankers", list))]
    if not rows:
        raise ModelError(f"{place}: expected at least one ranker; found none.")
    online = top.take("online", dict, None)
    model = Model(
        rankers=tuple(row.take("name", str) for row in rows),
        weights=tuple(row.number("weight") for row in rows),
        depths=tuple(row.take("depth", int, None) for row in rows),
        normalizers=tuple(read_normalizer(row.take("normalizer", dict), row.place) for row in rows),
        method=top.take("method", str),
        measure=top.take("measure", str),
        relevance_level=top.take("relevance_level", int),
        beta=top.number_or_none("beta"),
        target=top.take("target", str, None),
        training=top.take("training", dict),
        fingerprint=top.take("fingerprint", str),
        library=top.take("library", str),
        online=None if online is None else _online(online, f"{place}: online"),
    )
    for table in (top, *rows):
        table.close()
    _check(model, place)
    return model


def check_rankers(model: Model, names: tuple[str, ...], place: str = "model") -> None:
    """Refuse runs whose names are not exactly the model's rankers, in any order."""
    if set(names) == set(model.rankers) and len(names) == len(model.rankers):
        return
    missing = sorted(set(model.rankers) - set(names))
    extra = sorted(set(names) - set(model.rankers))
    parts = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(extra)}"] * bool(extra)
    found = " and ".join(parts) or "one is given twice"
    raise ModelError(
        f"{place}: expected runs named {', '.join(model.rankers)}; {found}. Name each run as NAME=FILE."
    )


def _check(model: Model, place: str) -> None:
    if len(set(model.rankers)) != len(model.rankers):
        raise ModelError(f"{place}: expected different ranker names; found {', '.join(model.rankers)}.")
    if any(weight < 0 for weight in model.weights) or not math.isclose(sum(model.weights), 1.0, abs_tol=1e-9):
        raise ModelError(
            f"{place}: expected weights >= 0 that sum to 1; found {', '.join(map(str, model.weights))}."
        )
    if model.online is not None and len(model.online.raw_weights) != len(model.rankers):
        raise ModelError(f"{place}: expected one raw weight per ranker in the online state.")


class JsonObject:
    """One JSON object while it is read: every key is asked for once, and none is left over."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise ModelError(f"{place}: expected an object; found {type(value).__name__}.")
        self.place, self._left = place, dict(value)

    def check_head(self, head: str, version: int, what: str) -> None:
        """Refuse a document that is not `what` (such as "a model"), or one of another version."""
        if self.take("format", str) != head:
            raise ModelError(f'{self.place}: expected "format": "{head}". This is not {what} written by genm.')
        found = self.take("version", int)
        if found != version:
            raise ModelError(
                f"{self.place}: expected {what.removeprefix('a ')} version {version}; found {found}. "
                f"Use the genm release that wrote it, or fit again."
            )

    def take(self, key: str, kind: type, *default: None) -> Any:
        """Return the value of a key that must be of this kind."""
        if key not in self._left:
            raise ModelError(f'{self.place}: expected the key "{key}"; it is missing. Was the file edited by hand?')
        value = self._left.pop(key)
        if default and value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ModelError(
                f'{self.place}: expected "{key}" to be {kind.__name__}; found {json.dumps(value)[:60]}.'
            )
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.number_or_none(key)
        if value is None:
            raise ModelError(f'{self.place}: expected "{key}" to be a finite number; found null.')
        return value

    def number_or_none(self, key: str) -> float | None:
        """Return a finite number, or None for null."""
        value = self._left.get(key)
        if value is None:
            self.take(key, float, None)
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ModelError(f'{self.place}: expected "{key}" to be a finite number; found {value!r:.60}.')
        return float(self._left.pop(key))

    def choice(self, key: str, words: tuple[str, ...], *, number: bool, null: bool) -> Any:
        """Return a word, a number or None, as far as each is allowed."""
        value = self._left.get(key)
        if isinstance(value, str) and value in words:
            return self._left.pop(key)
        if number and not isinstance(value, str):
            return self.number_or_none(key) if null else self.number(key)
        allowed = [repr(word) for word in words] + ["a number"] * number + ["null"] * null
        raise ModelError(f'{self.place}: expected "{key}" to be {" or ".join(allowed)}; found {value!r:.60}.')

    def close(self) -> None:
        """Refuse keys that nobody asked for."""
        if self._left:
            raise ModelError(
                f"{self.place}: unknown key {', '.join(map(repr, self._left))}. "
                f"A newer genm may have written this file."
            )


def read_normalizer(value: object, place: str) -> Normalizer:
    """Return the normaliser that a JSON object describes."""
    table = JsonObject(value, f"{place}.normalizer")
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(Normalizer).items():
        parts = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
        words = tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))
        found[name] = table.choice(name, words, number=float in parts, null=NoneType in parts)
    table.close()
    return Normalizer(**found)


def _online(value: object, place: str) -> OnlineState:
    table = JsonObject(value, place)
    state = OnlineState(
        raw_weights=_numbers(table.take("raw_weights", list), f"{place}.raw_weights"),
        n_seen=table.take("n_seen", int),
        schedule=table.take("schedule", str),
        beta=table.number("beta"),
        memory=_numbers(table.take("memory", list), f"{place}.memory"),
    )
    table.close()
    return state


def _numbers(values: list[object], place: str) -> tuple[float, ...]:
    row = JsonObject({str(i): value for i, value in enumerate(values)}, place)
    return tuple(row.number(str(i)) for i in range(len(values)))


def align_for_model(model: Model, runs: Mapping[str, Run], qrels: Qrels | None = None) -> Aligned:
    """Align runs as the model's training did: its rankers in its order, its normalisers, its depths."""
    return model.align(runs, qrels)


def fuse_with_model(model: Model, runs: Mapping[str, Run], *, name: str = "fused", top: int | None = None) -> Run:
    """Return the ensemble's run; runs whose names do not fit the model are refused."""
    return model.fuse(runs, name=name, top=top)
