"""Rankers: from the texts of a collection to runs.

`rank_collection` does it all; `make_ranker`, `read_documents` and `read_queries` are its parts.
"""

from genm.rankers.base import Ranker
from genm.rankers.ranking import PAPER_RANKERS, make_ranker, rank_collection, ranker_names, write_rankings
from genm.rankers.text import DEFAULT, TextProfile, Texts, paper_profile, read_documents, read_queries

__all__ = [
    "DEFAULT",
    "PAPER_RANKERS",
    "Ranker",
    "TextProfile",
    "Texts",
    "make_ranker",
    "paper_profile",
    "rank_collection",
    "ranker_names",
    "read_documents",
    "read_queries",
    "write_rankings",
]
