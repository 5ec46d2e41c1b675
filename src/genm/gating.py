"""Weights of each query from its own features (experimental): what `genm fit --per-query` learns.

w(q) = softmax(logits + own . x(q) + shared . z(q)). x holds five features of each ranker's own list
(`genm._math.query_features`), which act on that ranker's logit alone; z holds the agreement of every list with the
others, and features of the query:

| feature | value |
|---|---|
| words | the number of words |
| digits | the share of words with a digit |
| rare | the share of words that are not among the common ones of the training queries |
| column NAME | a number that the user's column of this name holds |
| column NAME=VALUE | 1 where the column holds this value, else 0 |

Features are centred and scaled as in training and cut at 3 standard deviations; one that is missing counts as its
mean. With all coefficients at 0 every query has the global weights.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from genm._math.elementary import exponentials
from genm._math.query_features import LIST_FEATURES, list_features
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import ModelError
from genm.grouping import TEXT, Queries, columns_of
from genm.records import Note
from genm.strict_json import EDITED, Finite, Strict, convert

N_COMMON_WORDS = 500
"""How many of the words that several training queries have count as common, at most."""
MOST_VALUES = 10
"""A column of texts with more values than this is not used."""
FARTHEST = 3.0
"""Standard deviations at which a feature is cut."""
TEXT_FEATURES = ("words", "digits", "rare")
_COLUMN = "column "
_DIGIT = re.compile("[0-9]")


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """Which features of a query are read, and what they need: names as in the module's table."""

    names: tuple[str, ...] = ()
    common_words: tuple[str, ...] = ()

    @classmethod
    def of(cls, query_ids: Sequence[str], queries: Queries | None) -> "QueryFeatures":
        """Return the features that these queries have: those of the text, and of columns that can be used."""
        if queries is None:
            return cls()
        known = [columns_of(queries, query_id) for query_id in query_ids]
        names = list(TEXT_FEATURES) if any(one.get(TEXT) for one in known) else []
        counts = Counter(word for one in known for word in set(one.get(TEXT, "").lower().split()))
        common = [word for word, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])) if n > 1]
        for column in dict.fromkeys(name for one in known for name in one if name != TEXT):
            values = [one[column] for one in known if one.get(column)]
            if all(_number(value) is not None for value in values):
                names.append(f"{_COLUMN}{column}")
            elif len(set(values)) <= MOST_VALUES:
                names += [f"{_COLUMN}{column}={value}" for value in sorted(set(values))]
            else:
                pass  # nearly every query has a value of its own: nothing to learn from
        return cls(tuple(names), tuple(common[:N_COMMON_WORDS]))

    def values(self, query_ids: Sequence[str], queries: Queries | None) -> Floats:
        """Return the (queries, features) values; NaN where one is not known."""
        if not self.names:
            return np.zeros((len(query_ids), 0))
        common, of_text = frozenset(self.common_words), self.names[: len(TEXT_FEATURES)] == TEXT_FEATURES
        columns = [name.removeprefix(_COLUMN).partition("=") for name in self.names if name.startswith(_COLUMN)]
        known: Queries = {} if queries is None else queries
        rows = []
        for query_id in query_ids:
            found = known.get(query_id, "")
            row = _text_values(found if isinstance(found, str) else found.get(TEXT, ""), common) if of_text else []
            if columns:
                query = columns_of(queries, query_id)
                row += [
                    _column_value(query.get(name), value if equals else None) for name, equals, value in columns
                ]
            rows.append(row)
        return np.array(rows, np.float64).reshape(len(query_ids), len(self.names))


def _text_values(text: str, common: frozenset[str]) -> list[float]:
    """Return the values of TEXT_FEATURES."""
    words = text.lower().split()
    if not words:
        return [math.nan] * len(TEXT_FEATURES)
    n, n_common = len(words), sum(map(common.__contains__, words))
    n_digits = len([word for word in words if _DIGIT.search(word)]) if _DIGIT.search(text) else 0
    return [float(n), n_digits / n, 1.0 - n_common / n]


def _column_value(found: str | None, value: str | None) -> float:
    """Return the number that a column holds, or whether it holds a value."""
    if found is None:
        return math.nan
    number = _number(found) if value is None else float(found == value)
    return math.nan if number is None else number


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Gate:
    """A linear function of a query's features whose softmax gives its weights."""

    logits: tuple[float, ...]
    """(K) the logarithms of the global weights, none below those of a hundredth."""
    own_mean: tuple[tuple[float, ...], ...]
    own_scale: tuple[tuple[float, ...], ...]
    own: tuple[tuple[float, ...], ...]
    """(K, 5) centres, scales and coefficients of the features of each ranker's list."""
    shared_mean: tuple[float, ...]
    shared_scale: tuple[float, ...]
    shared: tuple[tuple[float, ...], ...]
    """(F), (F) and (K, F): the same of the features of the query and, the last K, of the lists' agreement."""
    features: QueryFeatures
    ridge: float
    """The penalty that the coefficients were learned under."""

    def weights(self, aligned: Aligned, queries: Queries | None = None) -> tuple[Floats, tuple[Note, ...]]:
        """Return the weights of every query, and how many queries lack features."""
        own, shared = raw_features(aligned, self.features, queries)
        missing = int(np.isnan(shared).any(axis=1).sum())
        x = standardised(own, np.array(self.own_mean), np.array(self.own_scale))
        z = standardised(shared, np.array(self.shared_mean), np.array(self.shared_scale))
        notes: tuple[Note, ...] = ()
        if missing:
            text = (
                f"{missing:,} of {len(aligned.queries):,} queries lack features that the gate reads "
                f"({', '.join(self.features.names)}); the mean of training stands in. Give the queries' texts and "
                f"columns (--queries)."
            )
            notes = (Note("missing-features", missing, text),)
        shape = (len(self.logits), len(self.shared_mean))
        own_part = (x * np.array(self.own)[None]).sum(axis=2)
        shared_part = (z[:, None, :] * np.array(self.shared).reshape(shape)[None]).sum(axis=2)
        return softmax(np.array(self.logits)[None] + own_part + shared_part), notes


def raw_features(aligned: Aligned, features: QueryFeatures, queries: Queries | None) -> tuple[Floats, Floats]:
    """Return the (queries, rankers, 5) features of the lists and the (queries, features) ones of the queries."""
    own = list_features(aligned.scores, aligned.retrieved, aligned.starts)
    ids = list(aligned.queries) if features.names else [""] * len(aligned.queries)
    agreement = own[:, :, LIST_FEATURES.index("agreement")]
    return own, np.concatenate((features.values(ids, queries), agreement), axis=1)


def standardised(values: Floats, mean: Floats, scale: Floats) -> Floats:
    """Return centred and scaled values, cut at 3; 0 where a value is not known."""
    return np.nan_to_num(np.clip((values - mean) / scale, -FARTHEST, FARTHEST), nan=0.0)


def softmax(logits: Floats) -> Floats:
    """Return each row's weights."""
    shares = exponentials(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


_Row = tuple[Finite, ...]
_Scale = Annotated[float, Meta(gt=0.0, le=1e300, description="a positive finite number")]


class _GateFile(Strict, frozen=True):
    logits: _Row
    own_mean: tuple[_Row, ...]
    own_scale: tuple[tuple[_Scale, ...], ...]
    own: tuple[_Row, ...]
    shared_mean: _Row
    shared_scale: tuple[_Scale, ...]
    shared: tuple[_Row, ...]
    features: tuple[str, ...]
    common_words: tuple[str, ...]
    ridge: Finite


def gate_to_json(gate: Gate) -> dict[str, Any]:
    """Return the gate as a JSON object."""
    document = asdict(gate)
    known = document.pop("features")
    return {**document, "features": list(known["names"]), "common_words": list(known["common_words"])}


def gate_from_json(document: object, n_rankers: int, place: str) -> Gate:
    """Read a gate back from its JSON object."""
    row = convert(document, _GateFile, place, "gate")
    n = len(row.features) + n_rankers
    sizes = [len(row.logits), len(row.shared), *map(len, (row.own_mean, row.own_scale, row.own))]
    wide = [len(LIST_FEATURES) == len(one) for rows in (row.own_mean, row.own_scale, row.own) for one in rows]
    flat = [len(row.shared_mean), len(row.shared_scale), *map(len, row.shared)]
    if any(size != n_rankers for size in sizes) or not all(wide) or any(size != n for size in flat):
        raise ModelError(
            f"{place}: gate: expected rows for {n_rankers} rankers, of {len(LIST_FEATURES)} features of lists and "
            f"{n} of queries; found others. {EDITED}"
        )
    return Gate(
        row.logits, row.own_mean, row.own_scale, row.own, row.shared_mean, row.shared_scale, row.shared,
        QueryFeatures(row.features, row.common_words), row.ridge,
    )  # fmt: skip
