"""Test collections: texts, queries and judgments, by name.

`load_collection` knows the names of `collection_names`, folders in BEIR's layout and, as `irds:ID`, whatever
ir_datasets has. `read_collection` takes files of documents, queries and judgments. The readers below take more
options.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from genm.collections.fetch import get_collection
from genm.collections.files import files_of, read_collection
from genm.collections.irds import load_irds
from genm.collections.pydocs import load_pydocs
from genm.collections.sample import write_sample
from genm.collections.smart import (
    SMART,
    VARIABLE,
    data_folder,
    find_file,
    load_merged,
    load_smart,
    merge_collections,
    smart_stopwords,
)
from genm.errors import InputError
from genm.read import read_beir
from genm.records import Collection

__all__ = [
    "DESCRIPTIONS",
    "collection_facts",
    "collection_names",
    "files_of",
    "get_collection",
    "is_available",
    "load_collection",
    "load_irds",
    "load_merged",
    "load_pydocs",
    "load_smart",
    "merge_collections",
    "read_collection",
    "smart_stopwords",
    "write_sample",
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
    files = " Documents in files need their queries too: genm rank DOCUMENTS --queries FILE, or read_collection."
    raise InputError(
        f"{name!r}: expected one of {', '.join(DESCRIPTIONS)}, a folder with corpus.jsonl, or irds:ID; "
        f"found {'other files.' + files if folder.exists() else 'none of these'}"
    )


def is_available(name: str, *, data: str | os.PathLike[str] | None = None) -> bool:
    """Whether the files of a named collection, or the libraries that pydocs is made of, are on this machine.

    No file is read. `data` is the folder of the SMART collections, else GENM_DATA.
    """
    if name == "pydocs":
        return all(find_spec(library) is not None for library in ("numpy", "scipy", "sklearn"))
    if data is None and not os.environ.get(VARIABLE):
        return False
    folder = data_folder(data, wanted=name)
    try:
        for spec in [SMART[name]] if name in SMART else SMART.values():
            for files in (spec.docs_files, spec.queries_files, spec.judgments_files):
                find_file(folder, spec.name, files)
    except InputError:
        return False
    return True


def collection_facts(collection: Collection) -> dict[str, Any]:
    """Return how many documents, queries and judgments a collection has, and its first query."""
    qrels = collection.qrels
    facts: dict[str, Any] = {
        "documents": len(collection.doc_ids),
        "empty_documents": sum(not text.strip() for text in collection.doc_texts),
        "queries": len(collection.query_ids),
        "judged_queries": len(qrels.queries),
        "judgments": len(qrels.doc),
        "relevant": int((qrels.relevance >= 1).sum()),
    }
    if collection.query_ids:
        facts["first_query"] = f"{collection.query_ids[0]}: {' '.join(collection.query_texts[0].split())[:200]}"
    return facts
