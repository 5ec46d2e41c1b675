"""BM25 by the library bm25s: the lexical ranker of today's search engines."""

import sys
from importlib import import_module
from types import ModuleType
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

from genm._typing import Floats
from genm.cache import Arrays
from genm.errors import InputError, MissingExtraError
from genm.progress import Progress
from genm.rankers.base import Ranker, check_choice
from genm.rankers.text import Texts

Method = Literal["lucene", "robertson", "atire"]

_METHODS = ("lucene", "robertson", "atire")
"""bm25s also has bm25l and bm25+, which give a score to documents without the word: not an inner product."""


class Bm25Ranker(Ranker):
    """BM25; a query word counts as often as the query says it."""

    name: ClassVar[str] = "bm25"

    def __init__(self, *, k1: float = 1.2, b: float = 0.75, method: Method = "lucene") -> None:
        self.k1, self.b, self.method = k1, b, method

    def _check(self) -> None:
        check_choice(self.name, "method", self.method, _METHODS)
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise InputError(f"bm25: expected k1 >= 0 and b from 0 to 1; found k1={self.k1}, b={self.b}.")

    def _worth_keeping(self) -> bool:
        return False

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        bm25s = _import_bm25s()
        counts = documents.counts
        if counts.nnz == 0:
            progress(self.name, 1, 1)
            return {
                "data": np.zeros(0),
                "indices": np.zeros(0, np.int64),
                "indptr": np.zeros(1 + counts.shape[1], np.int64),
            }
        occurrences = np.repeat(counts.indices, counts.data.astype(np.int64))
        ends = np.cumsum(np.asarray(counts.sum(axis=1)).ravel()).astype(np.int64)
        tokens = [t.tolist() for t in np.split(occurrences, ends[:-1])]
        index = bm25s.BM25(k1=self.k1, b=self.b, method=self.method, dtype="float64")
        vocabulary = {w: i for i, w in enumerate(documents.vocabulary)}
        index.index((tokens, vocabulary), create_empty_token=False, show_progress=False)
        progress(self.name, 1, 1)
        return {part: index.scores[part] for part in ("data", "indices", "indptr")}

    def _score(self, queries: Texts) -> Floats:
        learned, shape = self.learned_, self.documents_.counts.shape
        # bm25s keeps the score of every (word, document) pair, word by word: rows of words, columns of documents
        by_word = csr_array((learned["data"], learned["indices"], learned["indptr"]), shape=shape[::-1])
        scores: Floats = np.asarray((queries.counts @ by_word).toarray(), np.float64)
        return scores


def _import_bm25s() -> ModuleType:
    """Import bm25s with JAX hidden from it.

    Where JAX is installed, importing bm25s starts JAX on its accelerator: seconds of work and most of the GPU's
    memory for a selection of the top documents that is not used here, or an error where the accelerator is taken.
    """
    name, absent = "jax.lax", object()
    kept = sys.modules.get(name, absent)
    sys.modules[name] = None  # type: ignore[assignment]  # None makes `import jax.lax` raise an ImportError
    try:
        return import_module("bm25s")
    except ImportError as missing:
        raise MissingExtraError("bm25", "rankers") from missing
    finally:
        if kept is absent:
            del sys.modules[name]
        else:
            sys.modules[name] = kept  # type: ignore[assignment]
