"""Weights in the form that a search engine accepts, and what the engine will do with them."""

from genm.errors import ExportError
from genm.export.export import (
    TrainingRules,
    describe_targets,
    exact_targets,
    export_model,
    obstacles,
    training_rules,
    why_not,
)
from genm.export.loss import Loss, measured_loss
from genm.export.registry import find_target, targets
from genm.export.simulation import ranking
from genm.export.target import Exported, Target

__all__ = [
    "ExportError",
    "Exported",
    "Loss",
    "Target",
    "TrainingRules",
    "describe_targets",
    "exact_targets",
    "export_model",
    "find_target",
    "measured_loss",
    "obstacles",
    "ranking",
    "targets",
    "training_rules",
    "why_not",
]
