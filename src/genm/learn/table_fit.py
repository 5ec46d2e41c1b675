"""Which fusers learn from a score table, what they need of its shards, and fitting them."""

import numpy as np
from numpy.typing import NDArray

from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.learn.auto import AutoFuser
from genm.learn.base import Fuser
from genm.learn.batch import BarrierFuser, NewtonFuser
from genm.learn.cotrain import CotrainFuser
from genm.learn.exact import ExactFuser
from genm.learn.objectives import with_level
from genm.learn.online import OnlineFuser
from genm.learn.table import TableProblem, TableQueries, TableScorer
from genm.learn.table_cotrain import PseudoLabels, table_lessons
from genm.learn.table_exact import LineShards, TableLines
from genm.scale.engines import Table
from genm.scale.evaluation import Settings, ShardLearner

TABLE_METHODS = ("auto", "newton", "barrier", "online", "cotrain", "exact")
"""The methods that learn from a table; the others need all lists in memory."""
_FUSERS = (AutoFuser, NewtonFuser, BarrierFuser, OnlineFuser, CotrainFuser, ExactFuser)
_NAMES = dict(zip(_FUSERS, TABLE_METHODS, strict=True))
_ON_GPU = (AutoFuser, NewtonFuser, BarrierFuser)


def check_table_method(fuser: Fuser, device: str | None = None) -> None:
    """Refuse a fuser that does not learn from a table, or not on this device."""
    if device not in (None, "cpu") and type(fuser) in _FUSERS and type(fuser) not in _ON_GPU:
        raise InputError(
            f"device (--device) {device}: the method {_NAMES[type(fuser)]} learns on the CPU. Leave the device "
            f"out, or use auto, newton or barrier."
        )
    if isinstance(fuser, ExactFuser) and fuser.certify:
        raise InputError(
            "certify (--certify): the proof needs all lists in memory. Leave it out, or fit the runs themselves."
        )
    if type(fuser) not in _FUSERS:
        raise InputError(
            f"method (--method) {fuser.method}: it needs all aligned runs in memory. A table is learned from by "
            f"{', '.join(TABLE_METHODS)}; use one of them, or fit the runs themselves."
        )
    if isinstance(fuser, AutoFuser) and fuser.normalize is not None:
        raise InputError(
            "normalize (--normalize) auto: a table is read under one normaliser. Name it, or leave the option out."
        )
    if isinstance(fuser, OnlineFuser) and fuser.starts is not None and len(np.atleast_2d(fuser.starts)) > 1:
        raise InputError("starts: from a table the method online learns from one start. Give one, or none.")


def settings_for(fuser: Fuser, table: Table, device: str | None = None) -> Settings:
    """Return how the shards are made ready for a fuser."""
    measure = with_level(parse_measure(getattr(fuser, "measure", "AP")), getattr(fuser, "level", 1))
    level = measure.rel if isinstance(fuser, ExactFuser) else max(getattr(fuser, "level", 1), measure.rel)
    learner: ShardLearner | None = None
    if isinstance(fuser, CotrainFuser):
        learner = PseudoLabels(fuser.labels, fuser.n, fuser.threshold)
    elif isinstance(fuser, ExactFuser):
        learner = LineShards(str(measure))
    else:
        pass  # sums of values and derivatives are all that is asked for
    kept_measure = "" if measure.has_smoothed_form else str(measure)
    return Settings(level, table.dtype, kept_measure, device or "cpu", learner)


def fit_table(
    fuser: Fuser, table: TableQueries, queries: NDArray[np.integer] | None = None, *, curve: bool = True
) -> Fuser:
    """Learn weights from the queries of a table, or from those at some positions; return the fitted fuser.

    The settings of `table` must be those of `settings_for(fuser, ...)`. Without `curve`, `auto` asks for what leads
    to the weights and nothing else: `history_` stays empty, and there is no `objective_`.
    """
    check_table_method(fuser)
    if isinstance(fuser, AutoFuser):
        problem = TableProblem(table, queries, beta=fuser.beta, curve=curve)
        measure = parse_measure(fuser.measure)
        return fuser.fit_problem(problem, TableScorer(problem, measure, fuser.level))
    if isinstance(fuser, CotrainFuser):
        return fuser.fit_lessons(table_lessons(fuser, table, queries))
    if isinstance(fuser, ExactFuser):
        problem = TableProblem(table, queries, beta=fuser.beta)
        measure = with_level(parse_measure(fuser.measure), fuser.level)
        return fuser.fit_lines(problem, TableScorer(problem, measure, measure.rel), TableLines(problem))
    assert isinstance(fuser, NewtonFuser | BarrierFuser | OnlineFuser)
    smooth_j = isinstance(fuser, NewtonFuser) and fuser.smooth_j
    return fuser.fit_problem(TableProblem(table, queries, beta=fuser.beta, smooth_j=smooth_j))
