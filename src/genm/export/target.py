"""Facts about a search engine: its normalisers, window, limits and settings, and its three functions."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from genm.export.quoting import JSON, FileType, to_json
from genm.normalizers import BoundMode, Normalizer
from genm.records import Note

Lists = Sequence[Mapping[str, float]]
"""What each ranker returned for one query: doc id to raw score, higher is better."""

Payload = Mapping[str, Any]
"""What an engine is given: plain JSON values."""


@dataclass(frozen=True, slots=True)
class Technique:
    """A normalisation that an engine offers, with its edge cases."""

    word: str
    """The engine's own name for it."""
    normalizer: Normalizer
    free: frozenset[str] = frozenset()
    """Fields of the normaliser that the engine lets one choose."""
    bounds: frozenset[BoundMode] = frozenset()
    """How fixed bounds may be used, if they can be given at all."""
    line: Literal["no", "slope", "any"] = "no"
    """slope: any positive multiple of the score, since it can go into the weight; any: any straight line."""
    group: str = ""
    """Techniques of different groups cannot be used together."""
    type: Literal["", "text", "vector"] = ""
    """The queries that it is for, where text and vectors are normalised differently."""
    distances: bool = False
    """Whether its scores are the negatives of distances."""
    scores: tuple[float, float] = (-math.inf, math.inf)
    """Between which ends the engine's own scores lie, where a score's size matters."""
    whole: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Free fields that must be whole numbers, with their limits."""


@dataclass(frozen=True, slots=True)
class Window:
    """How many documents of each ranker the engine looks at."""

    default: int | None
    """What it does when nothing is said; None: there is no limit of its own."""
    each: bool = False
    """Whether every ranker may have a window of its own."""
    least: int = 1
    most: int | None = None
    rerank: bool = False
    """One set of candidates, for each of which every ranker's score is computed: nothing is missing."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Which weights an engine accepts; None: no limit."""

    least: float | None = 0.0
    above: bool = False
    """Whether a weight must be above `least`, not just at it."""
    most: float | None = None
    sum_to_one: bool = False
    equal: bool = False
    """Only equal weights mean what they meant in training."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the user may set with `--set NAME=VALUE` (or RANKER.NAME=VALUE)."""

    name: str
    default: str
    what: str
    kind: Literal["text", "name", "count", "json"] = "text"
    choices: tuple[str, ...] = ()
    stands_in: Literal["", "text", "vector"] = ""
    """Of which rankers' queries the default only marks the place."""


@dataclass(frozen=True, slots=True)
class Guide:
    """The prose of an engine's page: what is assumed of the index and what to do with the exported text."""

    index: str
    runs: str
    send: str
    search: str
    """Code that searches with the exported file, which it calls FILE (a module: MODULE)."""
    language: Literal["python", "bash"] = "python"
    rankers: tuple[str, ...] = ("bm25", "dense")
    """The rankers of the page's example."""
    weights: tuple[float, ...] = (0.35, 0.65)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One ranker as it is exported."""

    ranker: str
    weight: float
    normalizer: Normalizer
    technique: str
    depth: int | None
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Order:
    """A model that fits the target, with every setting resolved."""

    parts: tuple[Part, ...]
    window: int
    """The shared window; of targets with a window for each ranker, the largest."""
    settings: Mapping[str, str]

    def count(self, name: str) -> int:
        """Return a setting that was checked to be a whole number."""
        return int(self.settings[name])


class Code(NamedTuple):
    """The only code that a target has."""

    compose: Callable[[Order], dict[str, Any]]
    """Puts the learned numbers in the engine's own form."""
    simulate: Callable[[Payload, Lists], dict[str, float]]
    """Computes what the engine would return for a query, given exactly that form."""
    render: Callable[[Payload], str] = to_json
    """Writes that form as text."""


@dataclass(frozen=True, slots=True)
class Target:
    """One engine, or one of an engine's ways of fusing."""

    name: str
    title: str
    versions: str
    techniques: tuple[Technique, ...]
    """The first is the one to train with unless another is asked for."""
    window: Window
    code: Code
    guide: Guide
    weights: Weights = Weights()
    file: FileType = JSON
    words: Mapping[str, str] = field(default_factory=dict)
    """The technique to train a text or a vector ranker with, where it is not the first for both."""
    shared: frozenset[str] = frozenset()
    """Fields of the normaliser that must be the same for all rankers."""
    n_rankers: tuple[int, int | None] = (1, None)
    pair: bool = False
    """Whether it fuses one text query with one vector query."""
    orders_by_id: bool = False
    """Whether what is exported orders equal scores of a list by document id; if not, the engine's order stands."""
    settings: tuple[Setting, ...] = ()
    ranker_settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tested: str = ""
    """Against what the export is tested: the engine itself, its client, or its documentation."""

    @property
    def normalizer(self) -> Normalizer:
        """What to train with for this engine."""
        return self.techniques[0].normalizer


@dataclass(frozen=True, slots=True)
class Exported:
    """Text that the engine accepts, and what its user should know."""

    text: str
    media_type: str
    file_name: str
    document: Payload
    notes: tuple[Note, ...] = ()


def rankers_text(target: Target) -> str:
    """Say how many rankers the target fuses."""
    least, most = target.n_rankers
    return f"exactly {least}" if least == most else "any number" if most is None else f"up to {most}"


def weights_text(target: Target) -> str:
    """Say which weights the target takes."""
    rule = target.weights
    if rule.equal:
        return "equal only"
    sign = "any sign" if rule.least is None else "above 0" if rule.above else "0 or more"
    return sign + (", sum 1" if rule.sum_to_one else f", at most {rule.most:g}" if rule.most is not None else "")
