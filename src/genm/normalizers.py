"""Normalisers of scores: the record, presets of engines, one rule per ranker, and the rows that kernels read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from genm._math.scaling import COLUMNS, KINDS, MODES
from genm.errors import InputError, ModelError
from genm.strict_json import EDITED, convert, strict_record

NormalizerKind = Literal[
    "none", "minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal", "affine", "atan", "sigmoid"
]
BoundMode = Literal["ignore", "apply", "clip", "within"]

T = TypeVar("T")

_BOUNDED = ("minmax", "affine")
_KEEPS_SIGN = ("none", "max", "l2", "atan")
_TIES = ("doc_id", "given")


@dataclass(frozen=True, slots=True)
class Normalizer:
    """How one ranker's list of scores becomes comparable with another's.

    The engines' variants are values of this record, not code of their own: docs/normalizers.md lists them.
    """

    kind: NormalizerKind = "minmax"
    lower: float | None = None
    """A fixed lower bound (theoretical or of the data set); None: the lowest score of the list."""
    upper: float | None = None
    lower_mode: BoundMode = "apply"
    """apply: use the bound in place of the list's, whatever lies beyond it; clip: also cut scores at it;
    within: use it for the scores inside it only, the others keep the list's own (OpenSearch's "apply");
    ignore: as if not given."""
    upper_mode: BoundMode = "apply"
    floor: float | None = None
    """What normalised scores at or below `floor_at` become (OpenSearch: 0.001)."""
    floor_at: float | None = None
    """None: the floor itself, so that `floor` is a plain lower limit."""
    constant: float | Literal["raw"] = 1.0
    """The scores of a list that cannot be scaled: equal scores or a single hit for minmax, sum and zscore,
    zeros for max and l2; "raw" keeps the scores (Elasticsearch)."""
    constant_within: float = 0.0
    """A list whose spread (for max and l2: size) is at most this counts as one that cannot be scaled."""
    ddof: float = 0.0
    """Of zscore: the variance divides by n - ddof; 1 gives the sample's (OpenSearch, Qdrant)."""
    at_mean: float | Literal["max"] | None = None
    """Of zscore: what a score equal to the mean (in single precision) becomes instead of 0; "max" is the
    list's highest raw score (OpenSearch)."""
    k: float = 60.0
    """The constant of "reciprocal": 1 / (k + rank)."""
    scale: float = 1.0
    shift: float = 0.0
    """The normalised score is scale * value + shift (Qdrant's DBSF is a z-score with 1/6 and 1/2)."""
    missing: float | Literal["minimum"] = 0.0
    """The normalised score of a document that the ranker did not return."""
    ties: Literal["doc_id", "given"] = "doc_id"
    """Of rank and reciprocal: which of two documents with equal scores comes first, the one with the higher doc id,
    as trec_eval ranks, or the one that the run lists first, as the engine did that returned it."""

    @property
    def is_rank_based(self) -> bool:
        """Whether only the order of the scores counts."""
        return self.kind in ("rank", "reciprocal")

    def __repr__(self) -> str:
        """Show the constructor call, without fields that have their default."""
        changed = [f for f in fields(self)[1:] if getattr(self, f.name) != f.default]
        return (
            f"Normalizer({', '.join([repr(self.kind), *(f'{f.name}={getattr(self, f.name)!r}' for f in changed)])})"
        )


_NORMALIZER_ROW = strict_record(Normalizer)

Normalize: TypeAlias = str | Normalizer | Mapping[str, str | Normalizer] | Sequence[str | Normalizer]
"""One normaliser for all rankers, or one for each by name or in order; each by its name or as a record."""


ENGINES: Mapping[str, Normalizer] = {
    "elasticsearch-minmax": Normalizer("minmax", constant="raw", constant_within=1e-6),
    "elasticsearch-l2": Normalizer("l2", constant="raw", constant_within=1e-6),
    "elasticsearch-rrf": Normalizer("reciprocal", k=60.0),
    "opensearch-minmax": Normalizer("minmax", floor=0.001, floor_at=0.0),
    "opensearch-zscore": Normalizer("zscore", ddof=1.0, at_mean="max", constant="raw", floor=0.001, floor_at=0.0),
    "opensearch-l2": Normalizer("l2", constant=0.0),
    "opensearch-rrf": Normalizer("reciprocal", k=60.0),
    "weaviate-relative": Normalizer("minmax"),
    "qdrant-dbsf": Normalizer("zscore", ddof=1.0, scale=1.0 / 6.0, shift=0.5, constant=0.5),
    "milvus-cosine": Normalizer("none", scale=0.5, shift=0.5),
    "milvus-ip": Normalizer("atan", scale=1.0 / math.pi, shift=0.5),
    "milvus-bm25": Normalizer("atan", scale=2.0 / math.pi),
    "milvus-l2": Normalizer("atan", scale=2.0 / math.pi, shift=1.0),
    "mongodb-minmax": Normalizer("minmax", constant=0.0),
    "mongodb-sigmoid": Normalizer("sigmoid"),
    "vespa-linear": Normalizer("minmax", constant=0.5),
    "vespa-rrf": Normalizer("reciprocal", k=60.0),
}
"""What search engines compute, as docs/normalizers.md describes it; `normalize=` takes these names too."""


_SPELLINGS = {"min-max": "minmax", "z-score": "zscore", "identity": "none", "l-2": "l2"} | {
    name.lower(): name for name in (*KINDS, *ENGINES)
}
"""Other spellings of the names, in lower case and with hyphens."""


class ScoreRules(Protocol):
    """The rankers, and the rules that their scores are made under: aligned runs, tables, problems and models."""

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names of the rankers."""

    @property
    def normalizers(self) -> tuple[Normalizer, ...]:
        """The normaliser of each ranker."""

    @property
    def depths(self) -> tuple[int | None, ...]:
        """How many documents of each ranker's list are used; None for all."""


def normalizer_of(value: str | Normalizer) -> Normalizer:
    """Return the normaliser of that name (a kind, or one of ENGINES), or the given one, checked."""
    if isinstance(value, str):
        value = _SPELLINGS.get(value.lower().replace("_", "-").replace(" ", "-"), value)
    if isinstance(value, Normalizer):
        found = value
    elif value in ENGINES:
        found = ENGINES[value]
    elif value == "zscore":  # 0 is the list's mean: documents that were not returned get its minimum
        found = Normalizer("zscore", missing="minimum")
    elif value in KINDS:
        found = Normalizer(cast("NormalizerKind", value))
    else:
        near = get_close_matches(value, (*KINDS, *ENGINES), n=1) if isinstance(value, str) else []
        raise InputError(
            f"normalize: expected one of {', '.join((*KINDS, *ENGINES))}, or a Normalizer; found {value!r}."
            + (f" Did you mean {near[0]}?" if near else "")
        )
    _check(found)
    return found


def normalizer_to_json(normalizer: Normalizer) -> dict[str, Any]:
    """Return the normaliser as a JSON object; the usual rule for ties is left out, as files before it have it."""
    document = asdict(normalizer)
    if normalizer.ties == "doc_id":
        del document["ties"]
    return document


def normalizer_from_json(document: object, place: str, path: str) -> Normalizer:
    """Return the normaliser that a JSON object describes; one that makes no sense is refused."""
    if isinstance(document, dict):
        document = {"ties": "doc_id", **document}
    row = convert(document, _NORMALIZER_ROW, place, path)
    try:
        return normalizer_of(Normalizer(**msgspec.structs.asdict(row)))
    except InputError as error:
        raise ModelError(f"{place}: {path}: {error} {EDITED}") from None


def normalizers_of(normalize: Normalize, rankers: tuple[str, ...]) -> tuple[Normalizer, ...]:
    """Return each ranker's normaliser, checked."""
    chosen: tuple[str | Normalizer, ...] = per_ranker("normalize", normalize, rankers)
    return tuple(normalizer_of(one) for one in chosen)


def normalizers_for(
    normalize: Normalize, rankers: tuple[str, ...], raw: NDArray[np.float64], retrieved: NDArray[np.bool_]
) -> tuple[Normalizer, ...]:
    """Return each ranker's normaliser for these raw scores, (rows, rankers) with a mark where there is one."""
    given: tuple[str | Normalizer, ...] = per_ranker("normalize", normalize, rankers)
    if not any(kind in _KEEPS_SIGN for kind in given):
        return normalizers_of(normalize, rankers)  # none of them asks for signs
    return normalizers_by_sign(normalize, rankers, negative_columns(raw, retrieved))


def negative_columns(raw: NDArray[np.float64], retrieved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rankers gave a negative score."""
    return np.asarray(((raw < 0.0) & retrieved).any(axis=0), np.bool_)


def normalizers_by_sign(
    normalize: Normalize, rankers: tuple[str, ...], negative: NDArray[np.bool_]
) -> tuple[Normalizer, ...]:
    """Return each ranker's normaliser, given which rankers have negative scores.

    A kind that keeps the sign of the scores, given by its name, fills gaps with the list's minimum where the ranker
    has negative scores: 0 would be above documents that it did return.
    """
    given: tuple[str | Normalizer, ...] = per_ranker("normalize", normalize, rankers)
    found = []
    for k, normalizer in enumerate(normalizers_of(normalize, rankers)):
        by_name = isinstance(given[k], str) and given[k] in _KEEPS_SIGN
        found.append(replace(normalizer, missing="minimum") if by_name and negative[k] else normalizer)
    return tuple(found)


def per_ranker(what: str, value: T | Mapping[str, T] | Sequence[T], rankers: tuple[str, ...]) -> tuple[T, ...]:
    """Return one value for each ranker from one for all, a mapping by name, or a sequence in order."""
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in rankers]
        absent = [name for name in rankers if name not in value]
        if unknown or absent:
            wrong = f"unknown {', '.join(unknown)}" if unknown else f"nothing for {', '.join(absent)}"
            raise InputError(
                f"{what}: expected a value for each of the rankers {', '.join(rankers)}; found {wrong}."
            )
        return tuple(value[name] for name in rankers)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != len(rankers):
            raise InputError(
                f"{what}: expected {len(rankers)} values, one for each of the rankers {', '.join(rankers)}; "
                f"found {len(value)}."
            )
        return tuple(value)
    return (value,) * len(rankers)


def kernel_rules(normalizers: Sequence[Normalizer]) -> NDArray[np.float64]:
    """Return the rows of numbers that `genm._math.scaling` reads."""
    return np.array([[_number(n, column) for column in COLUMNS] for n in normalizers], np.float64)


def _number(normalizer: Normalizer, column: str) -> float:
    value = getattr(normalizer, column)
    if column == "kind":
        return KINDS.index(value)
    if column.endswith("_mode"):
        bound = getattr(normalizer, column.removesuffix("_mode"))
        return MODES.index("ignore" if bound is None else value)
    if column in ("lower", "upper"):
        return 0.0 if value is None else float(value)
    if column == "floor_at" and value is None:
        value = normalizer.floor
    if column == "at_mean" and value == "max":
        return math.inf
    return math.nan if value is None or isinstance(value, str) else float(value)


def _check(normalizer: Normalizer) -> None:
    words = {"constant": "raw", "missing": "minimum", "at_mean": "max"}
    if normalizer.ties not in _TIES:
        _refuse(normalizer, "ties", f"one of {', '.join(_TIES)}")
    if normalizer.ties == "given" and not normalizer.is_rank_based:
        _refuse(normalizer, "ties", "doc_id: only rank and reciprocal read it")
    for field in fields(Normalizer):
        value = getattr(normalizer, field.name)
        if field.name == "ties":
            continue
        if field.name == "kind" or field.name.endswith("_mode"):
            allowed = KINDS if field.name == "kind" else MODES
            if value not in allowed:
                _refuse(normalizer, field.name, f"one of {', '.join(allowed)}")
        elif isinstance(value, str):
            if value != words.get(field.name):
                word = words.get(field.name)
                _refuse(normalizer, field.name, f'a number or "{word}"' if word else "a number")
        elif value is None:
            if field.default is not None:
                _refuse(normalizer, field.name, "a number")
        elif not isinstance(value, int | float) or not math.isfinite(value):
            _refuse(normalizer, field.name, "a finite number")
    if normalizer.k <= -1.0:
        _refuse(normalizer, "k", "a number above -1, so that 1 / (k + rank) is positive")
    for name in ("constant_within", "ddof"):
        if getattr(normalizer, name) < 0.0:
            _refuse(normalizer, name, "a number of at least 0")
    for name in ("ddof", "at_mean"):
        if getattr(normalizer, name) and normalizer.kind != "zscore":
            _refuse(normalizer, name, "nothing: only zscore reads it")
    if normalizer.floor_at is not None and normalizer.floor is None:
        _refuse(normalizer, "floor", "a number, because floor_at is given")
    _check_bounds(normalizer)


def _check_bounds(normalizer: Normalizer) -> None:
    for name in ("lower", "upper"):
        bound, mode = getattr(normalizer, name), getattr(normalizer, f"{name}_mode")
        if bound is not None and normalizer.kind not in _BOUNDED:
            _refuse(normalizer, name, f"nothing: only {' and '.join(_BOUNDED)} read it")
        if bound is None and normalizer.kind == "affine":
            _refuse(normalizer, name, "a number: affine needs both bounds")
        if normalizer.kind == "affine" and mode not in ("apply", "clip"):
            _refuse(normalizer, f"{name}_mode", "apply or clip")
    if normalizer.lower is not None and normalizer.upper is not None and normalizer.lower >= normalizer.upper:
        _refuse(normalizer, "upper", f"a number above lower, {normalizer.lower}")


def _refuse(normalizer: Normalizer, name: str, expected: str) -> None:
    raise InputError(
        f"normaliser {normalizer.kind!r}: expected {name} to be {expected}; found {getattr(normalizer, name)!r}."
    )
