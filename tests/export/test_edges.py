"""A checklist: what every engine makes of every edge of a list, worked by hand, by simulator and by genm alike.

Each row has one ranker's normalised scores for the lists 6, 4, 2; for 6, 4 cut out of it by the window; for the
equal scores 2, 2; for the lone score 7; and what a document gets that the ranker did not return.
"""

from math import atan, exp, pi, sqrt

import pytest
from export.cases import model, own_fusion, simulated

from genm.export import targets
from genm.export.target import Target, Technique

Scores = tuple[float, ...]
Row = tuple[Scores, Scores, Scores, float, float]

RANKS: Row = ((1 / 61, 1 / 62, 1 / 63), (1 / 61, 1 / 62), (1 / 61, 1 / 62), 1 / 61, 0.0)
RAW: Row = ((6.0, 4.0, 2.0), (6.0, 4.0), (2.0, 2.0), 7.0, 0.0)
UNIT: Row = ((1.0, 0.5, 0.0), (1.0, 0.0), (1.0, 1.0), 1.0, 0.0)
LENGTH: Row = (
    (6 / sqrt(56), 4 / sqrt(56), 2 / sqrt(56)),
    (6 / sqrt(52), 4 / sqrt(52)),
    (sqrt(0.5), sqrt(0.5)),
    1.0,
    0.0,
)
HALVES: Row = ((3.5, 2.5, 1.5), (3.5, 2.5), (1.5, 1.5), 4.0, 0.0)
ANGLE: Row = ((atan(6), atan(4), atan(2)), (atan(6), atan(4)), (atan(2), atan(2)), atan(7), 0.0)


def mapped(row: Row, scale: float, shift: float) -> Row:
    three, two, equal, lone, absent = row
    of = [tuple(scale * score + shift for score in scores) for scores in (three, two, equal)]
    return of[0], of[1], of[2], scale * lone + shift, absent


def logistic(*scores: float) -> Scores:
    return tuple(1 / (1 + exp(-score)) for score in scores)


SIGMOID: Row = (logistic(6, 4, 2), logistic(6, 4), logistic(2, 2), logistic(7)[0], 0.0)
FAR, NEAR = 2 / sqrt(8 / 3), 1.0  # deviations from the mean of 6, 4, 2 and of 6, 4, divided by n

SQL: dict[str, Row] = {
    "minmax": UNIT,
    "none": RAW,
    "max": ((1.0, 4 / 6, 2 / 6), (1.0, 4 / 6), (1.0, 1.0), 1.0, 0.0),
    "sum": ((4 / 6, 2 / 6, 0.0), (1.0, 0.0), (1.0, 1.0), 1.0, 0.0),
    "zscore": ((FAR, 0.0, -FAR), (NEAR, -NEAR), (1.0, 1.0), 1.0, 0.0),
    "l2": LENGTH,
    "rank": ((1.0, 2 / 3, 1 / 3), (1.0, 1 / 2), (1.0, 1 / 2), 1.0, 0.0),
    "reciprocal": RANKS,
    "affine": RAW,
    "atan": ANGLE,
    "sigmoid": SIGMOID,
}

CHECKLIST: dict[str, Row] = {
    # a list of equal scores keeps its raw scores
    "elasticsearch minmax": ((1.0, 0.5, 0.0), (1.0, 0.0), (2.0, 2.0), 7.0, 0.0),
    "elasticsearch l2_norm": LENGTH,
    "elasticsearch none": RAW,
    "elasticsearch-rrf rrf": RANKS,
    # what would be 0 is a thousandth
    "opensearch min_max": ((1.0, 0.5, 0.001), (1.0, 0.001), (1.0, 1.0), 1.0, 0.0),
    "opensearch l2": LENGTH,
    # by n - 1; at the mean the highest raw score, below it a thousandth
    "opensearch z_score": ((1.0, 6.0, 0.001), (1 / sqrt(2), 0.001), (2.0, 2.0), 7.0, 0.0),
    "opensearch-rrf rrf": RANKS,
    "ltr min_max": RAW,
    "ltr none": RAW,
    # a lone candidate, or equal ones, are half way
    "vespa normalize_linear": ((1.0, 0.5, 0.0), (), (0.5, 0.5), 0.5, 0.0),
    "vespa reciprocal_rank": (*RANKS[:4], 1 / 64),  # the fourth candidate, with a feature of 0
    "vespa fixed bounds": RAW,
    "vespa none": RAW,
    "vespa atan": ANGLE,
    "vespa sigmoid": (*SIGMOID[:4], 0.5),
    "weaviate relativeScoreFusion": UNIT,
    "weaviate rankedFusion": ((1 / 60, 1 / 61, 1 / 62), (1 / 60, 1 / 61), (1 / 60, 1 / 61), 1 / 60, 0.0),
    "qdrant formula": RAW,
    "qdrant none": RAW,
    "qdrant-rrf rrf": RANKS,
    "milvus BM25": mapped(ANGLE, 2 / pi, 0.0),
    "milvus COSINE": HALVES,
    "milvus IP": mapped(ANGLE, 1 / pi, 0.5),
    "milvus L2": mapped(ANGLE, 2 / pi, 1.0),
    "milvus norm_score off": RAW,
    # a list of equal texts adds nothing, of equal vectors the whole weight
    "lancedb text score": ((1.0, 0.5, 0.0), (1.0, 0.0), (0.0, 0.0), 0.0, 0.0),
    "lancedb vector score": UNIT,
    "azure rrf": RANKS,
    "solr MinMaxNormalizer": RAW,
    "solr none": RAW,
    # a list of equal scores adds nothing
    "mongodb minMaxScaler": ((1.0, 0.5, 0.0), (1.0, 0.0), (0.0, 0.0), 0.0, 0.0),
    "mongodb sigmoid": SIGMOID,
    "mongodb none": RAW,
    "redis none": RAW,
    "redis cosine": HALVES,
    **{f"pgvector {kind}": row for kind, row in SQL.items()},
    **{f"sqlite {kind}": row for kind, row in SQL.items()},
    "langchain rrf": RANKS,
    "llamaindex relative_score": UNIT,
    # three deviations below the mean are 0, three above it 1
    "llamaindex dist_based_score": (
        (0.5 + FAR / 6, 0.5, 0.5 - FAR / 6),
        (0.5 + NEAR / 6, 0.5 - NEAR / 6),
        (1.0, 1.0),
        1.0,
        0.0,
    ),
    "haystack reciprocal_rank_fusion": RANKS,
    "haystack merge": RAW,
}
CASES = {f"{t.name} {q.word}": (t, q) for t in targets().values() for q in t.techniques}


def test_the_checklist_is_complete() -> None:
    assert list(CHECKLIST) == list(CASES)


@pytest.mark.parametrize("name", CHECKLIST)
def test_the_edges_of(name: str) -> None:
    target, technique = CASES[name]
    three, two, equal, lone, absent = CHECKLIST[name]
    assert scored(target, technique, {"d": 6.0, "c": 4.0, "b": 2.0}) == pytest.approx(three)
    assert scored(target, technique, {"d": 2.0, "c": 2.0}) == pytest.approx(equal)
    assert scored(target, technique, {"d": 7.0}) == pytest.approx([lone])
    known = {"d": 6.0, "c": 4.0, "b": 2.0}
    assert scored(target, technique, known, other="a")[-1] == pytest.approx(absent)
    if target.window.least == 1 and not target.window.rerank:
        assert scored(target, technique, known, depth=2) == pytest.approx([*two, absent])


@pytest.mark.parametrize("name", [name for name in CHECKLIST if name.startswith("weaviate")])
def test_a_window_that_cannot_be_chosen(name: str) -> None:
    target, technique = CASES[name]
    between = {f"c{i:02}": 6.0 - i / 50 for i in range(1, 99)}
    found = scored(target, technique, {"d": 6.0, **between, "b": 4.0, "a": 2.0})
    _, two, _, _, absent = CHECKLIST[name]
    assert found[0] == pytest.approx(two[0])
    assert found[-2] == pytest.approx({"relativeScoreFusion": 0.0, "rankedFusion": 1 / 159}[technique.word])
    assert found[-1] == absent


def scored(
    target: Target, technique: Technique, scores: dict[str, float], *, other: str = "", depth: int = 100
) -> list[float]:
    """What the first of two rankers gives its documents, and one that only the second returned.

    It is simulated, and held against genm's own fusion: of a reranker only where all have all candidates.
    """
    weights = (0.5, 0.5) if target.weights.equal else (1.0, 0.0)
    others = [one.normalizer for one in target.techniques if one.type not in ("", technique.type)]
    each = [technique.normalizer, *(others or [technique.normalizer])][:2]
    kinds = ("vector", "text") if technique.type == "vector" else ("text", "vector")
    made = model(each, weights, ("text", "dense"), None if target.window.rerank else depth)
    has_types = "type" in {setting.name for setting in target.ranker_settings}
    said = {"text.type": kinds[0], "dense.type": kinds[1]} if has_types else {}
    if "size" in {setting.name for setting in target.settings}:
        said["size"] = "1"
    docs, second = [*scores, other] if other else [*scores], {other: 1.0} if other else {}
    lists = [scores, {} if target.weights.equal else second]
    theirs = simulated(made, target.name, lists, said)
    factor = 2.0 if target.name == "mongodb" else 1.0  # the mean of two
    found = [factor * theirs.get(doc, 0.0) for doc in docs]
    if not (other and target.window.rerank):
        ours = own_fusion(made, [lists])[0]
        assert [ours.get(doc, 0.0) / weights[0] for doc in docs] == pytest.approx(found)
    return found
