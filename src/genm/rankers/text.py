"""From texts to counts of terms: which strings are words, which words are kept, how often each occurs.

A `TextProfile` names every step, so that a result can say how its words were made. Two profiles have names:
`paper` gives the 5,775 MED terms of the paper's Table 2, `default` is what the package's own figures use.

The stop words of `default` are the project's own: English function words, listed by part of speech and never
because of what a collection holds. Contractions are given as the pieces that splitting at the apostrophe leaves.
The SMART list that the paper used belongs to its collections and is read from their folder.
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

_ARTICLES_AND_DETERMINERS = """
a an the this that these those such same other others another each every either neither both all any some no
none several few fewer fewest many much more most less least enough own certain various else
"""
_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves one ones oneself who whom whose which what whoever
whatever whichever somebody someone something anybody anyone anything everybody everyone everything nobody
nothing
"""
_PREPOSITIONS = """
about above across after against along alongside amid among amongst around as at before behind below beneath
beside besides between beyond by despite down during except for from in inside into like near of off on onto out
outside over past per regarding since through throughout till to toward towards under underneath until unto up
upon versus via with within without concerning according
"""
_CONJUNCTIONS = """
and but or nor so yet if unless whether because although though while whilst whereas than then when whenever
where wherever how however why lest once
"""
_AUXILIARIES = """
am is are was were be been being do does did doing done have has had having will would shall should can could
cannot may might must ought need needs
"""
_CONTRACTION_PIECES = """
don doesn didn isn aren wasn weren hasn haven hadn won wouldn shan shouldn couldn mustn mightn needn ll ve re
"""
_ADVERBS = """
again almost already also always anyhow anyway anywhere apart away back else elsewhere especially even ever
everywhere far further furthermore hence here hereby herein indeed instead just largely later latter former
likewise mainly maybe meanwhile merely moreover mostly namely nearly never nevertheless next not now nowhere
often only otherwise perhaps possibly probably quite rather really seldom sometimes somewhat somewhere soon
still thereby therefore therein thereof thereafter there thus together too usually very well whence whereby
wherein particularly respectively relatively specifically actually certainly clearly consequently currently
hardly little long ago aside forth hereafter
"""
_COMMON_VERBS = """
appear appears became become becomes becoming came come comes coming contain containing contains follow followed
following follows gave get gets getting give given gives giving go goes going gone got hold keep keeps kept knew
know known knows let lets look looking looks made make makes making mean means obtain obtained put said saw say
saying says see seeing seem seemed seeming seems seen show showed shown shows take taken takes taking tell tells
tend tends took use used useful uses using want wants went
"""
_NUMBERS_AND_ORDER = """
zero two three four five six seven eight nine ten first second third secondly thirdly firstly last
"""
_ABBREVIATIONS = """
eg ie et al etc viz vs cf ibid
"""

ENGLISH: frozenset[str] = frozenset(
    "".join(
        (
            _ARTICLES_AND_DETERMINERS,
            _PRONOUNS,
            _PREPOSITIONS,
            _CONJUNCTIONS,
            _AUXILIARIES,
            _CONTRACTION_PIECES,
            _ADVERBS,
            _COMMON_VERBS,
            _NUMBERS_AND_ORDER,
            _ABBREVIATIONS,
        )
    ).split()
)
"""Words that the profile `default` leaves out."""

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
