"""One SQL statement that cuts, normalises and adds the lists of several rankers, in the dialect of a database."""

# ruff: noqa: S608 (every name in a statement went through sql_name or sql_text, every number through repr)

from collections.abc import Callable
from typing import Literal, NamedTuple

from genm.export.quoting import one_line
from genm.export.simulation import add_weighted, every_doc, filled, normalized, top
from genm.export.target import Lists, Payload, Technique
from genm.normalizers import Normalizer, NormalizerKind

_LOW, _HIGH, _COUNT = "min(score) OVER ()", "max(score) OVER ()", "count(*) OVER ()"
_FREE = frozenset({"floor", "floor_at", "constant", "constant_within", "ddof", "k", "scale", "shift", "missing"})
_KINDS: tuple[NormalizerKind, ...] = (
    "minmax",
    "none",
    "max",
    "sum",
    "zscore",
    "l2",
    "rank",
    "reciprocal",
    "affine",
    "atan",
    "sigmoid",
)


class Dialect(NamedTuple):
    """What databases spell differently."""

    number: Callable[[float], str]
    """A number of double precision."""
    downwards: Callable[[str], str]
    """An id in ORDER BY, by its bytes downwards: genm's order of equal scores."""
    larger: str
    """The function that returns the larger of two numbers."""
    deviation: Callable[[int, float], str]
    """The standard deviation of the scores of list i, with so many degrees of freedom subtracted."""
    same: Callable[[str, str], str] | None = None
    """The test whether two numbers are equal in single precision, where the database has that type."""
    materialized: str = ""
    """The word that makes a list be computed once."""


def sql_techniques(dialect: Dialect) -> tuple[Technique, ...]:
    """Return the normalisers that the dialect expresses: all of them, for every value of their fields."""
    free = _FREE | ({"at_mean"} if dialect.same else set())
    return tuple(
        Technique(
            kind,
            Normalizer(kind, lower=0.0, upper=1.0) if kind == "affine" else Normalizer(kind),
            free,
            bounds=frozenset({"apply", "clip", "within"}),
            whole={"ddof": (0, 1)},
        )
        for kind in _KINDS
    )


def fusion_statement(document: Payload, dialect: Dialect, list_sql: Callable[[Payload], str]) -> str:
    """Return the statement: every ranker has a list, cut at its window, and its normalised scores.

    `list_sql` gives the SELECT of a ranker's list, with the columns id and score.
    """
    rankers, ctes = document["rankers"], []
    for i, ranker in enumerate(rankers, start=1):
        keep = f" {dialect.materialized}" if dialect.materialized else ""
        ctes.append(f"list{i} AS{keep} (  -- {one_line(ranker['ranker'])}\n{list_sql(ranker)}\n)")
        value = _Normalized(ranker["normalizer"], i, dialect).expression()
        ctes.append(f"ranker{i} AS (\n  SELECT id, {value} AS score\n  FROM list{i}\n)")
    everyone = "\n  UNION\n".join(f"  SELECT id FROM list{i + 1}" for i in range(len(rankers)))
    ctes.append(f"found AS (\n{everyone}\n)")
    terms = [
        f"{ranker['weight']!r} * COALESCE(ranker{i}.score, {_missing(ranker['normalizer'], i)})"
        for i, ranker in enumerate(rankers, start=1)
    ]
    lines = [
        "WITH " + ", ".join(ctes),
        "SELECT found.id, " + "\n  + ".join(terms) + " AS score\nFROM found",
        *(f"LEFT JOIN ranker{i + 1} ON ranker{i + 1}.id = found.id" for i in range(len(rankers))),
        f"ORDER BY score DESC, {dialect.downwards('found.id')}\nLIMIT {document['limit']};",
    ]
    return "\n".join(lines) + "\n"


def simulate_statement(document: Payload, lists: Lists) -> dict[str, float]:
    """Cut each list, normalise it step by step, give the missing their value, add."""
    cut = [top(scores, r["limit"]) for scores, r in zip(lists, document["rankers"], strict=True)]
    docs = every_doc(cut)
    columns = []
    for scores, ranker in zip(cut, document["rankers"], strict=True):
        normalizer: Normalizer = ranker["normalizer"]
        columns.append(filled(normalized(scores, normalizer), docs, normalizer))
    return add_weighted(columns, [ranker["weight"] for ranker in document["rankers"]])


def _missing(normalizer: Normalizer, i: int) -> str:
    if normalizer.missing == "minimum":
        return f"(SELECT min(score) FROM ranker{i}), 0"
    return repr(float(normalizer.missing))


class _Normalized(NamedTuple):
    """The normalised score of a row of list i, as an expression."""

    normalizer: Normalizer
    i: int
    dialect: Dialect

    def expression(self) -> str:
        """Return the expression."""
        normalizer, kind = self.normalizer, self.normalizer.kind
        spread = f"{_HIGH} - {_LOW}"
        if kind == "none":
            return self._finished("score")
        if kind == "atan":
            return self._finished("atan(score)")
        if kind == "sigmoid":
            return self._finished("1 / (1 + exp(-score))")
        if kind == "reciprocal":
            return self._finished(f"1 / ({self._number(normalizer.k)} + {self._place()})")
        if kind == "rank":
            return self._finished(f"{self._number(1.0)} * ({_COUNT} - {self._place()} + 1) / {_COUNT}")
        if kind == "affine":
            return self._between()
        if kind == "minmax":
            return self._unless_constant(spread, self._between())
        if kind == "max":
            size = f"{self.dialect.larger}(abs({_LOW}), abs({_HIGH}))"
            return self._unless_constant(size, self._finished(f"score / {size}"))
        if kind == "l2":
            size = "sqrt(sum(score * score) OVER ())"
            return self._unless_constant(size, self._finished(f"score / {size}"))
        if kind == "sum":
            total = f"(sum(score) OVER () - {_COUNT} * {_LOW})"
            return self._unless_constant(spread, self._finished(f"(score - {_LOW}) / {total}"))
        value = self._finished(f"(score - avg(score) OVER ()) / {self.dialect.deviation(self.i, normalizer.ddof)}")
        if normalizer.at_mean is not None and self.dialect.same is not None:
            there = _HIGH if normalizer.at_mean == "max" else self._number(float(normalizer.at_mean))
            at_mean = self.dialect.same("score", "(avg(score) OVER ())")
            value = f"CASE WHEN {at_mean} THEN {there} ELSE {value} END"
        return self._unless_constant(spread, value)

    def _place(self) -> str:
        return f"row_number() OVER (ORDER BY score DESC, {self.dialect.downwards('id')})"

    def _between(self) -> str:
        """Scale by the list's ends or by fixed bounds; a list wholly beyond a bound keeps its own end."""
        normalizer = self.normalizer
        if normalizer.kind == "minmax" and normalizer.lower is None and normalizer.upper is None:
            return self._finished(f"(score - {_LOW}) / ({_HIGH} - {_LOW})")
        applied = [
            normalizer.lower is not None and normalizer.lower_mode == "apply",
            normalizer.upper is not None and normalizer.upper_mode == "apply",
        ]
        fixed = normalizer.kind == "affine" or all(applied)
        bottom, top_end = self._end("lower", fixed=fixed), self._end("upper", fixed=fixed)
        value = self._finished(f"(score - {bottom}) / ({top_end} - {bottom})")
        cases = []
        if normalizer.lower is not None and normalizer.lower_mode == "clip":
            cases.append(f"WHEN score < {bottom} THEN {self._finished('0.0')}")
        if normalizer.upper is not None and normalizer.upper_mode == "clip":
            cases.append(f"WHEN score > {top_end} THEN {self._finished('1.0')}")
        cases.append(f"WHEN {top_end} > {bottom} THEN {value}")
        return f"CASE {' '.join(cases)} ELSE {self._constant()} END"

    def _end(self, end: Literal["lower", "upper"], *, fixed: bool) -> str:
        normalizer = self.normalizer
        bound = normalizer.lower if end == "lower" else normalizer.upper
        mode = normalizer.lower_mode if end == "lower" else normalizer.upper_mode
        own, other = (_LOW, _HIGH) if end == "lower" else (_HIGH, _LOW)
        beyond, inside = ("<", "<=") if end == "lower" else (">", ">=")
        if bound is None or mode == "ignore":
            return own
        number = self._number(bound)
        if fixed:
            return number
        cases = [f"WHEN {other} {beyond if mode == 'clip' else inside} {number} THEN {own}"]
        if mode == "within":
            cases.append(f"WHEN score {inside} {number} THEN {own}")
        return f"(CASE {' '.join(cases)} ELSE {number} END)"

    def _unless_constant(self, size: str, value: str) -> str:
        within = self._number(self.normalizer.constant_within)
        return f"CASE WHEN {size} <= {within} THEN {self._constant()} ELSE {value} END"

    def _constant(self) -> str:
        constant = self.normalizer.constant
        return "score" if constant == "raw" else self._number(float(constant))

    def _finished(self, value: str) -> str:
        normalizer = self.normalizer
        if normalizer.scale != 1.0:
            value = f"{self._number(normalizer.scale)} * ({value})"
        if normalizer.shift != 0.0:
            value = f"({value}) + {self._number(normalizer.shift)}"
        if normalizer.floor is None:
            return value
        at = normalizer.floor if normalizer.floor_at is None else normalizer.floor_at
        least = self._number(normalizer.floor)
        return f"CASE WHEN {value} <= {self._number(at)} THEN {least} ELSE {value} END"

    def _number(self, value: float) -> str:
        return self.dialect.number(value)
