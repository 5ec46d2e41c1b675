"""Weights with their proof: what they reach on queries they have not seen, beside what needs no learning."""

from genm.evidence.evidence import (
    BEST_SINGLE,
    RRF,
    UNIFORM,
    Evidence,
    Outcome,
    best_singles,
    counted,
    gather_evidence,
    single_table,
    single_values,
    with_evidence,
)
from genm.evidence.fewer import FewerQueries, learn_from_fewer
from genm.evidence.fingerprints import fingerprint
from genm.evidence.given import GivenFuser
from genm.evidence.kept import Kept, keep_evidence
from genm.evidence.resampling import Refits, refit_resampled
from genm.evidence.storage import evidence_path, load_evidence, save_evidence, why_not_of

__all__ = [
    "BEST_SINGLE",
    "RRF",
    "UNIFORM",
    "Evidence",
    "FewerQueries",
    "GivenFuser",
    "Kept",
    "Outcome",
    "Refits",
    "best_singles",
    "counted",
    "evidence_path",
    "fingerprint",
    "gather_evidence",
    "keep_evidence",
    "learn_from_fewer",
    "load_evidence",
    "refit_resampled",
    "save_evidence",
    "single_table",
    "single_values",
    "why_not_of",
    "with_evidence",
]
