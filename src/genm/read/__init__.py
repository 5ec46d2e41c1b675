"""Files, dictionaries and frames to records, and back. What is read, and what is refused: docs/formats.md."""

from genm.read.beir import read_beir
from genm.read.letor import Letor, read_letor
from genm.read.queries import read_groups, read_queries
from genm.read.readers import read_qrels, read_query_weights, read_run, read_texts
from genm.read.tables import qrels_from_dict, qrels_from_frame, run_from_dict, run_from_frame
from genm.read.write import write_qrels, write_run, write_texts

__all__ = [
    "Letor",
    "qrels_from_dict",
    "qrels_from_frame",
    "read_beir",
    "read_groups",
    "read_letor",
    "read_qrels",
    "read_queries",
    "read_query_weights",
    "read_run",
    "read_texts",
    "run_from_dict",
    "run_from_frame",
    "write_qrels",
    "write_run",
    "write_texts",
]
