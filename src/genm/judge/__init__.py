"""Judgments for people who have none: what to judge next, by whom, and what the judgments are worth.

What asks a language model needs the extra serve, and is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from genm.judge.agreement import Agreement, Disagreement, agreement_of
from genm.judge.calibration import Calibration, calibration_of
from genm.judge.click_logs import ClickCounts, read_clicks
from genm.judge.clicks import (
    ClickJudgment,
    ClickJudgments,
    judge_by_clicks,
    with_query_ids,
    write_click_judgments,
)
from genm.judge.estimates import Estimate, PoolBias, estimate_difference, pool_bias
from genm.judge.pooling import METHODS, Pair, Pool, pool, write_pool
from genm.judge.session import Session, Standing
from genm.judge.standing import assess, order_for, weights_by_source
from genm.judge.store import Judgment, JudgmentStore, Opinion, judgments_as, qrels_of
from genm.judge.systems import Target, target_of

if TYPE_CHECKING:
    from genm.judge.llm import LanguageModel, Outcome, Plan, judge_by_model, plan_judging

__all__ = [
    "METHODS",
    "Agreement",
    "Calibration",
    "ClickCounts",
    "ClickJudgment",
    "ClickJudgments",
    "Disagreement",
    "Estimate",
    "Judgment",
    "JudgmentStore",
    "LanguageModel",
    "Opinion",
    "Outcome",
    "Pair",
    "Plan",
    "Pool",
    "PoolBias",
    "Session",
    "Standing",
    "Target",
    "agreement_of",
    "assess",
    "calibration_of",
    "estimate_difference",
    "judge_by_clicks",
    "judge_by_model",
    "judgments_as",
    "order_for",
    "plan_judging",
    "pool",
    "pool_bias",
    "qrels_of",
    "read_clicks",
    "target_of",
    "weights_by_source",
    "with_query_ids",
    "write_click_judgments",
    "write_pool",
]

_OF_MODELS = ("LanguageModel", "Outcome", "Plan", "judge_by_model", "plan_judging")


def __getattr__(name: str) -> object:
    if name in _OF_MODELS:
        return getattr(import_module("genm.judge.llm"), name)
    raise AttributeError(f"module 'genm.judge' has no attribute {name!r}")
