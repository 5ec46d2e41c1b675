import random
from collections.abc import Callable, Sequence

import pytest
from export.cases import ExportError, model, own_fusion, simulated

from genm.export import export_model, ranking
from genm.normalizers import ENGINES, Normalizer

Psql = Callable[[str], list[list[str]]]
SCORES = {"bm25.type": "scores", "bm25.field": "one", "dense.type": "scores", "dense.field": "two"}
NORMALIZERS = [
    *ENGINES.values(),
    Normalizer("max"),
    Normalizer("sum", missing="minimum"),
    Normalizer("rank", scale=2.0, shift=-0.5),
    Normalizer("affine", lower=1.0, upper=6.0, lower_mode="clip", upper_mode="clip"),
    Normalizer("affine", lower=1.0, upper=6.0, missing=-0.25),
    Normalizer("minmax", lower=2.0, lower_mode="within", upper=5.0, upper_mode="within", floor=0.01),
    Normalizer("minmax", lower=0.0),
    Normalizer("zscore", at_mean=0.5, missing="minimum"),
]


def lists(seed: int) -> list[dict[str, float]]:
    draw = random.Random(seed)
    score = [lambda: float(draw.randint(0, 6)), lambda: draw.randint(0, 400) / 64, lambda: 3.0][seed % 3]
    return [{f"D{i}": score() for i in draw.sample(range(14), draw.randint(1, 9))} for _ in range(2)]


def tables(given: Sequence[dict[str, float]]) -> str:
    text = (
        "DROP TABLE IF EXISTS one, two;\nCREATE TABLE one (id text, score float8); CREATE TABLE two (LIKE one);\n"
    )
    for name, scores in zip(("one", "two"), given, strict=True):
        rows = ", ".join(f"('{doc}', {score!r})" for doc, score in scores.items())
        text += f"INSERT INTO {name} VALUES {rows};\n"
    return text


def test_the_statement_normalises_and_adds() -> None:
    fused = simulated(model(Normalizer("minmax", missing=0.5)), "pgvector", [{"a": 3.0, "b": 1.0}, {"b": 2.0}])
    assert fused == pytest.approx({"a": 0.35 + 0.325, "b": 0.65})


def test_postgresql_ranks_as_the_model(psql: Psql) -> None:
    models = [model(normalizer, depth=(7, 5)) for normalizer in NORMALIZERS]
    script = ""
    for case, made in enumerate(models):
        statement = export_model(made, "pgvector", settings={**SCORES, "size": "50"}).text
        script += f"SELECT 'case', {case};\n" + tables(lists(case)) + statement
    answers: list[list[list[str]]] = []
    for row in psql(script):
        answers.append([]) if row[0] == "case" else answers[-1].append(row)
    for case, (normalizer, made, answer) in enumerate(zip(NORMALIZERS, models, answers, strict=True)):
        ours = own_fusion(made, [lists(case)])[0]
        assert {doc: float(score) for doc, score in answer} == pytest.approx(ours), normalizer
        assert [doc for doc, _ in answer] == ranking(ours), normalizer


def test_constant_and_single_lists(psql: Psql) -> None:
    for normalizer in (Normalizer("minmax", constant="raw"), Normalizer("zscore", constant=0.5), Normalizer("l2")):
        made, given = model(normalizer), [{"a": 2.0, "b": 2.0}, {"c": 0.0}]
        answer = psql(tables(given) + export_model(made, "pgvector", settings=SCORES).text)
        assert {doc: float(score) for doc, score in answer} == pytest.approx(own_fusion(made, [given])[0])


def test_names_from_outside_stay_names(psql: Psql) -> None:
    nasty = 'one"; DROP TABLE two; --'
    made, given = model(Normalizer("minmax"), rankers=("x\n; DROP TABLE two; --", "dense")), lists(1)
    said = {"x\n; DROP TABLE two; --.type": "scores", "x\n; DROP TABLE two; --.field": nasty}
    said |= {"dense.type": "scores", "dense.field": "two"}
    quoted = nasty.replace('"', '""')
    setup = tables(given) + f'DROP TABLE IF EXISTS "{quoted}"; ALTER TABLE one RENAME TO "{quoted}";\n'
    answer = psql(setup + export_model(made, "pgvector", settings=said).text)
    assert [doc for doc, _ in answer] == ranking(own_fusion(made, [given])[0])[:10]
    assert psql("SELECT count(*), 'still there' FROM two;\n") == [[str(len(given[1])), "still there"]]


def test_a_table_of_scores_has_a_name() -> None:
    with pytest.raises(ExportError, match=r"bm25\.field: expected the name of its scores"):
        export_model(model(Normalizer("minmax")), "pgvector", settings={"bm25.type": "scores"})


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64, "a\0b"])
def test_impossible_names_are_refused(name: str) -> None:
    with pytest.raises(ExportError, match=r"table: expected"):
        export_model(model(Normalizer("minmax")), "pgvector", settings={"table": name})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("match", "words"), [("any", "fast | car"), ("all", "fast & car")])
def test_text_and_vectors_on_pgvector(psql_with_vector: Psql, match: str, words: str) -> None:
    draw = random.Random(4)
    vocabulary = ["fast", "red", "car", "blue", "slow", "boat"]
    rows = ", ".join(
        f"('d{i:02}', '{' '.join(draw.choices(vocabulary, k=5))}', '[{draw.random()}, {draw.random()}]')"
        for i in range(30)
    )
    psql_with_vector(
        "CREATE EXTENSION IF NOT EXISTS vector; DROP TABLE IF EXISTS articles;\n"
        "CREATE TABLE articles (id text PRIMARY KEY, text text, embedding vector(2));\n"
        f"INSERT INTO articles VALUES {rows};\n"
    )
    made = model(Normalizer("minmax"), depth=(8, 6))
    statement = export_model(made, "pgvector", settings={"size": "20", "match": match}).text
    run = f"PREPARE learned(text, vector) AS {statement} EXECUTE learned('fast car', '[0.9, 0.1]');\n"
    answer = psql_with_vector(run)
    found = psql_with_vector(
        f"SELECT id, ts_rank_cd(to_tsvector('english', text), to_tsquery('english', '{words}')),"
        " 1 - (embedding <=> '[0.9, 0.1]') FROM articles;\n"
    )
    given = [{i: float(s) for i, s, _ in found if float(s) > 0}, {i: float(s) for i, _, s in found}]
    ours = own_fusion(made, [given])[0]
    assert {doc: float(score) for doc, score in answer} == pytest.approx(ours, abs=1e-6)
    assert [doc for doc, _ in answer] == ranking(ours)
