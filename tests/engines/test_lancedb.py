"""LanceDB inside this process: hybrid search of a text and a vector query."""

import random
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from engines.differential import DOCS, Case, check
from engines.proof import Lists, Proof
from export.cases import loaded, model

from genm.export import export_model, find_target
from genm.normalizers import Normalizer

lancedb = pytest.importorskip("lancedb", reason="the package lancedb is not installed")
FTS = pytest.importorskip("lancedb.index").FTS
WINDOW = 50


@pytest.fixture(scope="module")
def table(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table that holds the texts."""
    rows = [{"id": d, "text": t, "embedding": proof.texts.doc_vectors[d]} for d, t in proof.texts.docs.items()]
    made = lancedb.connect(tmp_path_factory.mktemp("lancedb")).create_table("articles", rows)
    made.create_index("text", config=FTS())
    return made


@pytest.fixture(scope="module")
def runs(table: Any, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """The lists of each ranker, as its page says."""
    pulled: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}}
    for query, words in proof.texts.queries.items():
        by_words = table.search(words, query_type="fts", fts_columns="text").limit(WINDOW).to_list()
        vector = proof.texts.query_vectors[query]
        by_vector = table.search(vector).distance_type("cosine").limit(WINDOW).to_list()
        pulled["bm25"][query] = {row["id"]: row["_score"] for row in by_words}
        pulled["dense"][query] = {row["id"]: 1.0 - row["_distance"] for row in by_vector}
    return pulled


def order_of_equals(runs: dict[str, Lists]) -> Callable[[str], Callable[[str], tuple[int, int]]]:
    """The vectors' list in its order, then the text's."""

    def of_query(query: str) -> Callable[[str], tuple[int, int]]:
        place = {doc: (1, i) for i, doc in enumerate(runs["bm25"][query])}
        place |= {doc: (0, i) for i, doc in enumerate(runs["dense"][query])}
        return place.__getitem__

    return of_query


def test_the_exported_function_ranks_as_the_model(table: Any, runs: Any, proof: Proof) -> None:
    def ask(exported: str, query: str) -> list[str]:
        search = loaded(exported)["search"]
        return [row["id"] for row in search(table, proof.texts.queries[query], proof.texts.query_vectors[query])]

    differing = proof.compare(
        ("LanceDB", version("lancedb")),
        "lancedb",
        runs,
        ask,
        options=("--window", str(WINDOW)),
        tie=order_of_equals(runs),
        single=True,
    )
    assert not differing


WORDS = ["red", "blue", "car", "boat", "sky"]
TEXTS = {
    "random": lambda draw: " ".join(draw.choices(WORDS, k=4)),
    "equal": lambda draw: "red car",
    "none": lambda draw: "green tree",
}


@pytest.mark.parametrize("texts", TEXTS)
def test_the_simulator_is_the_engine(texts: str, tmp_path: Any) -> None:
    draw = random.Random(3)
    rows = [
        {"id": doc, "text": TEXTS[texts](draw), "embedding": [draw.randint(1, 3) / 2, draw.randint(-2, 2) / 2]}
        for doc in DOCS
    ]
    table = lancedb.connect(tmp_path).create_table("articles", rows)
    table.create_index("text", config=FTS())
    for case in range(24):
        words, vector = " ".join(draw.sample(WORDS, draw.randint(1, 2))), [draw.random(), draw.random() - 0.5]
        window, share = draw.choice([1, 3, 100]), draw.randint(1, 9) / 10
        normalizers = [Normalizer("minmax", constant=0.0), Normalizer("minmax")]
        made = model(normalizers, weights=(1.0 - share, share), depth=window)
        exported = export_model(made, "lancedb", settings={"size": str(min(window, 50))})
        by_words = table.search(words, query_type="fts", fts_columns="text").limit(window).to_list()
        by_vector = table.search(vector).distance_type("cosine").limit(window).to_list()
        lists = [
            {row["id"]: row["_score"] for row in by_words},
            {row["id"]: 1.0 - row["_distance"] for row in by_vector},
        ]
        fused = find_target("lancedb").code.simulate(exported.document, lists)
        found = loaded(exported.text)["search"](table, words, vector)
        answer = {row["id"]: row["_relevance_score"] for row in found}
        if len(fused) == window:  # of documents with equal scores any may be the last
            fused = {doc: fused.get(doc, min(fused.values())) for doc in answer}
        check(Case(f"{texts} {case}", window, lists, exported, fused), answer)
