"""The paper's experiment, run again: its tables and figures with our numbers beside the printed ones."""

from genm.reproduce.experiment import reproduce, study
from genm.reproduce.results import CollectionResult, MethodResult, Results

__all__ = ["CollectionResult", "MethodResult", "Results", "reproduce", "study"]
