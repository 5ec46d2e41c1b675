"""The estimator against scikit-learn's own checks, and inside its pipelines and searches."""

import builtins
import importlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import genm
from genm.errors import GenmWarning, InputError, MissingExtraError
from genm.evaluate import evaluate_run
from genm.export import export_model
from genm.model import fuse_with_model
from genm.read import qrels_from_dict, run_from_dict

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from genm.interop.sklearn import FusionRegressor  # noqa: E402

Data = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@pytest.mark.filterwarnings("ignore:fit. no qid was given")
@parametrize_with_checks([FusionRegressor()])  # none is expected to fail
def test_what_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def table(n_queries: int = 12, n_docs: int = 15, seed: int = 3) -> Data:
    """One column that knows, one that knows a little, one of noise; the queries' rows are mixed up."""
    draw = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), n_docs)
    y = draw.integers(0, 3, len(qid)) * (draw.random(len(qid)) < 0.3)
    X = np.column_stack([y + draw.normal(0, 1, len(y)), y + draw.normal(0, 3, len(y)), draw.normal(0, 1, len(y))])
    order = draw.permutation(len(qid))
    return X[order], y[order], qid[order]


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_the_weights_are_those_of_the_library() -> None:
    X, y, qid = table()
    learned = FusionRegressor(normalize="minmax").fit(X, y, qid=qid)
    runs, judged = as_runs(X, y, qid)
    # rows and documents settle their ties differently, which scores without ties never show
    assert learned.weights_ == pytest.approx(genm.fit(genm.align_runs(runs, judged)).weights_)
    assert learned.weights_[0] > max(learned.weights_[1:])
    assert learned.coef_ == pytest.approx(learned.weights_)


def as_runs(X: Any, y: Any, qid: Any) -> tuple[dict[str, genm.Run], genm.Qrels]:
    rows = list(enumerate(qid.tolist()))
    runs = {
        f"x{k}": run_from_dict({str(q): {f"d{i}": X[i, k] for i, own in rows if own == q} for _, q in rows})
        for k in range(X.shape[1])
    }
    return runs, qrels_from_dict({str(q): {f"d{i}": int(y[i]) for i, own in rows if own == q} for _, q in rows})


def test_the_score_is_the_measure_and_predictions_are_the_fused_scores() -> None:
    X, y, qid = table()
    learned = FusionRegressor(normalize="minmax", measure="nDCG@10").fit(X, y, qid=qid)
    runs, judged = as_runs(X, y, qid)
    fused = fuse_with_model(learned.to_model(), runs)
    assert learned.score(X, y, qid=qid) == pytest.approx(evaluate_run(fused, judged, "nDCG@10").mean("nDCG@10"))
    theirs = {
        (query, fused.docs[int(fused.doc[row])]): fused.score[row]
        for q, query in enumerate(fused.queries)
        for row in range(fused.starts[q], fused.starts[q + 1])
    }
    ours = learned.predict(X, qid=qid)
    assert ours == pytest.approx(np.array([theirs[str(q), f"d{i}"] for i, q in enumerate(qid.tolist())]))


def test_without_normalising_a_row_needs_no_query() -> None:
    X, y, qid = table()
    learned = FusionRegressor().fit(X, y, qid=qid)
    assert learned.predict(X) == pytest.approx(X @ learned.weights_)
    assert learned.predict(X, qid=qid) == pytest.approx(learned.predict(X))


def test_lists_need_their_queries() -> None:
    X, y, qid = table()
    learned = FusionRegressor(normalize="zscore").fit(X, y, qid=qid)
    with pytest.raises(InputError, match=r"predict: expected qid.*learned on 12 queries"):
        learned.predict(X)
    with pytest.raises(InputError, match=r"set_score_request\(qid=True\)"):
        learned.score(X, y)
    with pytest.raises(
        InputError, match=r"qid: expected one query id for each of the 180 rows; found shape \(3,\)"
    ):
        learned.predict(X, qid=[1, 2, 3])
    with pytest.raises(InputError, match=r"found none in row 0"):
        learned.predict(X, qid=[None] * len(X))


def test_a_missing_score_is_a_document_that_was_not_returned() -> None:
    X = np.array([[3.0, np.nan], [1.0, 2.0], [np.nan, 4.0]])
    learned = FusionRegressor(normalize="minmax").fit(X, [1, 0, 1], qid=[0, 0, 0])
    assert learned.predict(X) == pytest.approx(
        np.array([1.0 * learned.weights_[0], 0.0, 1.0 * learned.weights_[1]])
    )


@pytest.mark.usefixtures("routing")
def test_a_grid_search_with_group_folds() -> None:
    X, y, qid = table()
    estimator = FusionRegressor().set_fit_request(qid=True).set_score_request(qid=True)
    search = GridSearchCV(estimator, {"normalize": ["none", "minmax"]}, cv=GroupKFold(2))
    search.fit(X, y, groups=qid, qid=qid)
    assert 0.0 < search.best_score_ <= 1.0
    scores = cross_val_score(
        clone(estimator).set_params(**search.best_params_),
        X,
        y,
        cv=GroupKFold(2),
        params={"qid": qid, "groups": qid},
    )
    assert scores.mean() == pytest.approx(search.best_score_)


@pytest.mark.usefixtures("routing")
def test_a_pipeline() -> None:
    X, y, qid = table()
    pipe = make_pipeline(StandardScaler(), FusionRegressor().set_fit_request(qid=True).set_score_request(qid=True))
    pipe.fit(X, y, qid=qid)
    assert pipe.score(X, y, qid=qid) > pipe[-1].score(np.zeros_like(X), y, qid=qid)
    assert pipe.predict(X).shape == y.shape
    with pytest.raises(InputError, match="sample_weight: expected None"):
        pipe[-1].score(X, y, np.ones(len(y)), qid=qid)


def test_frames_name_the_rankers() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, qid = table()
    frame = pandas.DataFrame(X, columns=["bm25", "dense", "title"])
    learned = FusionRegressor(normalize="reciprocal").fit(frame, y, qid=qid)
    assert learned.to_model().rankers == ("bm25", "dense", "title")
    assert '"weights"' in export_model(learned.to_model(), "opensearch-rrf", settings={"window": "100"}).text


@pytest.mark.parametrize("method", ["auto", "bat", "enm", "exact", "ip", "on", "uns"])
@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")
def test_every_method_can_be_named(method: str) -> None:
    X, y, qid = table(n_queries=6, n_docs=10)
    learned = FusionRegressor(method=method, normalize="minmax", level=2).fit(X, y, qid=qid)
    assert learned.weights_.sum() == pytest.approx(1.0)


def test_options_are_the_methods_own() -> None:
    X, y, qid = table(n_queries=6, n_docs=10)
    assert FusionRegressor(options={"beta": 7.0}).fit(X, y, qid=qid).to_model().beta == 7.0
    with pytest.raises(InputError, match="takes no bets"):
        FusionRegressor(options={"bets": 7.0}).fit(X, y, qid=qid)


def test_the_state_of_chance_may_be_drawn() -> None:
    X, y, qid = table(n_queries=6, n_docs=10)
    assert FusionRegressor(random_state=None).fit(X, y, qid=qid).n_queries_ == 6


def test_fractions_count_by_the_level_or_not_at_all() -> None:
    X, y, qid = table()
    half = FusionRegressor().fit(X, y - 0.5 * (y == 1), qid=qid)  # 0.5 does not reach 1
    assert half.weights_ == pytest.approx(FusionRegressor().fit(X, np.where(y == 1, 0, y), qid=qid).weights_)
    with pytest.raises(InputError, match="expected whole grades for nDCG@10; found fractions"):
        FusionRegressor(measure="nDCG@10").fit(X, y + 0.5, qid=qid)


def test_rows_sorted_by_label_gain_nothing() -> None:
    y = np.repeat([1, 0], 50)
    constant = np.ones((100, 1))
    assert FusionRegressor().fit(constant, y, qid=np.zeros(len(y))).score(constant, y) < 0.75  # and not 1


def test_a_measure_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    X, y, qid = table()
    learned = FusionRegressor(measure=ir_measures.nDCG @ 10).fit(X, y, qid=qid)
    assert learned.to_model().measure == "nDCG@10"


def test_the_library_is_asked_for_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "sklearn.base":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "genm.interop.sklearn")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'genm\[sklearn\]'"):
        importlib.import_module("genm.interop.sklearn")


def test_rows_without_queries_are_one_query_and_a_warning_says_so() -> None:
    X, y, _ = table()
    with pytest.warns(GenmWarning, match=r"no qid was given, so all 180 rows are taken as one query. Pass qid="):
        learned = FusionRegressor().fit(X, y)
    assert learned.n_queries_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FusionRegressor().fit(X, y, qid=np.zeros(len(X)))
