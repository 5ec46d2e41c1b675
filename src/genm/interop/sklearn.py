"""A scikit-learn estimator: columns of X are rankers' scores, y is relevance, qid tells the queries apart."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genm.errors import InputError, MissingExtraError
from genm.evaluate import Measure, MeasureLike, evaluate_aligned, parse_measure
from genm.fuse import fuse_scores
from genm.interop.tables import Table
from genm.learn.auto import make_fuser
from genm.learn.scorer import with_level
from genm.model import Model
from genm.normalizers import Normalize
from genm.records import Normalizer

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("genm.interop.sklearn", "sklearn") from None

Array = NDArray[np.float64]

_BY_ROW = ("none", "affine", "atan", "sigmoid")
"""Normalisers that look at a score alone, not at its list."""
_DRAWING = ("auto", "bat", "exact", "ip", "uns")
"""Methods that draw something, folds or starting points."""
_HIGHEST_GRADE = 2**31 - 1


class FusionRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn one weight per column such that ranking by the weighted sum maximises a ranking measure.

    `method`, `measure` and `level` mean what they mean to `genm.fit`; `normalize` scales every column within its
    query ("none" takes X as it is); `options` are further parameters of the method. NaN in X says that the ranker
    did not return the document. Without `qid` all rows are one query.

    `score` is the measure's mean over queries, not R2. To send `qid` through pipelines and searches switch on
    scikit-learn's metadata routing and ask for it with `set_fit_request(qid=True)` and `set_score_request`.
    """

    weights_: Array
    """A distribution over the columns."""
    coef_: Array
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
        table = Table(scores, qid)
        aligned = table.aligned(self._rankers(), self.normalize, self._grades(labels))
        self.fuser_ = make_fuser(self.method, measure=self.measure, **self._options()).fit(aligned)
        self.weights_ = self.coef_ = self.fuser_.weights_.copy()
        self.n_queries_ = table.n_queries
        return self

    def predict(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> Array:
        """Return the weighted sum of every row; higher is better."""
        check_is_fitted(self)
        scores: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if qid is None and not all(map(_by_row, self.fuser_.normalizers_)):
            self._check_one_query("predict")
        table = Table(scores, qid)
        return table.as_given(fuse_scores(table.aligned(self._rankers(), self.fuser_.normalizers_), self.weights_))

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: None = None, *, qid: ArrayLike | None = None
    ) -> float:
        """Return the measure's mean over the queries; rows have no weights of their own."""
        check_is_fitted(self)
        if sample_weight is not None:  # a pipeline always passes the word on
            raise InputError("sample_weight: expected None, since a measure ranks rows and does not weigh them.")
        scores, labels = self._checked(X, y, reset=False)
        if qid is None:
            self._check_one_query("score")
        aligned = Table(scores, qid).aligned(self._rankers(), self.fuser_.normalizers_, self._grades(labels))
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

    def _checked(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Array, Array]:
        checked: tuple[Array, Array] = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=True, reset=reset
        )
        return checked

    def _wanted(self) -> Measure:
        return with_level(parse_measure(self.measure), self.level)

    def _options(self) -> dict[str, Any]:
        """Return the method's own parameters: the estimator's, where it has them, and `options` over them."""
        state, chosen = self.random_state, dict[str, Any]()
        if self.method in _DRAWING:
            drawn = check_random_state(state).randint(_HIGHEST_GRADE)
            chosen["seed"] = int(state if isinstance(state, Integral) else drawn)
        if self.method != "uns":  # it reads no grades
            chosen["level"] = self.level
        return {**chosen, **(self.options or {})}

    def _rankers(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _grades(self, y: Array) -> NDArray[np.int32]:
        """Return whole grades; of fractions only whether they reach the level can be used."""
        wanted = self._wanted()
        if np.array_equal(y, np.rint(y)) and np.abs(y).max(initial=0) <= _HIGHEST_GRADE:
            return np.asarray(y).astype(np.int32)
        if wanted.name == "nDCG":
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
