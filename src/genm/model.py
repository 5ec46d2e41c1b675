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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from genm import charts, display
from genm._typing import Floats
from genm.align import Aligned, Runs, align_runs, named_runs
from genm.errors import InputError, ModelError
from genm.fuse import fuse_by_query, fuse_runs
from genm.gating import Gate, gate_from_json, gate_to_json
from genm.grouping import Grouping, GroupRule, Queries, checked_grouping, groups_of_queries
from genm.io import whole_file
from genm.normalizers import Normalizer, normalizer_from_json, normalizer_to_json
from genm.records import Note, Qrels, Run, check_kind
from genm.strict_json import (
    EDITED,
    Count,
    Finite,
    PositiveCount,
    Strict,
    check_head,
    convert,
    parse_json,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODEL_VERSION = 1
_HEAD = "genm-model"

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


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """The weights of one group of queries."""

    name: str
    weights: tuple[float, ...]
    n_queries: int = 0
    """Training queries of the group."""
    online: OnlineState | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """Weights by group of queries, and where a query's group comes from; other queries get the model's weights."""

    grouping: Grouping
    members: tuple[GroupWeights, ...]
    pooling: float | None = None
    """Group weights of n queries take the share n / (n + pooling) of what the group alone would have; None: "
    "none."""

    @property
    def weights(self) -> dict[str, tuple[float, ...]]:
        """The weights of each group, in the order of the model's rankers."""
        return {member.name: member.weights for member in self.members}


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


class _RuleRow(Strict, frozen=True):
    group: str
    test: str


class _GroupRow(Strict, frozen=True):
    name: Annotated[str, Meta(min_length=1, description="a name")]
    n_queries: Count
    weights: tuple[Finite, ...]
    online: _OnlineRow | None


class _GroupsRow(Strict, frozen=True):
    source: Literal["given", "column", "rules"]
    column: str | None
    rules: tuple[_RuleRow, ...]
    pooling: Finite | None
    members: tuple[_GroupRow, ...]


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
    groups: _GroupsRow | None = None
    gate: dict[str, Any] | None = None


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
    groups: Groups | None = None
    """Weights by group of queries; None where all queries have the same."""
    gate: Gate | None = None
    """What turns features of a query into its weights (experimental); None where all queries have the same."""

    def __repr__(self) -> str:
        """Say the weights and how they came about, on one line."""
        more = "" if self.groups is None else f", weights by group for {', '.join(self.groups.weights)}"
        more += "" if self.gate is None else ", and a per-query gate"
        return f"<Model by {self.method!r} for {self.measure}: {named_weights(self.rankers, self.weights)}{more}>"

    def _repr_html_(self) -> str:
        return display.model(self)

    @property
    def ranker_weights(self) -> dict[str, float]:
        """The weights by the names of their rankers."""
        return dict(zip(self.rankers, self.weights, strict=True))

    @property
    def folds(self) -> int:
        """The number of folds of the training's cross-validation; 5 where the model does not say it."""
        return self._said("folds", 5)

    @property
    def seed(self) -> int:
        """The seed that dealt these folds; 0 where the model does not say it."""
        return self._said("seed", 0)

    @property
    def signs(self) -> Literal["positive", "any"]:
        """Which signs the training allowed; "any" also where a weight is negative."""
        return "any" if self.training.get("signs") == "any" or min(self.weights) < 0.0 else "positive"

    def _said(self, name: str, usual: int) -> int:
        known = self.training.get(name)
        return known if isinstance(known, int) else usual

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

    def fuse(
        self,
        runs: Runs,
        *,
        queries: Queries | None = None,
        groups: Mapping[str, str] | None = None,
        name: str = "fused",
        top: int | None = None,
    ) -> Run:
        """Return the fused run of new runs; runs whose names do not fit the model are refused.

        A model with weights by group needs to know the groups: `groups` gives them by query, `queries` has the
        texts and columns that rules and columns read. A query whose group is not known gets the model's own
        weights; a note of the run says how many did.
        """
        return self.fuse_aligned(self.align(runs), queries=queries, groups=groups, name=name, top=top)

    def fuse_aligned(
        self,
        aligned: Aligned,
        *,
        queries: Queries | None = None,
        groups: Mapping[str, str] | None = None,
        name: str = "fused",
        top: int | None = None,
    ) -> Run:
        """Return the fused run of runs that `align` has aligned; see `fuse`."""
        if self.groups is None and self.gate is None:
            if groups is not None:
                raise ModelError("groups (--groups): this model has no weights by group. Leave them out.")
            return fuse_runs(aligned, self.weights, name=name, top=top)
        weights, notes = self.query_weights(aligned, queries=queries, groups=groups)
        return replace(fuse_by_query(aligned, weights, name=name, top=top), notes=notes)

    def for_group(self, name: str | None) -> "Model":
        """Return the model of one group alone, or with None that of the global weights, without groups and gate."""
        weights = self.weights
        if name is not None:
            known = {} if self.groups is None else self.groups.weights
            if name not in known:
                raise ModelError(
                    f"group {name!r}: expected one of {', '.join(known) or 'none'}; found no such group."
                )
            weights = known[name]
        return replace(self, weights=weights, groups=None, gate=None)

    def query_weights(
        self, aligned: Aligned, *, queries: Queries | None = None, groups: Mapping[str, str] | None = None
    ) -> tuple[Floats, tuple[Note, ...]]:
        """Return the weights of every query, a row for each, and what to know of them."""
        plain = np.tile(np.array(self.weights, np.float64), (len(aligned.queries), 1))
        if self.gate is not None:
            return self.gate.weights(aligned, queries)
        if self.groups is None:
            return plain, ()
        found = groups_of_queries(self.groups.grouping, aligned.queries, queries=queries, given=groups)
        known = self.groups.weights
        for q, group in enumerate(found):
            if group in known:
                plain[q] = known[group]
        return plain, note_unknown_groups(found, known)


def note_unknown_groups(groups: Iterable[str | None], known: Iterable[str]) -> tuple[Note, ...]:
    """Say how many queries are of no group that the model has weights for."""
    listed, names = list(groups), set(known)
    unknown = [group for group in listed if group not in names]
    if not unknown:
        return ()
    others = sorted({group for group in unknown if group is not None})
    named = f" ({', '.join(others[:3])}{', ...' if len(others) > 3 else ''})" if others else ""
    text = (
        f"{len(unknown):,} of {len(listed):,} queries are of no group that the model knows{named} and got its "
        f"global weights. Give their groups (--groups), or their texts and columns (--queries)."
    )
    return (Note("unknown-group", len(unknown), text),)


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
        {"name": name, "weight": weight, "depth": depth, "normalizer": normalizer_to_json(normalizer)}
        for name, weight, depth, normalizer in zip(
            model.rankers, model.weights, model.depths, model.normalizers, strict=True
        )
    ]
    for key in ("method", "measure", "relevance_level", "beta", "target", "fingerprint", "library"):
        document[key] = getattr(model, key)
    document["training"] = dict(model.training)
    document["online"] = _online_to_json(model.online)
    if model.groups is not None:  # left out otherwise: files without groups stay as they were
        document["groups"] = _groups_to_json(model.groups)
    if model.gate is not None:
        document["gate"] = gate_to_json(model.gate)
    return document


def _online_to_json(online: OnlineState | None) -> dict[str, Any] | None:
    if online is None:
        return None
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(online).items()}


def _groups_to_json(groups: Groups) -> dict[str, Any]:
    members = [
        {
            "name": one.name,
            "n_queries": one.n_queries,
            "weights": list(one.weights),
            "online": _online_to_json(one.online),
        }
        for one in groups.members
    ]
    grouping = groups.grouping
    return {
        "source": grouping.source,
        "column": grouping.column,
        "rules": [asdict(rule) for rule in grouping.rules],
        "pooling": groups.pooling,
        "members": members,
    }


def _groups_from_json(row: _GroupsRow, place: str) -> Groups:
    rules = tuple(GroupRule(one.group, one.test) for one in row.rules)
    try:
        grouping = checked_grouping(Grouping(row.source, row.column, rules))
    except InputError as error:
        raise ModelError(f"{place}: groups.rules: {error} {EDITED}") from None
    if (row.source == "column") != bool(row.column) or (row.source == "rules") != bool(rules):
        raise ModelError(f'{place}: groups: expected what the source "{row.source}" needs and no more. {EDITED}')
    members = tuple(
        GroupWeights(one.name, one.weights, one.n_queries, _online_from_json(one.online)) for one in row.members
    )
    return Groups(grouping, members, row.pooling)


def _online_from_json(row: _OnlineRow | None) -> OnlineState | None:
    return None if row is None else OnlineState(**msgspec.structs.asdict(row))


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
        online=_online_from_json(file.online),
        groups=None if file.groups is None else _groups_from_json(file.groups, place),
        gate=None if file.gate is None else gate_from_json(file.gate, len(file.rankers), place),
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
    if model.groups is not None:
        _check_groups(model.groups, len(model.rankers), f"{place}: groups")
    if model.online is not None:
        _check_online(model.online, len(model.rankers), f"{place}: online")


def _check_groups(groups: Groups, n_rankers: int, place: str) -> None:
    if len(groups.weights) != len(groups.members):
        raise ModelError(
            f"{place}: expected different names; found {', '.join(one.name for one in groups.members)}."
        )
    for one in groups.members:
        if len(one.weights) != n_rankers:
            raise ModelError(
                f"{place}: {one.name}: expected one weight per ranker, {n_rankers}; found {len(one.weights)}. "
                f"{EDITED}"
            )
        if any(weight < 0 for weight in one.weights) or not math.isclose(sum(one.weights), 1.0, abs_tol=1e-9):
            found = ", ".join(map(str, one.weights))
            raise ModelError(f"{place}: {one.name}: expected weights >= 0 that sum to 1; found {found}.")
        if one.online is not None:
            _check_online(one.online, n_rankers, f"{place}: {one.name}: online")


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
    if state.schedule == "adaptive" and state.n_seen > 0:
        path = sum(state.memory[2:])
        for name, total, expected in (
            ("raw_weights", sum(state.raw_weights), 1.0),
            ("memory", path, state.memory[1]),
        ):
            if not math.isclose(total, expected, rel_tol=1e-6):
                which = "its last numbers" if name == "memory" else "the weights"
                raise ModelError(
                    f"{place}.{name}: expected {which} to sum to {expected:g}; found {total:g}. {EDITED}"
                )


def align_for_model(model: Model, runs: Mapping[str, Run], qrels: Qrels | None = None) -> Aligned:
    """Align runs as the model's training did: its rankers in its order, its normalisers, its depths."""
    return model.align(runs, qrels)


def fuse_with_model(model: Model, runs: Mapping[str, Run], *, name: str = "fused", top: int | None = None) -> Run:
    """Return the ensemble's run; runs whose names do not fit the model are refused."""
    return model.fuse(runs, name=name, top=top)
