"""What every ranker is: options stored as given, `fit` on documents, `score` queries against them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from scipy.sparse import csr_array

from genm._math.linear_algebra import row_products
from genm._math.parallel import n_threads
from genm._typing import Floats
from genm.cache import Arrays, cached, content_key
from genm.errors import InputError, NotFittedError
from genm.progress import Progress, silent
from genm.rankers.text import Texts

A = TypeVar("A")
T = TypeVar("T")


class Ranker(ABC):
    """Scores queries against the documents it was fitted on.

    `fit` twice equals `fit` once. What was learned is a set of arrays, `learned_`, so that it can be kept on disk;
    everything else follows from the documents and the options.
    """

    name: ClassVar[str]
    reads: ClassVar[Literal["terms", "text"]] = "terms"
    """terms: only the counts decide; text: the texts themselves do."""
    revision: ClassVar[int] = 1
    """Raised when the same options come to mean other arrays, so that old cache entries are not used."""

    learned_: Arrays
    documents_: Texts

    def fit(self, documents: Texts, *, progress: Progress = silent, cache: bool = False) -> Self:
        """Learn from the documents; with `cache`, look up on disk first what the same texts taught before."""
        self._check()
        with one_blas_thread():
            return self._fit(documents, progress, cache=cache)

    def _fit(self, documents: Texts, progress: Progress, *, cache: bool) -> Self:
        if cache and self._worth_keeping():
            self.learned_ = cached("rankers", self.key(documents), lambda: self._learn(documents, progress))
        else:
            self.learned_ = self._learn(documents, progress)
        self.documents_ = documents
        return self

    def score(self, queries: Texts) -> Floats:
        """Return one row per query with a score for every document; empty queries and documents score 0."""
        if not hasattr(self, "learned_"):
            raise NotFittedError(f"{self.name}: expected a fitted ranker; found one before `fit`. Call fit first.")
        if self.reads == "terms" and queries.vocabulary != self.documents_.vocabulary:
            raise InputError(
                f"{self.name}: expected queries counted in the documents' vocabulary; found another one. "
                "Make them with read_queries(texts, documents)."
            )
        with one_blas_thread():
            return self._score(queries)

    def options(self) -> dict[str, Any]:
        """Return the options as given."""
        return {k: v for k, v in vars(self).items() if not k.endswith("_")}

    def key(self, documents: Texts) -> tuple[object, ...]:
        """Return what decides `learned_`: the ranker, its options and the documents' content."""
        return (self.name, self.revision, self.options(), content(documents, self.reads))

    def _worth_keeping(self) -> bool:
        return True

    @abstractmethod
    def _check(self) -> None:
        """Raise InputError for options that cannot be used."""

    @abstractmethod
    def _learn(self, documents: Texts, progress: Progress) -> Arrays: ...

    @abstractmethod
    def _score(self, queries: Texts) -> Floats: ...


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold the linear algebra library to one thread.

    Models are what runs side by side here. On a machine with other work to do its threads wait for each
    other at full speed (an SVD of MED took 13 s of processor time with two, half a second with one), and sums
    would depend on their number.
    """
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError:  # it comes with scikit-learn; without it the results are as good, only slower
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, user_api="blas")
    return limits


def content(texts: Texts, reads: Literal["terms", "text"]) -> str:
    """Return a hash of what a ranker reads of the texts."""
    if reads == "text":
        return content_key(texts.raw)
    c = texts.counts
    return content_key(texts.vocabulary, c.indptr.astype(np.int64), c.indices.astype(np.int64), c.data)


def cosines(queries: Floats, documents: Floats) -> Floats:
    """Return the cosine of every query row with every document row; a row of zeros gives 0."""
    return row_products(unit_rows(queries), unit_rows(documents))


def unit_rows(rows: Floats) -> Floats:
    """Return the rows scaled to length 1; rows of zeros stay."""
    return rows * inverse(np.sqrt((rows * rows).sum(axis=1)))[:, None]


def unit_rows_sparse(rows: csr_array) -> csr_array:
    """Return the sparse rows scaled to length 1; empty rows stay."""
    return scale_rows(rows, inverse(np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())))


def scale_rows(rows: csr_array, factors: Floats) -> csr_array:
    """Return the sparse rows, each multiplied by its factor."""
    scaled = rows.copy()
    scaled.data = scaled.data * np.repeat(factors, np.diff(rows.indptr))
    return scaled


def scale_columns(rows: csr_array, factors: Floats) -> csr_array:
    """Return the sparse rows with every column multiplied by its factor."""
    scaled = rows.copy()
    scaled.data = scaled.data * factors[rows.indices]
    return scaled


def inverse(values: Floats) -> Floats:
    """Return 1 / value, and 0 where the value is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def in_threads(
    work: Callable[[A], T], items: Sequence[A], task: str, progress: Progress, *, cost: Callable[[A], int]
) -> list[T]:
    """Return work(item) for every item, in their order; several run at a time, the most costly first.

    `work` must release the interpreter lock where it counts and share nothing, so that the number of threads
    decides only how long it takes.
    """
    progress(task, 0, len(items))
    costly_first = sorted(range(len(items)), key=lambda i: -cost(items[i]))
    with ThreadPoolExecutor(min(n_threads(), len(items)), thread_name_prefix="genm-rank") as pool:
        futures = {i: pool.submit(work, items[i]) for i in costly_first}
        for done, i in enumerate(costly_first, 1):
            futures[i].result()
            progress(task, done, len(items))
    return [futures[i].result() for i in range(len(items))]


def check_sizes(ranker: str, option: str, values: Iterable[int]) -> None:
    """Raise InputError unless the option holds distinct whole numbers of at least 1."""
    listed = list(values)
    if not listed or len(set(listed)) < len(listed) or any(not isinstance(v, int) or v < 1 for v in listed):
        raise InputError(f"{ranker}: expected distinct whole numbers of at least 1 as {option}; found {listed!r}.")


def check_choice(ranker: str, option: str, value: str, known: Iterable[str]) -> None:
    """Raise InputError unless the value is one of the known ones."""
    listed = sorted(known)
    if value not in listed:
        raise InputError(f"{ranker}: expected {option} to be one of {', '.join(listed)}; found {value!r}.")
