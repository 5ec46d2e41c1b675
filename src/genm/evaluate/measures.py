"""Measures as values: `P(rel=2)@5` has equality, a hash and a repr that reads back to itself.

Names, defaults and spelling are those of ir_measures; trec_eval's spellings (`map`, `ndcg_cut_10`, `P_5`) are
understood too.
"""

import difflib
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias, get_args, runtime_checkable

from genm._math import measures as kinds
from genm.errors import InputError

MeasureName = Literal["AP", "P", "R", "nDCG", "RR", "Rprec", "Bpref", "Judged", "Success", "IPrec"]
Gain = Literal["log2", "exp-log2"]

GainRecipe = Literal["AP", "P", "recall", "RR", "success", "Rprec", "judged", "IPrec", "bpref", "graded"]
"""How a measure is written as gains by rank: the exact methods maximise those."""


class MeasureFacts(NamedTuple):
    """What the rest of the package needs to know about a measure; settings are fields of `Measure`."""

    kind: int
    """Which of the kernel's values it is."""
    gains: GainRecipe
    takes: tuple[str, ...]
    """Settings that it reads."""
    needs: str | None = None
    """The setting that must be given."""
    at: Literal["cutoff", "recall"] = "cutoff"
    """The setting that stands behind @."""
    needs_judged_rows: bool = False
    """Whether the ranks of judged documents matter that are not relevant."""
    other_names: tuple[str, ...] = ()
    """Further names it is known by, trec_eval's among them; case does not matter."""
    example: str = ""
    """What the command line completes to."""


_PLACES, _ALL = ("rel", "judged_only"), ("cutoff", "rel", "judged_only")

FACTS: Mapping[MeasureName, MeasureFacts] = {
    "AP": MeasureFacts(kinds.AP, "AP", _ALL, other_names=("MAP", "map_cut"), example="AP"),
    "P": MeasureFacts(kinds.P, "P", _ALL, "cutoff", other_names=("Precision",), example="P@10"),
    "R": MeasureFacts(kinds.R, "recall", _ALL, "cutoff", other_names=("Recall",), example="R@100"),
    "nDCG": MeasureFacts(
        kinds.NDCG, "graded", ("cutoff", "dcg", "judged_only"), other_names=("ndcg_cut",), example="nDCG@10"
    ),
    "RR": MeasureFacts(kinds.RR, "RR", _ALL, other_names=("MRR", "recip_rank"), example="RR"),
    "Rprec": MeasureFacts(kinds.RPREC, "Rprec", _PLACES, other_names=("r-precision",), example="Rprec"),
    "Bpref": MeasureFacts(kinds.BPREF, "bpref", ("rel",), needs_judged_rows=True, example="Bpref"),
    "Judged": MeasureFacts(kinds.JUDGED, "judged", ("cutoff",), needs_judged_rows=True, example="Judged@10"),
    "Success": MeasureFacts(kinds.SUCCESS, "success", _ALL, "cutoff", example="Success@5"),
    "IPrec": MeasureFacts(
        kinds.IPREC, "IPrec", ("recall", *_PLACES), "recall", "recall",
        other_names=("iprec_at_recall",), example="IPrec@0.5",
    ),
}  # fmt: skip
"""Every measure. A new one needs its name and facts here, its value in `genm._math.measures` and, to be learned
exactly, its gains in `genm._math.exact.rank_gains`."""

_SPELLINGS: Mapping[str, MeasureName] = {
    spelling.lower(): name for name, facts in FACTS.items() for spelling in (name, *facts.other_names)
}
_SPOKEN = ("MAP", "Precision", "Recall", "MRR")
"""Further names worth suggesting to somebody who misspelt one."""

_FORM = re.compile(r"\s*(?P<name>[A-Za-z][\w-]*)\s*(?:\((?P<params>[^()]*)\))?\s*(?:@\s*(?P<at>[\w.+-]+))?\s*")
_TREC_FORM = re.compile(r"(?P<name>[A-Za-z][A-Za-z_]*?)[._](?P<at>\d+(?:\.\d+)?)")
_BETWEEN = re.compile(r"[\s,]+(?![^(]*\))")
"""White space and commas that are not between brackets."""


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """One measure with its settings; immutable, so it can be the key of a dict.

    `cutoff` looks at the first so many documents only; `rel` is the lowest grade that counts as relevant;
    `recall` is the level of IPrec; `judged_only` passes over unjudged documents before ranks are counted; `dcg`
    is nDCG's gain: the grade itself ("log2") or 2 to the grade, less 1 ("exp-log2").
    """

    name: MeasureName
    cutoff: int | None = None
    rel: int = 1
    recall: float | None = None
    dcg: Gain = "log2"
    judged_only: bool = False

    def __post_init__(self) -> None:
        if self.name not in FACTS:
            raise InputError(_unknown(str(self.name)))
        takes, needed = self.facts.takes, self.facts.needs
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value != field.default and field.name not in takes:
                raise InputError(
                    f"measure {self.name}: found {field.name}={value!r}, expected only "
                    f"{', '.join(takes)}. Leave {field.name} out."
                )
        if needed is not None and getattr(self, needed) is None:
            example = f"{self.name}@0.5" if needed == "recall" else f"{self.name}@10"
            raise InputError(f"measure {self.name}: expected a {needed}, found none. Write it as {example}.")
        self._check_values()

    @property
    def facts(self) -> MeasureFacts:
        """What is known of the measure, whatever its settings."""
        return FACTS[self.name]

    @property
    def takes_level(self) -> bool:
        """Whether it has a lowest relevant grade."""
        return "rel" in self.facts.takes

    @property
    def is_graded(self) -> bool:
        """Whether it looks at grades, not only at relevant or not."""
        return self.facts.gains == "graded"

    @property
    def needs_judged_rows(self) -> bool:
        """Whether the ranks of judged documents matter that are not relevant."""
        return self.facts.needs_judged_rows or self.judged_only

    @property
    def has_smoothed_form(self) -> bool:
        """Whether it is the average precision of whole rankings, which the smoothed objective approximates."""
        return self.facts.gains == "AP" and self.cutoff is None and not self.judged_only

    def _check_values(self) -> None:
        """Refuse values of the wrong kind or out of range."""
        if self.cutoff is not None:
            object.__setattr__(self, "cutoff", _checked_count(self.name, "cutoff", self.cutoff))
        object.__setattr__(self, "rel", _checked_count(self.name, "rel", self.rel))
        if self.recall is not None:
            ok = isinstance(self.recall, int | float) and not isinstance(self.recall, bool)
            if not ok or not 0.0 <= self.recall <= 1.0:
                raise InputError(f"measure IPrec: expected a recall from 0 to 1, found {self.recall!r}.")
            object.__setattr__(self, "recall", float(self.recall))
        if self.dcg not in get_args(Gain):
            raise InputError(f"measure nDCG: expected dcg='log2' or dcg='exp-log2', found {self.dcg!r}.")
        if not isinstance(self.judged_only, bool):
            raise InputError(
                f"measure {self.name}: expected judged_only=True or False, found {self.judged_only!r}."
            )

    def __repr__(self) -> str:
        params = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name in ("rel", "dcg", "judged_only") and getattr(self, field.name) != field.default
        ]
        at = getattr(self, self.facts.at)
        return self.name + (f"({','.join(params)})" if params else "") + ("" if at is None else f"@{at}")

    def __hash__(self) -> int:
        return hash(repr(self))


@runtime_checkable
class NamedMeasure(Protocol):
    """A measure of ir_measures, seen from afar so that ir_measures need not be there: its text names it."""

    @property
    def NAME(self) -> str | None:  # noqa: N802 (their name)
        """The measure's name without its settings."""

    @property
    def SUPPORTED_PARAMS(self) -> Mapping[str, Any]:  # noqa: N802 (their name)
        """The settings that it takes."""


MeasureLike: TypeAlias = Measure | str | NamedMeasure
"""What is taken for a measure: one of genm's or of ir_measures, or the name of one."""


def parse_measure(text: object) -> Measure:
    """Return the measure that `text` names, such as "nDCG@10", "P(rel=2)@5", "MAP" or trec_eval's "P_5".

    A `Measure` is returned as it is; a measure of ir_measures is read from its text.
    """
    if isinstance(text, Measure):
        return text
    written = str(text)
    form = _FORM.fullmatch(written)
    if form is None:
        form = _TREC_FORM.fullmatch(written.strip())
    elif form["name"].lower() not in _SPELLINGS and form["params"] is None and form["at"] is None:
        form = _TREC_FORM.fullmatch(form["name"]) or form
    if form is None:
        raise InputError(f"measure {written!r}: expected a form such as AP, nDCG@10 or P(rel=2)@5.")
    parts = form.groupdict()
    name = _SPELLINGS.get(parts["name"].lower())
    if name is None:
        raise InputError(_unknown(parts["name"]))
    values = _parse_params(written, name, parts.get("params") or "")
    if parts["at"] is not None:
        at = FACTS[name].at
        if at in values:
            raise InputError(f"measure {written!r}: expected one {at}, found two. Drop the one in brackets.")
        values[at] = _parse_value(written, parts["at"])
    return Measure(name, **values)  # type: ignore[arg-type]  # checked by Measure itself


def parse_measures(text: object) -> tuple[Measure, ...]:
    """Return the measures of a list such as "AP,nDCG@10", of one measure, or of an iterable of both.

    Commas and white space separate; a measure named twice is kept once.
    """
    pieces: list[object] = []
    for piece in text if isinstance(text, Iterable) and not isinstance(text, str) else [text]:
        pieces += filter(None, _BETWEEN.split(piece)) if isinstance(piece, str) else [piece]
    if not pieces:
        raise InputError("measures: expected at least one, found none. Give names such as AP,nDCG@10.")
    return tuple(dict.fromkeys(parse_measure(piece) for piece in pieces))


def _parse_params(written: str, name: MeasureName, params: str) -> dict[str, int | float | str | bool]:
    """Read the `key=value` pairs between the brackets."""
    values: dict[str, int | float | str | bool] = {}
    for pair in filter(None, (p.strip() for p in params.split(","))):
        key, equals, value = (p.strip() for p in pair.partition("="))
        if not equals or key not in FACTS[name].takes:
            raise InputError(
                f"measure {written!r}: found {pair!r} in brackets, expected key=value with a key among "
                f"{', '.join(FACTS[name].takes)}."
            )
        values[key] = _parse_value(written, value)
    return values


def _parse_value(written: str, value: str) -> int | float | str | bool:
    """Read a number, a truth value or a quoted word."""
    if value in ("True", "False"):
        return value == "True"
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    try:
        return int(value) if re.fullmatch(r"[+-]?\d+", value) else float(value)
    except ValueError:
        raise InputError(f"measure {written!r}: expected a number, found {value!r}.") from None


def _checked_count(measure: str, key: str, value: SupportsIndex) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 < operator.index(value) < 2**31:
        raise InputError(f"measure {measure}: expected {key} to be a positive integer, found {value!r}.")
    return operator.index(value)


def _unknown(name: str) -> str:
    """Say which names are nearest to one that does not exist."""
    known = [*FACTS, *_SPOKEN]
    folded = {k.lower(): k for k in known}
    near = [folded[k] for k in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    advice = f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(known)}."
    return f"measure {name!r} is not known. {advice}"
