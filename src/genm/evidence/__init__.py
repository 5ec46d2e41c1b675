"""Evidence for learned weights: their held-out values, compared with systems that need no learning."""

from genm.evidence.crossval import HeldOut, cross_validate
from genm.evidence.evidence import (
    BEST_SINGLE,
    RRF,
    UNIFORM,
    Evidence,
    Outcome,
    best_singles,
    counted,
    fingerprint,
    gather_evidence,
    single_table,
    single_values,
    with_evidence,
)
from genm.evidence.resampling import FewerQueries, Kept, Refits, keep_evidence, learn_from_fewer, refit_resampled
from genm.evidence.storage import evidence_path, load_evidence, mismatch, save_evidence
from genm.learn.base import GivenFuser

__all__ = [
    "BEST_SINGLE",
    "RRF",
    "UNIFORM",
    "Evidence",
    "FewerQueries",
    "GivenFuser",
    "HeldOut",
    "Kept",
    "Outcome",
    "Refits",
    "best_singles",
    "counted",
    "cross_validate",
    "evidence_path",
    "fingerprint",
    "gather_evidence",
    "keep_evidence",
    "learn_from_fewer",
    "load_evidence",
    "mismatch",
    "refit_resampled",
    "save_evidence",
    "single_table",
    "single_values",
    "with_evidence",
]
