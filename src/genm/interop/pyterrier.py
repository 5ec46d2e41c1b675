"""PyTerrier estimators: the results of several pipelines, or the features of one, fused by learned weights."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from genm.align import Aligned, align_runs
from genm.errors import InputError, MissingExtraError
from genm.evaluate import MeasureLike
from genm.fuse import fuse_runs
from genm.interop.frames import to_pandas
from genm.learn import Fuser, make_fuser
from genm.model import Model
from genm.normalizers import Normalize
from genm.read import qrels_from_frame, run_from_frame
from genm.records import Run

try:
    import pandas as pd
    import pyterrier as pt
except ImportError:
    raise MissingExtraError("genm.interop.pyterrier", "pyterrier") from None

Frame = Any
"""A pandas frame in PyTerrier's columns: qid, docno, score, rank; of judgments qid, docno, label."""


class _LearnedFusion(pt.Estimator, ABC):  # type: ignore[misc]  # an optional library
    """What both estimators share: learning from runs, and the fused run as PyTerrier's frame."""

    def __init__(
        self,
        *,
        method: str = "auto",
        measure: MeasureLike = "AP",
        normalize: Normalize = "minmax",
        depth: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.method, self.measure, self.normalize = method, measure, normalize
        self.depth, self.options = depth, dict(options or {})
        self.fuser_: Fuser | None = None

    def fit(
        self, topics_or_res_tr: Frame, qrels_tr: Frame, topics_or_res_va: Frame = None, qrels_va: Frame = None
    ) -> Self:
        """Learn the weights from topics (or results) and judgments; validation data are not used.

        The method holds out queries itself and needs no validation set.
        """
        del topics_or_res_va, qrels_va
        judged = qrels_from_frame(qrels_tr.rename(columns={"relevance": "label"}))
        fuser = make_fuser(self.method, measure=self.measure, **self.options)
        self.fuser_ = fuser.fit(align_runs(self._runs(topics_or_res_tr), judged, **self._rules()))
        return self

    def to_model(self) -> Model:
        """Return the weights as a model, to save and to export to an engine."""
        return self._fitted().to_model()

    @property
    def weights_(self) -> dict[str, float]:
        """The learned weight of each ranker."""
        fuser = self._fitted()
        return dict(zip(fuser.rankers_, fuser.weights_.tolist(), strict=True))

    def _fused(self, runs: Mapping[str, Run]) -> Frame:
        fuser = self._fitted()
        aligned: Aligned = fuser.prepare(align_runs(runs, normalize=fuser.normalizers_, depth=self.depth))
        frame = to_pandas(fuse_runs(aligned, fuser.weights_))
        frame["rank"] -= 1 - pt.model.FIRST_RANK  # PyTerrier counts from 0
        return frame.rename(columns={"query_id": "qid", "doc_id": "docno"})

    def _fitted(self) -> Fuser:
        if self.fuser_ is None:
            raise InputError(f"this {type(self).__name__} has no weights yet. Call fit(topics, qrels) first.")
        return self.fuser_

    def _rules(self) -> dict[str, Any]:
        return {"normalize": self.normalize, "depth": self.depth}

    @abstractmethod
    def _runs(self, frame: Frame) -> dict[str, Run]:
        """Return each ranker's run: for the topics of the frame, or from its results."""


class PipelineFusion(_LearnedFusion):
    """Run several pipelines on the same topics and fuse what they return.

    `pipelines` maps names to pipelines. `depth` cuts their results; `method`, `measure`, `normalize` and
    `options` are those of `genm.fit` and `genm.align_runs`.
    """

    def __init__(self, pipelines: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        if not pipelines:
            raise InputError("pipelines: expected at least one, as {name: pipeline}; found none.")
        self.pipelines = dict(pipelines)

    def transform(self, inp: Frame) -> Frame:
        """Return the fused results of the topics, best first."""
        topics = inp[pt.model.query_columns(inp)].drop_duplicates(subset="qid")
        found = self._fused(self._runs(inp)) if len(topics) else _no_results()
        return topics.merge(found, on="qid")

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns that are needed."""
        return [["qid", "query"]]

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the results."""
        kept = pt.model.query_columns(pd.DataFrame(columns=input_columns))
        return [*(name for name in input_columns if name in kept), "docno", "score", "rank"]

    def _runs(self, frame: Frame) -> dict[str, Run]:
        return {name: _run_of(pipeline(frame), name, "score") for name, pipeline in self.pipelines.items()}


class FeatureFusion(_LearnedFusion):
    """Fuse the scores that a pipeline has computed: `pipeline >> fusion`.

    The scores are the `features` column, as `**` makes it, with a name per feature in `names`; or, if `columns` is
    given, these columns of the results.
    """

    def __init__(
        self, *, columns: Sequence[str] | None = None, names: Sequence[str] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if columns is not None and names is not None:
            raise InputError("names: expected None with columns, which have names. Drop one of the two.")
        self.columns, self.names = columns, names

    def transform(self, inp: Frame) -> Frame:
        """Return the results with the fused score and its rank."""
        kept = inp.drop(columns=["score", "rank"], errors="ignore")
        if not len(inp):
            return kept.assign(score=pd.Series(dtype="float64"), rank=pd.Series(dtype="int64"))
        fused = self._fused(self._runs(inp))
        keys = kept.assign(qid=kept["qid"].astype(str), docno=kept["docno"].astype(str))
        return keys.merge(fused, on=["qid", "docno"]).sort_values(["qid", "rank"], ignore_index=True)

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns that are needed."""
        return [["qid", "docno", *(self.columns or ["features"])]]

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the results."""
        return [*(name for name in input_columns if name not in ("score", "rank")), "score", "rank"]

    def _runs(self, frame: Frame) -> dict[str, Run]:
        wanted = ["qid", "docno", *(self.columns or ["features"])]
        missing = [name for name in wanted if name not in frame.columns]
        if missing:
            raise InputError(
                f"results: expected the columns {', '.join(wanted)}; found {', '.join(frame.columns)}. "
                f"Build features with **, or name score columns."
            )
        if self.columns is not None:
            return {name: _run_of(frame, name, name) for name in self.columns}
        scores = np.stack(frame["features"].to_numpy())
        names = list(self.names or (f"feature-{i}" for i in range(scores.shape[1])))
        if len(names) != scores.shape[1]:
            raise InputError(f"names: expected {scores.shape[1]}, one for each feature; found {len(names)}.")
        table = frame[["qid", "docno"]].assign(**{f"score-{i}": scores[:, i] for i in range(len(names))})
        return {name: _run_of(table, name, f"score-{i}") for i, name in enumerate(names)}


def _run_of(results: Frame, name: str, column: str) -> Run:
    """Return one column of scores as a run; a document without a score (NaN) was not returned."""
    table = results[["qid", "docno", column]].rename(columns={column: "score"}).dropna(subset=["score"])
    return run_from_frame(table, name=name, lenient=not len(table))


def _no_results() -> Frame:
    return pd.DataFrame({"qid": [], "docno": [], "score": [], "rank": []}).astype({"qid": str, "rank": "int64"})
