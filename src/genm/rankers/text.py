"""From texts to counts of terms: which strings are words, which words are kept, how often each occurs.

A `TextProfile` names every step, so that a result can say how its words were made. Two profiles have names:
`paper` gives the 5,775 MED terms of the paper's Table 2, `default` is what the package's own figures use.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from genm.errors import InputError, MissingExtraError
from genm.rankers.stopwords import ENGLISH

Characters = Literal["letters", "alphanumeric"]

_TOKEN = {"letters": re.compile(r"[^\W\d_]+"), "alphanumeric": re.compile(r"[^\W_]+")}


@dataclass(frozen=True, slots=True)
class TextProfile:
    """How texts become terms: lower-cased runs of `characters`, everything else separates words."""

    name: str
    characters: Characters = "alphanumeric"
    """letters: digits separate words too; alphanumeric: letters and digits."""
    min_length: int = 1
    """Shorter words are dropped."""
    stopwords: frozenset[str] = frozenset()
    """Dropped before stemming; entries are lower case."""
    stem: str | None = None
    """A Snowball language such as "english"; None keeps the words as they are."""
    min_docs: int = 1
    """Terms that fewer documents hold are dropped."""
    min_count: int = 1
    """Terms that occur fewer times in the collection are dropped."""


DEFAULT = TextProfile("default", min_length=2, stopwords=ENGLISH, min_count=2)
"""Letters and digits, length > 1, our own stop words out, words that occur only once out."""


def paper_profile(smart_stopwords: Iterable[str]) -> TextProfile:
    """Return the profile of the paper: letters only, the SMART stop list, words in at least two documents."""
    stop = frozenset(smart_stopwords)
    if not stop:
        raise InputError(
            "text profile 'paper': expected the SMART stop list (571 lines); found an empty list. "
            "Read smart_stopwords.txt from the folder of the SMART collections."
        )
    return TextProfile("paper", characters="letters", stopwords=stop, min_docs=2)


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts beside their term counts: one row of `counts` per text, one column per term of `vocabulary`."""

    raw: tuple[str, ...]
    vocabulary: tuple[str, ...]
    counts: csr_array
    profile: TextProfile


def read_documents(texts: Sequence[str], profile: TextProfile = DEFAULT) -> Texts:
    """Count the terms of a collection's documents; the vocabulary is what the profile keeps, in byte order."""
    _check(profile)
    code, row, column = _coded(texts, profile)
    words = list(code)
    found = csr_array((np.ones(len(row)), (row, column)), shape=(len(texts), len(words)))
    found.sum_duplicates()
    total = np.bincount(column, minlength=len(words))
    in_docs = np.bincount(found.indices, minlength=len(words))
    kept = np.flatnonzero((total >= profile.min_count) & (in_docs >= profile.min_docs)).tolist()
    kept.sort(key=words.__getitem__)
    counts = csr_array(found[:, kept]) if kept else csr_array((len(texts), 0))
    counts.sort_indices()
    return Texts(tuple(texts), tuple(words[k] for k in kept), counts, profile)


def read_queries(texts: Sequence[str], documents: Texts) -> Texts:
    """Count the terms of queries in the documents' vocabulary; words outside it are dropped."""
    code, row, column = _coded(texts, documents.profile)
    position = {w: k for k, w in enumerate(documents.vocabulary)}
    target = np.fromiter((position.get(w, -1) for w in code), np.int64, len(code))
    column = target[column]
    known = column >= 0
    shape = (len(texts), len(position))
    counts = csr_array((np.ones(int(known.sum())), (row[known], column[known])), shape=shape)
    counts.sum_duplicates()
    counts.sort_indices()
    return Texts(tuple(texts), documents.vocabulary, counts, documents.profile)


def _check(profile: TextProfile) -> None:
    if profile.characters not in _TOKEN:
        raise InputError(
            f"text profile '{profile.name}': expected characters 'letters' or 'alphanumeric'; "
            f"found {profile.characters!r}."
        )
    for name in ("min_length", "min_docs", "min_count"):
        if getattr(profile, name) < 1:
            raise InputError(
                f"text profile '{profile.name}': expected {name} of at least 1; found {getattr(profile, name)}."
            )


def _stemmed(words: list[str], language: str) -> list[str]:
    try:
        import Stemmer
    except ImportError as missing:
        raise MissingExtraError(f"stemming ({language})", "rankers") from missing
    try:
        stemmer = Stemmer.Stemmer(language)
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise InputError(f"stemming: expected a Snowball language ({known}); found {language!r}.") from None
    stems: list[str] = stemmer.stemWords(words)
    return stems


def _coded(
    texts: Sequence[str], profile: TextProfile
) -> tuple[dict[str, int], NDArray[np.int64], NDArray[np.int64]]:
    """Return the different terms with their codes, and for every occurrence its text and its code.

    Words are coded before they are judged: stop words and stems are looked up once per different word.
    """
    pattern = _TOKEN[profile.characters]
    found = [pattern.findall(t.lower()) for t in texts]
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(w, len(seen)) for w in chain.from_iterable(found)), np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(f) for f in found])
    words = list(seen)
    shortest, stop = profile.min_length, profile.stopwords
    good = [len(w) >= shortest and w not in stop for w in words]
    terms = _stemmed(words, profile.stem) if profile.stem else words
    table: dict[str, int] = {}
    target = np.fromiter(
        (table.setdefault(t, len(table)) if g else -1 for t, g in zip(terms, good, strict=True)), np.int64
    )
    column = target[codes] if words else codes
    kept = column >= 0
    return table, rows[kept], column[kept]
