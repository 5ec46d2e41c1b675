"""Types of exported files; names and numbers from outside, made safe for the language they are written into."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genm.errors import ExportError


class FileType(NamedTuple):
    """What kind of file an export is."""

    media_type: str
    suffix: str


JSON = FileType("application/json", "json")
PYTHON = FileType("text/x-python", "py")
SQL = FileType("application/sql", "sql")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_EXPRESSION = re.compile(r"[A-Za-z0-9_(),.+*/ \"-]+\Z")


def plain_name(name: str, what: str, advice: str) -> str:
    """Return a name of ASCII letters, digits and underscores, or say how to give one."""
    if _PLAIN.match(name):
        return name
    raise ExportError(f"{what}: expected letters, digits and _ (not first a digit); found {name!r:.80}. {advice}")


def feature_text(text: str, what: str) -> str:
    """Return a rank feature or an expression of them on one line, with nothing that could end it."""
    if _EXPRESSION.match(text) and text.count("(") == text.count(")") and text.count('"') % 2 == 0:
        return text
    raise ExportError(
        f'{what}: expected a rank feature such as bm25(text): letters, digits, ( ) , . + - * / _ " and '
        f"spaces, brackets closed; found {text!r:.80}."
    )


def document_field(name: str, what: str) -> str:
    """Return a name that MongoDB takes for a pipeline or a field."""
    if name and not name.startswith("$") and "\0" not in name:
        return name
    raise ExportError(f"{what}: expected a name that does not start with $; found {name!r:.80}.")


def sql_name(name: str, what: str) -> str:
    """Return an SQL identifier in double quotes; a dot parts schema and table."""
    parts = name.split(".")
    if "\0" in name or not all(parts) or any(len(part.encode()) > 63 for part in parts):
        raise ExportError(f"{what}: expected an SQL name of 1 to 63 bytes; found {name!r:.80}.")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def sql_text(text: str) -> str:
    """Return an SQL string literal."""
    if "\0" in text:
        raise ExportError("expected text without NUL characters for SQL; found one.")
    quoted = text.replace("'", "''")
    return f"E'{quoted.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{quoted}'"


def py_literal(value: object) -> str:
    """Return a Python literal, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{py_literal(k)}: {py_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(py_literal, value)) + "]"
    return repr(value)


def query_words(text: str) -> str:
    """Return words for Redis's query language, everything that it would read as syntax escaped."""
    return "".join(c if c.isalnum() or c in " _" else f"\\{c}" for c in text)


def one_line(text: str) -> str:
    """Return text for a comment: control characters and line ends are shown, not obeyed."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def cli_word(text: str) -> str:
    """Return one argument of redis-cli, quoted if it needs to be."""
    if re.fullmatch(r"[A-Za-z0-9_@$:.*+-]+", text):
        return text
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(c)
        or (c if ord(c) >= 32 else f"\\x{ord(c):02x}")
        for c in text
    )
    return f'"{escaped}"'


def to_json(value: object) -> str:
    """Return indented JSON in which short lists of numbers stay on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    numbers = re.compile(r"\[\n\s*(-?[0-9][^\[\]{}\":]*?)\n\s*\]")  # no string holds a line end
    return numbers.sub(lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text) + "\n"
