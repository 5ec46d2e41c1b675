"""Groups of queries: where a query's group comes from, and the rules that find it.

A group comes from a file, from a column of the queries' table, or from rules that are tested in order, such as

    id: ^[A-Z0-9-]+$, short: words<=2, german: lang=de

| test | true for |
|---|---|
| `words<=2`, `characters>40` | a text of so many words or characters; `<`, `<=`, `=`, `>=` and `>` compare |
| `digits` | a text with a digit |
| `lang=de` | a query whose column `lang` holds `de` |
| anything else | a text in which this regular expression is found |

The first rule that is true gives the group; queries for which none is true form the group "other". Nothing is
evaluated as code. Regular expressions are limited to those whose worst case is cheap: no repeated group, no
look-around, no back reference, and not so many repeats that backtracking could take long; they see the first 256
characters.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from genm.errors import InputError

OTHER = "other"
"""The group of queries for which no rule is true."""
TEXT = "text"
"""The column with the query's text."""
MAX_GROUPS = 100
MAX_PATTERN = 200
"""Characters of a regular expression."""
SEEN_CHARACTERS = 256
"""How much of a text a regular expression sees."""
MOST_STEPS = SEEN_CHARACTERS**3
"""How many ways a regular expression may have to match, at worst."""

QueryColumns: TypeAlias = Mapping[str, str]
"""What is known of one query: its text under "text", and the values of other columns."""
Queries: TypeAlias = Mapping[str, str | QueryColumns]
"""By query id: the text alone, or all columns."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,63}")
_NEXT_RULE = re.compile(r",\s*(?=[A-Za-z0-9_][A-Za-z0-9_. -]{0,63}:)")
_COUNT = re.compile(r"(words|characters)\s*(<=|>=|<|>|=)\s*(\d{1,6})")
_COLUMN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\S.*)")
_BOUNDS = re.compile(r"\{(\d{0,4})(,?)(\d{0,4})\}")


@dataclass(frozen=True, slots=True)
class GroupRule:
    """One rule: the group of the queries for which the test is true."""

    group: str
    test: str

    def __str__(self) -> str:
        return f"{self.group}: {self.test}"

    def is_true(self, query: QueryColumns) -> bool:
        """Whether a query passes the test."""
        text = query.get(TEXT, "")
        if counted := _COUNT.fullmatch(self.test):
            size = len(text.split()) if counted[1] == "words" else len(text)
            return _compare(size, counted[2], int(counted[3]))
        if self.test == "digits":
            return any(letter.isdigit() for letter in text)
        if column := _COLUMN.fullmatch(self.test):
            return query.get(column[1]) == column[2]
        return _compiled(self.test).search(text[:SEEN_CHARACTERS]) is not None

    @property
    def column(self) -> str | None:
        """The column that the test reads; None where it reads the text."""
        found = None if _COUNT.fullmatch(self.test) else _COLUMN.fullmatch(self.test)
        return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Where a query's group comes from: it is given, or a column holds it, or rules find it."""

    source: Literal["given", "column", "rules"] = "given"
    column: str | None = None
    rules: tuple[GroupRule, ...] = ()

    def __str__(self) -> str:
        if self.source == "rules":
            return ", ".join(map(str, self.rules))
        return f"the column {self.column}" if self.source == "column" else "groups that are given by query"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the queries' table that are read."""
        if self.source == "column":
            return (str(self.column),)
        return tuple(dict.fromkeys(rule.column or TEXT for rule in self.rules))

    def group_of(self, query: QueryColumns) -> str | None:
        """Return the group of a query; None if it is not known."""
        if self.source == "column":
            return query.get(str(self.column)) or None
        if self.source == "given" or not any(column in query for column in self.columns):
            return None
        return next((rule.group for rule in self.rules if rule.is_true(query)), OTHER)


def parse_grouping(text: str | Sequence[str]) -> Grouping:
    """Return the grouping that `--group-by` describes: the name of a column, or rules NAME: TEST.

    A comma ends a rule where a name and a colon follow it. A regular expression that holds such a comma goes into
    a rule of its own: `group_by` may be a list.
    """
    parts = _NEXT_RULE.split(text) if isinstance(text, str) else list(text)
    parts = _NEXT_RULE.split(parts[0]) if len(parts) == 1 else parts
    if len(parts) == 1 and re.fullmatch(r"\s*[A-Za-z_][A-Za-z0-9_]*\s*", parts[0]):
        return Grouping("column", column=parts[0].strip())
    rules = []
    for part in parts:
        name, colon, test = part.partition(":")
        rules.append(GroupRule(name.strip(), test.strip()))
        if not colon:
            raise InputError(
                f"group_by (--group-by) {part.strip()!r:.80}: expected NAME: TEST, such as 'short: words<=2', or "
                f"the name of one column."
            )
    return checked_grouping(Grouping("rules", rules=tuple(rules)))


def checked_grouping(grouping: Grouping) -> Grouping:
    """Return the grouping if its rules can be used; refuse empty, repeated and unsafe ones."""
    names = [rule.group for rule in grouping.rules]
    for rule in grouping.rules:
        place = f"group_by (--group-by) {str(rule)!r:.80}"
        if not _NAME.fullmatch(rule.group) or rule.group == OTHER or names.count(rule.group) > 1:
            raise InputError(
                f"{place}: expected a name of its own for each rule, of up to 64 letters, digits, _, -, . and "
                f"blanks; "
                f'"{OTHER}" is the name of the queries for which no rule is true.'
            )
        if not rule.test:
            raise InputError(f"{place}: expected a test behind the colon, such as words<=2; found none.")
        if not (_COUNT.fullmatch(rule.test) or rule.test == "digits" or _COLUMN.fullmatch(rule.test)):
            check_pattern(rule.test, place)
    return grouping


def check_pattern(pattern: str, place: str) -> None:
    """Refuse a regular expression that Python does not take, or that could take long on some text."""
    if len(pattern) > MAX_PATTERN:
        raise InputError(
            f"{place}: expected a regular expression of at most {MAX_PATTERN} characters; found {len(pattern)}. "
            f"Split it into two rules."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a set such as [[a] may come to mean something else
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        fault = str(error).encode("unicode_escape").decode()
        raise InputError(f"{place}: expected a regular expression; {fault}. Write a plain [ as \\[.") from None
    is_anchored = pattern.removeprefix("(?i)").startswith("^") and "|" not in pattern
    steps, found = 1 if is_anchored else SEEN_CHARACTERS, ""
    at, after_group = 4 if pattern.startswith("(?i)") else 0, False
    while at < len(pattern) and not found:
        letter, width, repeats = pattern[at], 1, 1
        if letter == "\\":
            width = 2
            found = f"the back reference {pattern[at : at + 2]}" if pattern[at + 1].isdigit() else ""
        elif letter == "[":
            width = _class_length(pattern, at)
        elif pattern.startswith("(?", at) and not pattern.startswith("(?:", at):
            found = f"{pattern[at : at + 3]}"
        elif pattern.startswith("(?:", at):
            width = 3
        elif letter in "*+":
            repeats = SEEN_CHARACTERS
        elif letter == "?":
            repeats = 2
        elif bounds := _BOUNDS.match(pattern, at):
            width = len(bounds[0])
            most = bounds[3] if bounds[2] else bounds[1]
            repeats = min(int(most), SEEN_CHARACTERS) if most else SEEN_CHARACTERS
        else:
            pass  # an ordinary character
        if after_group and repeats > 2:
            found = f"the repeated group )...{pattern[at : at + width]}"
        after_group = letter == ")"
        steps *= max(repeats, 1)
        at += width
    if not found and steps > MOST_STEPS:
        found = "so many repeats that some text could take long"
    if found:
        raise InputError(
            f"{place}: expected a regular expression that is cheap on any text; found {found}. Anchor it by ^, "
            f"bound repeats as in {{1,9}}, repeat single characters and classes only, or split the rule."
        )


def _class_length(pattern: str, at: int) -> int:
    """Return how long the class [...] is that begins at this place; a first ] belongs to it."""
    end = at + 1 + pattern.startswith("^", at + 1)
    end += 1
    while pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _compare(size: int, sign: str, limit: int) -> bool:
    if sign == "=":
        return size == limit
    below = size < limit if sign in ("<", ">=") else size <= limit
    return below if sign in ("<", "<=") else not below


def columns_of(queries: Queries | None, query_id: str) -> QueryColumns:
    """Return what is known of a query; nothing where it is not in the table."""
    found = {} if queries is None else queries.get(query_id, {})
    return {TEXT: found} if isinstance(found, str) else found


def groups_of_queries(
    grouping: Grouping,
    query_ids: Iterable[str],
    *,
    queries: Queries | None = None,
    given: Mapping[str, str] | None = None,
) -> list[str | None]:
    """Return the group of each query, None where it is not known; a group that is given comes before any rule."""
    known = {} if given is None else given
    return [known.get(one) or grouping.group_of(columns_of(queries, one)) for one in query_ids]


def count_groups(groups: Iterable[str | None]) -> dict[str, int]:
    """Return how many queries each group has, the most first; refuse more groups than anybody could tell apart."""
    counts = Counter(group for group in groups if group is not None)
    if len(counts) > MAX_GROUPS:
        raise InputError(
            f"groups (--groups): expected at most {MAX_GROUPS} groups; found {len(counts):,}. Each needs queries "
            f"of its own to learn from: use fewer and larger groups."
        )
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
