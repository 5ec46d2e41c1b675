"""Weights in the form that a search engine accepts, and what the engine will do with them."""

from genm.errors import ExportError
from genm.export.engines import find_target, targets
from genm.export.export import (
    Loss,
    TrainingRules,
    describe_targets,
    exact_targets,
    export_model,
    measured_loss,
    obstacles,
    training_rules,
    why_not,
)
from genm.export.groups import GroupExport, export_groups
from genm.export.simulation import ranking
from genm.export.target import Exported, Target

__all__ = [
    "ExportError",
    "Exported",
    "GroupExport",
    "Loss",
    "Target",
    "TrainingRules",
    "describe_targets",
    "exact_targets",
    "export_groups",
    "export_model",
    "find_target",
    "measured_loss",
    "obstacles",
    "ranking",
    "targets",
    "training_rules",
    "why_not",
]
