"""Redis: FT.HYBRID with COMBINE LINEAR."""

import math
from typing import Any

from genm.export.quoting import FileType, cli_word, plain_name, query_words
from genm.export.settings import FIELD, QUERY, SIZE, TYPE, folded, one_of_each
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Window
from genm.normalizers import Normalizer

_TITLE = "Redis FT.HYBRID"


def compose(order: Order) -> dict[str, Any]:
    """Return the command's numbers and names."""
    text, dense = one_of_each(order, _TITLE)
    return {
        "rankers": [part.ranker for part in order.parts],
        "vector_ranker": dense.ranker,
        "index": order.settings["index"],
        "query": order.settings["query"],
        "text_field": plain_name(text.settings["field"], f"{text.ranker}.field", "Rename it with AS in FT.CREATE."),
        "vector_field": plain_name(
            dense.settings["field"], f"{dense.ranker}.field", "Rename it with AS in FT.CREATE."
        ),
        "alpha": _share(text.technique, folded(text)[0], text.weight),
        "beta": _share(dense.technique, folded(dense)[0], dense.weight),
        "cosine": [part.ranker for part in order.parts if part.technique == "cosine"],
        "window": order.window,
        "limit": order.count("size"),
    }


def render(document: Payload) -> str:
    """Return the command for redis-cli; $vector stands for the query's vector as bytes."""
    words = f"@{document['text_field']}:({query_words(document['query'])})"
    lines = [
        f"FT.HYBRID {cli_word(document['index'])}",
        f"SEARCH {cli_word(words)} SCORER BM25STD",
        f"VSIM @{document['vector_field']} $vector KNN 2 K {document['window']}",
        f"COMBINE LINEAR 6 ALPHA {document['alpha']!r} BETA {document['beta']!r} WINDOW {document['window']}",
        f"LIMIT 0 {document['limit']}",
        'PARAMS 2 vector "VECTOR"',
    ]
    return " ".join(lines) + "\n"


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Add ALPHA times the text score and BETA times the vector's; cosine lists are mapped to (1 + s) / 2."""
    weights, columns = [], []
    for name, scores in zip(document["rankers"], lists, strict=True):
        weights.append(document["beta"] if name == document["vector_ranker"] else document["alpha"])
        mapped = {doc: 0.5 * (1.0 + s) for doc, s in scores.items()} if name in document["cosine"] else scores
        columns.append(top(mapped, document["window"]))
    return add_weighted(columns, weights)


def _share(technique: str, coefficient: float, weight: float) -> float:
    return weight if technique == "cosine" else coefficient  # Redis itself halves and shifts the cosine


_TESTED = (
    "The command is held to the official client and the ranking to a simulator written from "
    "RediSearch's source. No server runs in the tests: the registries have Redis 7.0 at most, "
    "and FT.HYBRID needs 8.4."
)

PLACE = 110
TARGETS = (
    Target(
        name="redis",
        title=_TITLE,
        versions="8.4 and later",
        techniques=(
            Technique("none", Normalizer("none"), line="slope", scores=(0.0, math.inf)),
            Technique("cosine", Normalizer("none", scale=0.5, shift=0.5), scores=(-1.0, 1.0)),
        ),
        window=Window(20),
        n_rankers=(2, 2),
        pair=True,
        code=Code(compose, simulate, render),
        file=FileType("text/plain", "redis"),
        guide=Guide(
            index="""FT.CREATE articles ON HASH PREFIX 1 article: SCHEMA text TEXT \\
  embedding VECTOR HNSW 6 TYPE FLOAT32 DIM 384 DISTANCE_METRIC COSINE""",
            runs="Send the command of step 3 with `YIELD_SCORE_AS text_score` behind SCORER BM25STD and "
            "`YIELD_SCORE_AS vector_score` behind K 100, and write each of these scores to a run file: the text's "
            "is raw BM25, the vector's is already mapped to 0..1. Training takes both as they are.",
            send="Send the command with the query's words and, for VECTOR, its vector as float32 bytes; with the "
            "Python client, a `Redis`:",
            search="""import re
import shlex
from pathlib import Path

import numpy as np

words = shlex.split(Path("FILE").read_text(encoding="utf-8"))
escaped = re.sub(r"([^\\w\\s])", r"\\\\\\1", text)  # punctuation is syntax there
words[words.index("SEARCH") + 1] = f"@text:({escaped})"
words[words.index("VECTOR", words.index("PARAMS"))] = np.asarray(vector, np.float32).tobytes()
answer = client.execute_command(*words)""",
        ),
        settings=(QUERY, SIZE, Setting("index", "articles", "the index", "name")),
        ranker_settings=(TYPE, FIELD),
        notes=(
            "Text scores are raw BM25, vectors are mapped: cosine (1 + s) / 2, L2 1 / (1 + d), IP (1 + s) / 2. For "
            "a run of raw cosines train with `--technique dense=cosine`; else write Redis's own scores.",
            "COMBINE RRF has no weights.",
            "A document must have all the words between the brackets; with | between them it needs one.",
        ),
        tested=_TESTED,
        sources=("redis.io: FT.HYBRID", "RediSearch/RediSearch: hybrid_scoring.c, vector_normalization.h"),
    ),
)
