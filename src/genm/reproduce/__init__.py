"""The paper's experiment, run again: its tables and figures with our numbers beside the printed ones."""

from genm.reproduce.experiment import reproduce, study
from genm.reproduce.page import PAGE, reproduce_to_folder, results_json
from genm.reproduce.results import CollectionResult, MethodResult, Results
from genm.reproduce.tables import summary_of

__all__ = [
    "PAGE",
    "CollectionResult",
    "MethodResult",
    "Results",
    "reproduce",
    "reproduce_to_folder",
    "results_json",
    "study",
    "summary_of",
]
