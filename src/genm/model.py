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
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genm import charts, display
from genm.align import Aligned, Runs, align_runs, named_runs
from genm.errors import InputError, ModelError
from genm.fuse import fuse_runs
from genm.io import whole_file
from genm.normalizers import Normalizer, normalizer_of
from genm.records import Qrels, Run, check_kind
from genm.strict_json import (
    EDITED,
    Count,
    Finite,
    PositiveCount,
    Strict,
    check_head,
    convert,
    parse_json,
    strict_record,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODEL_VERSION = 1
_HEAD = "genm-model"
_NORMALIZER_ROW = strict_record(Normalizer)

_Beta = Annotated[float, Meta(gt=0.0, le=sys.float_info.max, description="a positive finite number")]
_Grade = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="an integer of 32 bits")]
_RawWeight = Annotated[float, Meta(ge=-1e100, le=1e100, description="a number from -1e100 to 1e100")]
"""Larger ones overflow when scores are weighted and squared."""


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


class _OnlineRow(Strict, frozen=True):
    raw_weights: tuple[_RawWeight, ...]
    n_seen: Count
    schedule: Literal["paper", "adaptive"]
    beta: _Beta
    memory: tuple[Finite, ...]


class _RankerRow(Strict, frozen=True):
    name: str
    weight: Finite
    depth: PositiveCount | None
    normalizer: dict[str, Any]


class _ModelFile(Strict, frozen=True):
    """The layout of the file, in the order of its keys."""

    format: str
    version: int
    rankers: Annotated[tuple[_RankerRow, ...], Meta(min_length=1, description="at least one ranker")]
    method: str
    measure: str
    relevance_level: _Grade
    beta: _Beta | None
    target: str | None
    fingerprint: str
    library: str
    training: dict[str, Any]
    online: _OnlineRow | None


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

    def _repr_html_(self) -> str:
        return display.model(self)

    @property
    def ranker_weights(self) -> dict[str, float]:
        """The weights by the names of their rankers."""
        return dict(zip(self.rankers, self.weights, strict=True))

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the weights; needs the extra `plots`."""
        title = f"Weights by {self.method} for {self.measure}"
        return charts.plot_weights(self.rankers, self.weights, title=title, ax=ax)

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
    except FileNotFoundError:
        raise ModelError(f"{place}: no such file. Make one with: genm fit ... -o {path}") from None
    except OSError as error:
        raise ModelError(f"{place}: cannot be read ({error.strerror}).") from error
    advice = "Give a file that genm fit wrote; to make one: genm fit ... -o FILE"
    return model_from_json(parse_json(content, place, what="a model", advice=advice), place)


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
    check_head(document, _HEAD, MODEL_VERSION, "a model", place)
    file = convert(document, _ModelFile, place)
    normalizers = (
        normalizer_from_json(row.normalizer, place, f"rankers[{i}].normalizer")
        for i, row in enumerate(file.rankers)
    )
    model = Model(
        rankers=tuple(row.name for row in file.rankers),
        weights=tuple(row.weight for row in file.rankers),
        depths=tuple(row.depth for row in file.rankers),
        normalizers=tuple(normalizers),
        method=file.method,
        measure=file.measure,
        relevance_level=file.relevance_level,
        beta=file.beta,
        target=file.target,
        training=file.training,
        fingerprint=file.fingerprint,
        library=file.library,
        online=None if file.online is None else OnlineState(**msgspec.structs.asdict(file.online)),
    )
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
    if not math.isclose(sum(map(abs, model.weights)), 1.0, abs_tol=1e-9):
        raise ModelError(
            f"{place}: expected weights whose absolute values sum to 1; found {', '.join(map(str, model.weights))}."
        )
    if model.online is not None:
        _check_online(model.online, len(model.rankers), f"{place}: online")


def _check_online(state: OnlineState, n_rankers: int, place: str) -> None:
    """Refuse a state that `genm.learn.OnlineFuser` cannot go on from."""
    if len(state.raw_weights) != n_rankers:
        raise ModelError(
            f"{place}.raw_weights: expected one raw weight per ranker, {n_rankers}; "
            f"found {len(state.raw_weights)}. {EDITED}"
        )
    n_memory = 2 + n_rankers if state.schedule == "adaptive" else 0
    if len(state.memory) != n_memory:
        raise ModelError(
            f'{place}.memory: expected {n_memory} numbers for the schedule "{state.schedule}" of {n_rankers} '
            f"rankers; found {len(state.memory)}. {EDITED}"
        )
    if state.schedule == "adaptive" and (
        min(*state.raw_weights, *state.memory) < 0.0 or (state.n_seen > 0 and state.memory[1] == 0.0)
    ):
        raise ModelError(
            f'{place}: expected the schedule "adaptive" to hold no number below 0, and a positive second number of '
            f"the memory after {state.n_seen} queries; found raw weights {state.raw_weights} and memory "
            f"{state.memory}. {EDITED}"
        )


def normalizer_from_json(document: object, place: str, path: str) -> Normalizer:
    """Return the normaliser that a JSON object describes; one that makes no sense is refused."""
    row = convert(document, _NORMALIZER_ROW, place, path)
    try:
        return normalizer_of(Normalizer(**msgspec.structs.asdict(row)))
    except InputError as error:
        raise ModelError(f"{place}: {path}: {error} {EDITED}") from None


def align_for_model(model: Model, runs: Mapping[str, Run], qrels: Qrels | None = None) -> Aligned:
    """Align runs as the model's training did: its rankers in its order, its normalisers, its depths."""
    return model.align(runs, qrels)


def fuse_with_model(model: Model, runs: Mapping[str, Run], *, name: str = "fused", top: int | None = None) -> Run:
    """Return the ensemble's run; runs whose names do not fit the model are refused."""
    return model.fuse(runs, name=name, top=top)
