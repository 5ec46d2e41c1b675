"""A normaliser as an SQL expression over a list of (id, score) rows."""

from typing import Literal

from genm.records import Normalizer

_LOW, _HIGH = "min(score) OVER ()", "max(score) OVER ()"
_PLACE = 'row_number() OVER (ORDER BY score DESC, id::text COLLATE "C" DESC)'


def normalized_sql(normalizer: Normalizer) -> str:
    """Return the expression of the normalised score."""
    kind = normalizer.kind
    if kind == "none":
        return _finished("score", normalizer)
    if kind == "atan":
        return _finished("atan(score)", normalizer)
    if kind == "sigmoid":
        return _finished("1 / (1 + exp(-score))", normalizer)
    if kind == "reciprocal":
        return _finished(f"1 / ({_number(normalizer.k)} + {_PLACE})", normalizer)
    if kind == "rank":
        return _finished(f"(count(*) OVER () - {_PLACE} + 1)::float8 / count(*) OVER ()", normalizer)
    if kind == "affine":
        return _between(normalizer)
    if kind == "minmax":
        return _unless_stuck(f"{_HIGH} - {_LOW}", _between(normalizer), normalizer)
    if kind == "max":
        size = f"greatest(abs({_LOW}), abs({_HIGH}))"
        return _unless_stuck(size, _finished(f"score / {size}", normalizer), normalizer)
    if kind == "l2":
        size = "sqrt(sum(score * score) OVER ())"
        return _unless_stuck(size, _finished(f"score / {size}", normalizer), normalizer)
    if kind == "sum":
        over = f"(sum(score) OVER () - count(*) OVER () * {_LOW})"
        value = _finished(f"(score - {_LOW}) / {over}", normalizer)
        return _unless_stuck(f"{_HIGH} - {_LOW}", value, normalizer)
    deviation = "stddev_samp" if normalizer.ddof == 1.0 else "stddev_pop"
    value = _finished(f"(score - avg(score) OVER ()) / {deviation}(score) OVER ()", normalizer)
    if normalizer.at_mean is not None:
        there = _HIGH if normalizer.at_mean == "max" else _number(float(normalizer.at_mean))
        value = f"CASE WHEN score::real = (avg(score) OVER ())::real THEN {there} ELSE {value} END"
    return _unless_stuck(f"{_HIGH} - {_LOW}", value, normalizer)


def _between(normalizer: Normalizer) -> str:
    """Scale by the list's ends or by fixed bounds; a list wholly beyond a bound keeps its own end."""
    if normalizer.kind == "minmax" and normalizer.lower is None and normalizer.upper is None:
        return _finished(f"(score - {_LOW}) / ({_HIGH} - {_LOW})", normalizer)
    bounded = [
        (normalizer.lower is not None and normalizer.lower_mode == "apply"),
        (normalizer.upper is not None and normalizer.upper_mode == "apply"),
    ]
    fixed = normalizer.kind == "affine" or all(bounded)
    bottom = _end(normalizer, "lower", fixed=fixed)
    top = _end(normalizer, "upper", fixed=fixed)
    value = _finished(f"(score - {bottom}) / ({top} - {bottom})", normalizer)
    cases = []
    if normalizer.lower is not None and normalizer.lower_mode == "clip":
        cases.append(f"WHEN score < {bottom} THEN {_finished('0.0', normalizer)}")
    if normalizer.upper is not None and normalizer.upper_mode == "clip":
        cases.append(f"WHEN score > {top} THEN {_finished('1.0', normalizer)}")
    cases.append(f"WHEN {top} > {bottom} THEN {value}")
    return f"CASE {' '.join(cases)} ELSE {_stuck(normalizer)} END"


def _end(normalizer: Normalizer, end: Literal["lower", "upper"], *, fixed: bool) -> str:
    bound = normalizer.lower if end == "lower" else normalizer.upper
    mode = normalizer.lower_mode if end == "lower" else normalizer.upper_mode
    own, other = (_LOW, _HIGH) if end == "lower" else (_HIGH, _LOW)
    beyond, inside = ("<", "<=") if end == "lower" else (">", ">=")
    if bound is None or mode == "ignore":
        return own
    number = _number(bound)
    if fixed:
        return number
    cases = [f"WHEN {other} {beyond if mode == 'clip' else inside} {number} THEN {own}"]
    if mode == "within":
        cases.append(f"WHEN score {inside} {number} THEN {own}")
    return f"(CASE {' '.join(cases)} ELSE {number} END)"


def _unless_stuck(size: str, value: str, normalizer: Normalizer) -> str:
    within = _number(normalizer.constant_within)
    return f"CASE WHEN {size} <= {within} THEN {_stuck(normalizer)} ELSE {value} END"


def _stuck(normalizer: Normalizer) -> str:
    return "score" if normalizer.constant == "raw" else _number(float(normalizer.constant))


def _finished(value: str, normalizer: Normalizer) -> str:
    if normalizer.scale != 1.0:
        value = f"{_number(normalizer.scale)} * ({value})"
    if normalizer.shift != 0.0:
        value = f"({value}) + {_number(normalizer.shift)}"
    if normalizer.floor is None:
        return value
    at = normalizer.floor if normalizer.floor_at is None else normalizer.floor_at
    return f"CASE WHEN {value} <= {_number(at)} THEN {_number(normalizer.floor)} ELSE {value} END"


def _number(value: float) -> str:
    return f"({value!r}::float8)"
