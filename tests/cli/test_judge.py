"""`genm judge`: what is written, what is said before anything is sent, and what is refused."""

import json

import pytest

pytest.importorskip("httpx", reason="needs the extra serve")

from judge.endpoints import endpoint, graded

from genm.judge.store import JudgmentStore

__all__ = ["endpoint"]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    from genm.collections import write_sample

    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder, texts=True)
    return folder


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "judgments.sqlite"
    with JudgmentStore(path) as store:
        store.add("ada", "1", "d192", 2, key="a")
        store.add("bob", "1", "d192", 0, key="b")
        store.add("ada", "2", "d001", 1, key="c")
        store.add("stub", "1", "d192", 2, key="d", source="model:stub", confidence=0.5)
    return path


def asked(sample, store, endpoint, *more):
    runs = [str(sample / name) for name in ("bm25.trec", "dense.trec")]
    texts = ["--texts", str(sample / "documents.tsv"), "--queries", str(sample / "queries.tsv")]
    model = ["--llm", endpoint.url, "--model", "stub", "--store", str(store), "-n", "6"]
    return ["judge", "llm", *runs, *texts, *model, *more]


def test_judgments_are_written(genm, store, tmp_path):
    found = genm("judge", "export", str(store))
    assert found.out == "1 0 d192 0\n2 0 d001 1\n"
    assert "people disagree on 1 pairs; the lower median grade counts" in found.err
    target = tmp_path / "judged.csv"
    assert genm("judge", "export", str(store), "--format", "csv", "-o", str(target)).err.endswith(": 2 judgments\n")
    assert target.read_text().splitlines()[1] == "1,d192,0,person,0.5,3,0"
    lines = genm("judge", "export", str(store), "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["judge"] for line in lines] == ["ada", "bob", "ada", "stub"]


def test_a_models_grades_are_written_with_their_probability(genm, store, tmp_path):
    with JudgmentStore(store) as kept:
        kept.add("stub", "3", "d003", 2, key="e", source="model:stub", confidence=0.9)
    found = genm("judge", "export", str(store), "--format", "csv", "--rel", "2").out.splitlines()
    assert found[0].endswith(",confidence,judges,probability")
    # people found the one pair that both judged not relevant: (0 + 2 * 0.9) / (1 + 2)
    assert found[-1] == "3,d003,2,model:stub,0.9,1,0.6"
    assert found[2] == "2,d001,1,person,1,1,0", "grade 1 is not relevant with --rel 2"
    assert (
        "1 grades are of language models and are written as if certain" in genm("judge", "export", str(store)).err
    )


def test_llm_without_its_verb(genm, sample, store, endpoint):
    words = asked(sample, store, endpoint)
    assert genm("judge", *words[2:]).err == genm(*words).err
    assert "nothing was sent" in genm("judge", *words[2:]).err


def test_the_store_is_not_written_over(genm, store):
    found = genm("judge", "export", str(store), "-o", str(store))
    assert found.code == 2
    assert "expected a file that is not read here" in found.err


def test_agreement(genm, store):
    found = json.loads(genm("judge", "agreement", str(store), "--format", "json").out)
    assert (found["judges"], found["shared"]) == (3, 1)
    assert found["models"][0]["confusion"][0][2] == 1
    assert found["disagreements"][0]["grades"] == {"ada": 2, "bob": 0, "stub": 2}
    table = genm("judge", "agreement", str(store)).out
    assert "Krippendorff's alpha, ordinal" in table
    assert "grades of people and of stub, 1 pairs" in table
    assert max(map(len, table.splitlines())) <= 80


def test_nothing_is_sent_without_yes(genm, sample, tmp_path, endpoint):
    found = genm(*asked(sample, tmp_path / "s.sqlite", endpoint, "--price-in", "1", "--price-out", "2"))
    assert (found.code, endpoint.asked) == (0, [])
    assert f"6 queries with one document each would be sent to {endpoint.url} (model stub)" in found.err
    assert "nothing was sent; add --yes to send it" in found.err


def test_a_model_is_asked_and_compared_with_people(genm, sample, tmp_path, endpoint):
    store = tmp_path / "s.sqlite"
    with JudgmentStore(store) as kept:
        kept.add("ada", "1", "d192", 1, key="a")
    endpoint.answer = lambda task, _: graded(1 if "explains" in task["document"] else 0)
    found = genm(*asked(sample, store, endpoint, "--yes", "--format", "json"))
    assert found.code == 0, found.err
    assert json.loads(found.out)["n_judged"] == 6
    with JudgmentStore(store) as kept:
        assert ("1", "d192") in {one.pair for one in kept.opinions() if one.source == "model:stub"}
    again = genm(*asked(sample, store, endpoint, "--yes"))
    assert "weights learned from the pairs that both judged" in again.out
    assert len(endpoint.asked) == 12, "six further pairs, none of the first six"


def test_a_model_that_never_answers_is_an_error(genm, sample, tmp_path, endpoint):
    endpoint.answer = lambda *_: (401, {}, b"no")
    found = genm(*asked(sample, tmp_path / "s.sqlite", endpoint, "--yes"))
    assert found.code == 2
    assert "no pair could be judged" in found.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--llm-key", "NO_SUCH_VARIABLE"], "expected an environment variable that is set"),
        (["--budget", "1"], "expected --price-in or --price-out as well"),
    ],
)
def test_settings_that_cannot_work(genm, sample, tmp_path, endpoint, change, message):
    found = genm(*asked(sample, tmp_path / "s.sqlite", endpoint, *change))
    assert found.code == 2
    assert message in found.err


def test_queries_without_texts_are_told(genm, sample, tmp_path, endpoint):
    few = tmp_path / "few.tsv"
    few.write_text("1\tdesign of copper pumps\n")
    command = asked(sample, tmp_path / "s.sqlite", endpoint)
    command[command.index("--queries") + 1] = str(few)
    assert "29 queries of the runs have no text in" in genm(*command).err
    few.write_text("other\ttext\n")
    found = genm(*command)
    assert found.code == 2
    assert "expected the text of a query of the runs; found none of 30" in found.err
