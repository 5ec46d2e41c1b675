"""Test collections: texts, queries and judgments, by name.

`load_collection` knows the names of `collection_names`, folders in BEIR's layout and, as `irds:ID`, whatever
ir_datasets has. The readers below it take more options.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from genm.collections.fetch import get_collection
from genm.collections.irds import load_irds
from genm.collections.pydocs import load_pydocs
from genm.collections.smart import SMART, load_merged, load_smart, merge_collections, smart_stopwords
from genm.errors import InputError
from genm.read import read_beir
from genm.records import Collection

__all__ = [
    "DESCRIPTIONS",
    "collection_names",
    "get_collection",
    "load_collection",
    "load_irds",
    "load_merged",
    "load_pydocs",
    "load_smart",
    "merge_collections",
    "smart_stopwords",
]

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {name: spec.title for name, spec in SMART.items()}
    | {
        "merged": "MC: the four above as one collection, 7,097 documents, 431 queries, 383 of them judged",
        "pydocs": "the installed documentation of numpy, scipy and scikit-learn; needs no download",
    }
)
"""A line about each collection that has a name."""


def collection_names() -> tuple[str, ...]:
    """Return the names that `load_collection` knows."""
    return tuple(DESCRIPTIONS)


def load_collection(name: str, *, data: str | os.PathLike[str] | None = None, split: str = "test") -> Collection:
    """Load a collection by its name, a BEIR folder by its path, or an ir_datasets id as `irds:ID`.

    `data` is the folder of the SMART collections (else GENM_DATA); `split` chooses a BEIR folder's judgments.
    """
    known = name.lower()
    if known in SMART:
        return load_smart(known, data=data)
    if known in ("merged", "mc"):
        return load_merged(data=data)
    if known == "pydocs":
        return load_pydocs()
    if known.startswith("irds:"):
        return load_irds(name[len("irds:") :])
    folder = Path(name).expanduser()
    if any(folder.glob("corpus.jsonl*")):
        return read_beir(folder, split=split)
    raise InputError(
        f"{name!r}: expected one of {', '.join(DESCRIPTIONS)}, a folder with corpus.jsonl, or irds:ID; "
        "found none of these"
    )
