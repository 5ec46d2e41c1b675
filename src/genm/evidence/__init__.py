"""Evidence for learned weights: their held-out values, compared with systems that need no learning."""

from genm.evaluate import Outcome
from genm.evidence.crossval import HeldOut, cross_validate
from genm.evidence.evidence import (
    BEST_SINGLE,
    CURRENT,
    LEARNED,
    RRF,
    TRAINED,
    UNIFORM,
    Evidence,
    fingerprint,
    gather_evidence,
    ranker_ids,
    single_table,
    single_values,
    unjudged_share,
    with_evidence,
    with_figures,
)
from genm.evidence.intervals import CRITERION, counted
from genm.evidence.query_weights import GLOBAL, QueryWeightsEvidence, gate_evidence, group_evidence
from genm.evidence.resampling import (
    FewerQueries,
    Kept,
    LeftOut,
    Refits,
    keep_evidence,
    learn_from_fewer,
    refit_resampled,
)
from genm.evidence.storage import evidence_path, load_evidence, mismatch, save_evidence
from genm.evidence.table import gather_table_evidence, keep_table_evidence, rivals_of_table
from genm.learn.base import GivenFuser

__all__ = [
    "BEST_SINGLE",
    "CRITERION",
    "CURRENT",
    "GLOBAL",
    "LEARNED",
    "RRF",
    "TRAINED",
    "UNIFORM",
    "Evidence",
    "FewerQueries",
    "GivenFuser",
    "HeldOut",
    "Kept",
    "LeftOut",
    "Outcome",
    "QueryWeightsEvidence",
    "Refits",
    "counted",
    "cross_validate",
    "evidence_path",
    "fingerprint",
    "gate_evidence",
    "gather_evidence",
    "gather_table_evidence",
    "group_evidence",
    "keep_evidence",
    "keep_table_evidence",
    "learn_from_fewer",
    "load_evidence",
    "mismatch",
    "ranker_ids",
    "refit_resampled",
    "rivals_of_table",
    "save_evidence",
    "single_table",
    "single_values",
    "unjudged_share",
    "with_evidence",
    "with_figures",
]
