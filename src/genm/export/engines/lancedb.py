"""LanceDB: hybrid search of one text and one vector query under the linear combination reranker."""

from typing import Any

from genm.export.quoting import PYTHON, py_literal
from genm.export.settings import FIELD, SIZE, TYPE, one_of_each, size_within
from genm.export.simulation import add_weighted, top
from genm.export.target import Code, Guide, Lists, Order, Payload, Setting, Target, Technique, Window
from genm.normalizers import Normalizer

_TEXT, _VECTOR = "text score", "vector score"


def compose(order: Order) -> dict[str, Any]:
    """Return the arguments of the hybrid query."""
    text, dense = one_of_each(order, "LanceDB hybrid search")
    return {
        "rankers": [part.ranker for part in order.parts],
        "vector_ranker": dense.ranker,
        "weight": dense.weight / (text.weight + dense.weight),
        "text_column": text.settings["field"],
        "vector_column": dense.settings["field"],
        "distance": dense.settings["distance"],
        "window": order.window,
        "limit": size_within(order, "what LanceDB fuses"),
    }


def render(document: Payload) -> str:
    """Return a Python function that searches a table."""
    return f'''"""Hybrid search with learned weights."""

from lancedb.rerankers import LinearCombinationReranker

RERANKER = LinearCombinationReranker(weight={py_literal(document["weight"])}, fill=1.0)


def search(table, query, vector, limit={document["limit"]}):
    """Search a LanceDB table; returns the rows, best first."""
    found = (
        table.search(
            query_type="hybrid",
            vector_column_name={py_literal(document["vector_column"])},
            fts_columns={py_literal(document["text_column"])},
        )
        .vector(vector)
        .text(query)
        .distance_type({py_literal(document["distance"])})
        .rerank(RERANKER)
        .limit({document["window"]})  # how many of each list are fused, and not only how many are returned
    )
    return found.to_list()[:limit]
'''


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Scale each window to 0..1 and blend by the weight; a list of equal scores is 1 for vectors, 0 for text.

    Vector lists hold scores that fall as the distance rises, such as 1 - distance. If one list is empty, the other
    is returned without its weight.
    """
    columns, weights = [], []
    for name, scores in zip(document["rankers"], lists, strict=True):
        by_vector = name == document["vector_ranker"]
        cut = top(scores, document["window"])
        low, high = min(cut.values(), default=0.0), max(cut.values(), default=0.0)
        equal = 1.0 if by_vector else 0.0
        columns.append({doc: (s - low) / (high - low) if high > low else equal for doc, s in cut.items()})
        weights.append(document["weight"] if by_vector else 1.0 - document["weight"])
    if not all(columns):
        weights = [1.0 for _ in weights]
    return top(add_weighted(columns, weights), document["window"])


_TESTED = (
    "`make engines` opens a LanceDB 0.40 table, fills it with a test collection, pulls each "
    "ranker's list, fits, exports and calls the function as it is. The first 10 are those of "
    "`genm fuse`, in the same order, for every query. The simulator is held to the same "
    "engine with random, tied, constant, single and missing scores and small windows."
)

PLACE = 75
TARGETS = (
    Target(
        name="lancedb",
        title="LanceDB linear combination",
        versions="Python, 0.40 and later; releases without lancedb pull request 3437 (2026) return the worst first",
        techniques=(
            Technique(_TEXT, Normalizer("minmax", constant=0.0), type="text"),
            Technique(_VECTOR, Normalizer("minmax"), type="vector"),
        ),
        words={"text": _TEXT, "vector": _VECTOR},
        window=Window(10),
        n_rankers=(2, 2),
        pair=True,
        code=Code(compose, simulate, render),
        file=PYTHON,
        guide=Guide(
            index="""import lancedb

from lancedb.index import FTS

table = lancedb.connect("data").create_table("articles", rows)  # rows of id, text and embedding
table.create_index("text", config=FTS())""",
            runs="Run `table.search(query, query_type='fts', fts_columns='text')` and "
            "`table.search(vector).distance_type('cosine')`, both with `.limit(100)`; write `_score`, or 1 - "
            "`_distance`, of every row to the run files.",
            send="Import `search` from the file and call it with the table, the query's words and its vector.",
            search="""from MODULE import search

rows = search(table, text, vector)""",
        ),
        settings=(SIZE,),
        ranker_settings=(
            TYPE,
            FIELD,
            Setting("distance", "cosine", "the vector's distance", choices=("cosine", "l2", "dot")),
        ),
        notes=(
            "LanceDB fuses as many rows of each list as it returns, 10 unless a limit is given. The exported "
            "function asks for the window and returns the first of them.",
            "A list of equal scores, or of one hit, is 0 for text and 1 for vectors.",
            "Equal sums come in the order of the vectors' list, then of the text's.",
            "Scores are single precision: documents closer than about 1e-7 may change places.",
            "RRFReranker, the default, has no weights.",
        ),
        tested=_TESTED,
        sources=("lancedb.github.io: hybrid search", "lancedb/lancedb: LinearCombinationReranker, query.py"),
    ),
)
