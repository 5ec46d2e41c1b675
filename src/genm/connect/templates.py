"""Templates of sub-queries: the engine's own query language with `$query`, `$vector` and other names in it.

A value is never pasted into a text that the engine parses. In JSON a string that is exactly `"$query"` becomes the
query's text as a JSON string, `"$vector"` a list of numbers, `"$depth"` an integer. In SQL the names become bind
parameters. Only numbers (`$vector`, `$depth`) may stand inside a longer string, since they cannot end it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from genm.errors import InputError
from genm.strict_json import unique_keys

Template = str | Mapping[str, Any] | Sequence[Any]
"""A sub-query in the engine's language: a table, a list, or text (JSON or SQL)."""

NAMES = ("query_id", "query", "words", "vector", "depth")
_NAME = re.compile(rf"(\$\$?)({'|'.join(NAMES)})\b")
_WHOLE = re.compile(rf"\$({'|'.join(NAMES)})")
_NUMBERS = frozenset({"vector", "depth"})
_WORD = re.compile(r"\w+")
_SQL_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Values:
    """What one query gives to a template."""

    query_id: str
    query: str
    vector: Any
    """Numbers, or a sparse vector as {"indices": [...], "values": [...]}; None if there is none."""
    depth: int

    @property
    def words(self) -> list[str]:
        """The words of the query, without punctuation."""
        return _WORD.findall(self.query)

    def of(self, name: str, place: str) -> Any:
        """Return the value of a name."""
        if name == "vector":
            if self.vector is None:
                raise InputError(
                    f"{place}: expected a vector for query {self.query_id!r}, since the template has $vector; "
                    "found "
                    "none. Give vectors: a column of the queries, a file, or a function (see docs/pull.md)."
                )
            return dict(self.vector) if isinstance(self.vector, Mapping) else list(self.vector)
        if name == "words":
            raise InputError(f"{place}: $words belongs to engines that are asked in SQL. Use $query here.")
        return getattr(self, name)


def names_in(template: Template) -> set[str]:
    """Return the names that a template contains."""
    if isinstance(template, str):
        return {found[2] for found in _NAME.finditer(template) if found[1] == "$"}
    if isinstance(template, Mapping):
        return set().union(*(names_in(value) for value in template.values()), set())
    if isinstance(template, list | tuple):
        return set().union(*(names_in(value) for value in template), set())
    return set()


def read_json_template(template: Template, place: str) -> Any:
    """Return the JSON value of a template, given as a table or as JSON text, and check where names stand."""
    if isinstance(template, str):
        template = _parsed(template, place)
    if not isinstance(template, Mapping | list | tuple):
        raise InputError(
            f"{place}: expected a table or a list in the engine's query language; found {template!r:.60}."
        )
    _check_strings(template, place)
    _check_varies(template, place)
    return template


def _parsed(text: str, place: str) -> Any:
    try:
        found = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
        json.dumps(found, ensure_ascii=False).encode()  # no halves of characters
        return found
    except json.JSONDecodeError as error:
        raise InputError(
            f"{place}: expected a table or JSON text; found text that is not JSON (line {error.lineno}, column "
            f'{error.colno}: {error.msg}). Names stand in quotes: {{"match": {{"text": "$query"}}}}.'
        ) from None
    except ValueError as error:  # a key twice, NaN, an integer of thousands of digits, half a character
        raise InputError(f"{place}: expected JSON text; found {error!s:.100}. Correct it.") from None
    except RecursionError:
        raise InputError(f"{place}: expected few levels of nesting; found too many. Flatten it.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name}, which is no JSON number")


def fill_json(template: Any, values: Values, place: str) -> Any:
    """Return the JSON value of one query; the template is one that `read_json_template` returned."""
    if isinstance(template, Mapping):
        return {key: fill_json(value, values, place) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_json(value, values, place) for value in template]
    if not isinstance(template, str):
        return template
    if whole := _WHOLE.fullmatch(template):
        return values.of(whole[1], place)
    return _NAME.sub(partial(_number_text, values, place), template)


def _number_text(values: Values, place: str, found: re.Match[str]) -> str:
    if found[1] == "$$":
        return f"${found[2]}"
    return json.dumps(values.of(found[2], place), separators=(",", ":"))


def _check_strings(template: Any, place: str) -> None:
    if isinstance(template, Mapping):
        for key, value in template.items():
            _check_strings(value, f"{place}.{key}")
    elif isinstance(template, list | tuple):
        for i, value in enumerate(template):
            _check_strings(value, f"{place}[{i}]")
    elif isinstance(template, str) and not _WHOLE.fullmatch(template):
        for found in _NAME.finditer(template):
            if found[1] == "$" and found[2] not in _NUMBERS:
                raise InputError(
                    f'{place}: expected "${found[2]}" as a whole string, so that a query with quotes or operators '
                    f"stays data; found it inside {template!r:.80}. Use a query type that takes the words as a "
                    f"value of their own (match, edismax with a parameter); $${found[2]} is the literal text."
                )


def _check_varies(template: Any, place: str) -> None:
    if not names_in(template) & {"query", "words", "vector", "query_id"}:
        raise InputError(
            f'{place}: expected "$query" or "$vector" somewhere; found neither, so all queries would get the same '
            'documents. Put "$query" where the words go.'
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement whose names are bind parameters."""

    text: str
    names: frozenset[str]


def read_sql_template(template: Template, place: str, parameter: str) -> Statement:
    """Return the statement of a template; `parameter` is how the driver writes one, such as `:{}` or `%({})s`."""
    if not isinstance(template, str):
        raise InputError(f"{place}: expected an SQL statement as text; found {type(template).__name__}.")
    for quoted in _SQL_QUOTED.finditer(template):
        if names_in(quoted[0]):
            raise InputError(
                f"{place}: expected names outside quotes and comments, since they become bind parameters; "
                "found one "
                f"in {quoted[0]!r:.60}. Remove the quotes."
            )
    _check_varies(template, place)
    if "depth" not in names_in(template):
        raise InputError(f"{place}: expected $depth in the statement, such as LIMIT $depth; found none. Add it.")
    text = template.replace("%", "%%") if parameter.startswith("%") else template
    text = _NAME.sub(lambda found: found[0] if found[1] == "$$" else parameter.format(found[2]), text)
    return Statement(text, frozenset(names_in(template)))
