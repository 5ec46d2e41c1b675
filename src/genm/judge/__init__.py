"""Judgments for people who have none: what to judge next, estimates from few judgments, judgments from clicks."""

from genm.judge.click_logs import ClickCounts, read_clicks
from genm.judge.clicks import (
    ClickJudgment,
    ClickJudgments,
    judge_by_clicks,
    with_query_ids,
    write_click_judgments,
)
from genm.judge.estimates import Estimate, PoolBias, estimate_difference, pool_bias
from genm.judge.pool import METHODS, Pair, Pool, pool, write_pool
from genm.judge.systems import Target, target_of

__all__ = [
    "METHODS",
    "ClickCounts",
    "ClickJudgment",
    "ClickJudgments",
    "Estimate",
    "Pair",
    "Pool",
    "PoolBias",
    "Target",
    "estimate_difference",
    "judge_by_clicks",
    "pool",
    "pool_bias",
    "read_clicks",
    "target_of",
    "with_query_ids",
    "write_click_judgments",
    "write_pool",
]
