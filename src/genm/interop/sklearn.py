"""A scikit-learn estimator: the columns of X are rankers' scores, y is relevance, qid is each row's query.

A table of scores has a row per document and a column per ranker.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genm._math.scaling import scale_lists
from genm._typing import Floats
from genm.align import UNJUDGED, Aligned
from genm.align.aligned import offsets
from genm.errors import InputError, MissingExtraError
from genm.evaluate import Measure, MeasureLike, evaluate_aligned, parse_measure
from genm.fuse import fuse_scores
from genm.ids import Ids, encode
from genm.learn import find_method, make_fuser
from genm.learn.objectives import with_level
from genm.model import Model
from genm.normalizers import Normalize, Normalizer, kernel_rules, normalizers_of

T = TypeVar("T", bound=np.generic)

_BY_ROW = ("none", "affine", "atan", "sigmoid")
"""Normalisers that depend on a score alone, not on its list."""
_HIGHEST_GRADE = 2**31 - 1


class ScoreTable:
    """Rows of scores in the order of aligned runs, with the mapping back.

    NaN means that the ranker did not return the document. Rows have no ids to break ties: the order of equal
    scores is drawn at random once, so that rows sorted by their labels have no advantage.
    """

    def __init__(self, scores: Floats, qid: ArrayLike | None) -> None:
        n_rows = len(scores)
        self._scores = scores
        self._queries, query = _query_codes(qid, n_rows)
        drawn = np.random.default_rng(0).permutation(n_rows)
        self._order = drawn[np.argsort(query[drawn], kind="stable")]
        self._starts = offsets(np.bincount(query, minlength=len(self._queries)))

    @property
    def n_queries(self) -> int:
        """How many different queries the rows belong to."""
        return len(self._queries)

    def aligned(
        self, rankers: Sequence[str], normalize: Normalize, relevance: NDArray[np.int32] | None = None
    ) -> Aligned:
        """Return the rows as aligned runs; `relevance` holds a grade for each row, in the order of the table."""
        names = tuple(rankers)
        normalizers = normalizers_of(normalize, names)
        raw = np.ascontiguousarray(self._scores[self._order])
        retrieved = ~np.isnan(raw)
        raw[~retrieved] = 0.0
        n_rows, n_queries = len(raw), self.n_queries
        grades = np.full(n_rows, UNJUDGED) if relevance is None else relevance[self._order]
        return Aligned(
            rankers=names,
            queries=self._queries,
            docs=Ids.of(f"{n_rows - row:012d}" for row in range(n_rows)),  # descending, as in aligned runs
            starts=self._starts,
            doc=np.arange(n_rows, dtype=np.int32),
            raw=raw,
            retrieved=retrieved,
            scores=scale_lists(raw, retrieved, self._starts, kernel_rules(normalizers)),
            normalizers=normalizers,
            depths=(None,) * len(names),
            labelled=relevance is not None,
            relevance=grades.astype(np.int32),
            unretrieved_starts=np.zeros(n_queries + 1, np.int64),
            unretrieved=np.zeros(0, np.int32),
            query_weights=np.ones(n_queries),
        )

    def as_given(self, rows: NDArray[T]) -> NDArray[T]:
        """Return a value per aligned row in the order of the table's rows."""
        back = np.empty_like(rows)
        back[self._order] = rows
        return back


def _query_codes(qid: ArrayLike | None, n_rows: int) -> tuple[Ids, NDArray[np.int32]]:
    if qid is None:
        return Ids.of(["all"]), np.zeros(n_rows, np.int32)
    given = np.asarray(qid)
    if given.shape != (n_rows,):
        raise InputError(f"qid: expected one query id for each of the {n_rows} rows; found shape {given.shape}.")
    absent = [i for i, value in enumerate(given.tolist()) if value is None or value != value]
    if absent:
        raise InputError(f"qid: expected a query id for every row; found none in row {absent[0]} (from 0).")
    return encode(map(str, given.tolist()))


try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("genm.interop.sklearn", "sklearn") from None


class FusionRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn one weight per column such that ranking by the weighted sum maximises a ranking measure.

    `method`, `measure` and `level` are those of `genm.fit`; `normalize` scales each column within each query
    ("none" uses X as it is); `options` are other parameters of the method. NaN in X means that the ranker did not
    return the document. Without `qid`, all rows are one query.

    `score` is the mean of the measure over queries, not R2. To pass `qid` through pipelines and searches, enable
    scikit-learn's metadata routing and request it with `set_fit_request(qid=True)` and `set_score_request`.
    """

    weights_: Floats
    """A distribution over the columns."""
    coef_: Floats
    """The same under scikit-learn's name."""
    n_features_in_: int
    n_queries_: int

    def __init__(
        self,
        *,
        method: str = "auto",
        measure: MeasureLike = "AP",
        level: int = 1,
        normalize: Normalize = "none",
        random_state: int | None = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.method, self.measure, self.level = method, measure, level
        self.normalize, self.random_state, self.options = normalize, random_state, options

    def fit(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None) -> Self:
        """Learn the weights of the columns; y holds relevance grades, `qid` each row's query."""
        scores, labels = self._checked(X, y, reset=True)
        table = ScoreTable(scores, qid)
        aligned = table.aligned(self._rankers(), self.normalize, self._grades(labels))
        self.fuser_ = make_fuser(self.method, measure=self.measure, **self._options()).fit(aligned)
        self.weights_ = self.coef_ = self.fuser_.weights_.copy()
        self.n_queries_ = table.n_queries
        return self

    def predict(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> Floats:
        """Return the weighted sum of every row; higher is better."""
        check_is_fitted(self)
        scores: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if qid is None and not all(map(_by_row, self.fuser_.normalizers_)):
            self._check_one_query("predict")
        table = ScoreTable(scores, qid)
        return table.as_given(fuse_scores(table.aligned(self._rankers(), self.fuser_.normalizers_), self.weights_))

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: None = None, *, qid: ArrayLike | None = None
    ) -> float:
        """Return the mean of the measure over the queries; rows cannot have weights."""
        check_is_fitted(self)
        if sample_weight is not None:  # pipelines always pass it
            raise InputError("sample_weight: expected None, since a measure ranks rows and does not weigh them.")
        scores, labels = self._checked(X, y, reset=False)
        if qid is None:
            self._check_one_query("score")
        aligned = ScoreTable(scores, qid).aligned(self._rankers(), self.fuser_.normalizers_, self._grades(labels))
        return float(evaluate_aligned(aligned, self.weights_, [self._wanted()]).means[0])

    def to_model(self) -> Model:
        """Return the weights as a model, to save, to fuse runs by and to export to an engine."""
        check_is_fitted(self)
        return self.fuser_.to_model()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.regressor_tags.poor_score = True  # a ranking measure, not R2
        return tags

    def _checked(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Floats, Floats]:
        checked: tuple[Floats, Floats] = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=True, reset=reset
        )
        return checked

    def _wanted(self) -> Measure:
        return with_level(parse_measure(self.measure), self.level)

    def _options(self) -> dict[str, Any]:
        """Return the parameters of the method: those of the estimator that it accepts, overridden by `options`."""
        state, chosen, known = self.random_state, dict[str, Any](), find_method(self.method).parameters
        if "seed" in known:  # it draws folds or starting points
            drawn = check_random_state(state).randint(_HIGHEST_GRADE)
            chosen["seed"] = int(state if isinstance(state, Integral) else drawn)
        if "level" in known:
            chosen["level"] = self.level
        return {**chosen, **(self.options or {})}

    def _rankers(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _grades(self, y: Floats) -> NDArray[np.int32]:
        """Return integer grades; fractions only count as relevant or not, by the level."""
        wanted = self._wanted()
        if np.array_equal(y, np.rint(y)) and np.abs(y).max(initial=0) <= _HIGHEST_GRADE:
            return np.asarray(y).astype(np.int32)
        if wanted.is_graded:
            raise InputError(f"y: expected whole grades for {wanted}; found fractions. Round them, or use AP.")
        return np.where(y >= wanted.rel, wanted.rel, 0).astype(np.int32)

    def _check_one_query(self, verb: str) -> None:
        if self.n_queries_ > 1:
            raise InputError(
                f"{verb}: expected qid, since the weights were learned on {self.n_queries_} queries. Pass qid=, or "
                f"ask for it with set_{verb}_request(qid=True) under scikit-learn's metadata routing."
            )


def _by_row(normalizer: Normalizer) -> bool:
    return normalizer.kind in _BY_ROW and normalizer.missing != "minimum"
