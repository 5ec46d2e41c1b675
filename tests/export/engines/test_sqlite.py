import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

import pytest
from export.cases import ExportError, model, own_fusion, simulated

from genm.export import export_model, ranking
from genm.normalizers import ENGINES, Normalizer

SCORES = {"bm25.type": "scores", "bm25.table": "one", "bm25.field": "score"}
SCORES |= {"dense.type": "scores", "dense.table": "two", "dense.field": "score"}
NORMALIZERS = [
    *(normalizer for name, normalizer in ENGINES.items() if name != "opensearch-zscore"),
    Normalizer("max"),
    Normalizer("sum", missing="minimum"),
    Normalizer("rank", scale=2.0, shift=-0.5),
    Normalizer("affine", lower=1.0, upper=6.0, lower_mode="clip", upper_mode="clip"),
    Normalizer("affine", lower=1.0, upper=6.0, missing=-0.25),
    Normalizer("minmax", lower=2.0, lower_mode="within", upper=5.0, upper_mode="within", floor=0.01),
    Normalizer("minmax", lower=0.0),
    Normalizer("minmax", constant="raw"),
    Normalizer("zscore", missing="minimum"),
]


def lists(seed: int) -> list[dict[str, float]]:
    draw = random.Random(seed)
    score = [lambda: float(draw.randint(0, 6)), lambda: draw.randint(-200, 400) / 64, lambda: 3.0][seed % 3]
    return [{f"D{i}": score() for i in draw.sample(range(14), draw.randint(1, 9))} for _ in range(2)]


def answer(given: Sequence[Mapping[str, float]], statement: str) -> dict[str, float]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, scores in zip(("one", "two"), given, strict=True):
            connection.execute(f"CREATE TABLE {name} (id TEXT, score REAL)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", scores.items())
        return dict(connection.execute(statement).fetchall())


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: n.kind)
def test_sqlite_ranks_as_the_model(normalizer: Normalizer) -> None:
    made = model(normalizer, depth=(7, 5))
    statement = export_model(made, "sqlite", settings={**SCORES, "size": "50"}).text
    for seed in range(6):
        ours = own_fusion(made, [lists(seed)])[0]
        found = answer(lists(seed), statement)
        assert found == pytest.approx(ours)
        assert list(found) == ranking(ours)


def test_the_statement_normalises_and_adds() -> None:
    fused = simulated(model(Normalizer("minmax", missing=0.5)), "sqlite", [{"a": 3.0, "b": 1.0}, {"b": 2.0}])
    assert fused == pytest.approx({"a": 0.35 + 0.325, "b": 0.65})


def test_single_precision_cannot_be_compared_there() -> None:
    with pytest.raises(ExportError, match="cannot express this model exactly"):
        export_model(model(ENGINES["opensearch-zscore"]), "sqlite")


def test_text_is_searched_by_fts5() -> None:
    settings = {**SCORES, "bm25.type": "text", "bm25.table": "texts", "bm25.field": "text"}
    statement = export_model(model(Normalizer("none")), "sqlite", settings=settings).text
    alone_in_fts5 = "SELECT id, -bm25(texts) FROM texts WHERE text MATCH 'red OR cars'"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text)")
        rows = [("a", "red cars"), ("b", "red red boats"), ("c", "blue sky")]
        connection.executemany("INSERT INTO texts VALUES (?, ?)", rows)
        connection.execute("CREATE TABLE two (id TEXT, score REAL)")
        found = dict(connection.execute(statement, {"1": '"red" OR "cars"'}).fetchall())
        alone = dict(connection.execute(alone_in_fts5).fetchall())
    assert found == pytest.approx({doc: 0.35 * score for doc, score in alone.items()})
    connection.close()


def test_a_window_beyond_the_neighbours_is_refused() -> None:
    with pytest.raises(ExportError, match=r"window: expected at most 4096 for dense; found 5000"):
        export_model(model(Normalizer("minmax"), depth=5000), "sqlite")


def test_names_from_outside_stay_names() -> None:
    nasty = 'one"; DROP TABLE two; --'
    made = model(Normalizer("minmax"))
    statement = export_model(made, "sqlite", settings={**SCORES, "bm25.table": nasty}).text
    assert '"one""; DROP TABLE two; --"' in statement
