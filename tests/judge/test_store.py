import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.errors import InputError, StoreError
from genm.judge.store import JudgmentStore, Opinion, qrels_of, settle, standing


@pytest.fixture
def store(tmp_path):
    with JudgmentStore(tmp_path / "judgments.sqlite") as store:
        yield store


def opinion(sequence, judge, grade, *, query="q", document="d", action="grade", source="person", undoes=None):
    return Opinion(sequence, f"k{sequence}", 0, judge, source, query, document, action, grade, None, "", undoes)


def test_an_opinion_outlives_the_process(tmp_path, store):
    said = store.add("ada", "q1", "d1", 2, key="a", note="Seite 3 \u2713")
    with JudgmentStore(tmp_path / "judgments.sqlite", create=False) as other:
        assert other.log() == [said]
        assert (said.grade, said.note, said.source) == (2, "Seite 3 \u2713", "person")


def test_the_same_key_is_the_same_opinion(store):
    first = store.add("ada", "q1", "d1", 2, key="a")
    assert store.add("ada", "q1", "d1", 2, key="a") == first
    with pytest.raises(InputError, match=r"key 'a': expected the opinion that it names"):
        store.add("ada", "q1", "d1", 3, key="a")
    assert len(store.log()) == 1


def test_undo_brings_the_opinion_before_to_light(store):
    store.add("ada", "q1", "d1", 1, key="a")
    store.add("ada", "q1", "d1", 3, key="b")
    assert store.undo("ada", key="c").grade == 3
    assert store.undo("ada", key="c").grade == 3, "the same undo, sent again"
    assert [one.grade for one in store.opinions()] == [1]
    assert store.undo("ada", key="d").grade == 1
    assert store.opinions() == []
    assert store.undo("ada", key="e") is None
    assert len(store.log()) == 4, "nothing is ever removed"


def test_one_judge_cannot_undo_another(store):
    store.add("ada", "q1", "d1", 1, key="a")
    assert store.undo("bob", key="b") is None
    assert len(store.opinions()) == 1


def test_two_handles_write_at_once(tmp_path, store):
    with JudgmentStore(tmp_path / "judgments.sqlite") as other:
        for i in range(5):
            store.add("ada", "q1", f"d{i}", 0, key=f"a{i}")
            other.add("bob", "q1", f"d{i}", 1, key=f"b{i}")
        assert [one.sequence for one in store.log()] == list(range(1, 11))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grade": 4}, "grade: expected one of 0, 1, 2, 3"),
        ({"grade": True}, "grade: expected one of"),
        ({"grade": None}, "grade: expected one with grade and decide"),
        ({"action": "skip"}, "none otherwise; found 1 with skip"),
        ({"action": "undo", "grade": None}, "action: expected one of"),
        ({"judge": " "}, "judge: expected 1 to"),
        ({"document": "d\x1b[2J"}, "document: expected 1 to"),
        ({"confidence": 1.5}, "confidence: expected a number from 0 to 1"),
        ({"confidence": float("nan")}, "confidence: expected"),
        ({"note": "x" * 4001}, "note: expected at most 4,000"),
        ({"key": ""}, "key: expected"),
    ],
)
def test_bad_opinions_are_refused(store, change, message):
    given = {"judge": "ada", "query": "q", "document": "d", "grade": 1, "key": "a"} | change
    with pytest.raises(InputError, match=message):
        store.add(**given)
    assert store.log() == []


def test_other_files_are_refused(tmp_path):
    with pytest.raises(StoreError, match="there is no such file"):
        JudgmentStore(tmp_path / "none.sqlite", create=False)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="found another SQLite file"):
        JudgmentStore(tmp_path / "other.sqlite")
    (tmp_path / "text.sqlite").write_text("no database, but long enough to be looked at" * 20)
    with pytest.raises(StoreError, match="not a database"):
        JudgmentStore(tmp_path / "text.sqlite")


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "judgments.sqlite"
    code = """
        import sys
        from genm.judge.store import JudgmentStore
        store = JudgmentStore(sys.argv[1])
        for i in range(10**6):
            store.add("ada", "q", f"d{i}", i % 4, key=f"{i}")
            print(i, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told = [int(process.stdout.readline()) for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().split("\n")[:-1] if line]
    with JudgmentStore(path) as store:
        kept = {one.document for one in store.opinions()}
    assert {f"d{i}" for i in told} <= kept


def test_the_lower_median_of_people_counts():
    rows = [opinion(1, "ada", 3), opinion(2, "bob", 1)]
    (found,) = settle(rows)
    assert (found.grade, found.n_judges, found.confidence, found.is_disputed) == (1, 2, 0.5, True)
    (found,) = settle([*rows, opinion(3, "cyd", 3)])
    assert (found.grade, found.confidence) == (3, pytest.approx(2 / 3))


def test_people_come_before_models_and_decisions_before_people():
    model = opinion(1, "gpt", 3, source="model:gpt")
    assert (settle([model])[0].grade, settle([model])[0].source) == (3, "model:gpt")
    person = opinion(2, "ada", 0)
    assert (settle([model, person])[0].grade, settle([model, person])[0].source) == (0, "person")
    decided = settle([model, person, opinion(3, "bob", 2), opinion(4, "cyd", 1, action="decide")])[0]
    assert (decided.grade, decided.source, decided.is_disputed) == (1, "decided", False)


def test_skipping_is_no_judgment():
    rows = [opinion(1, "ada", None, action="skip"), opinion(2, "bob", None, action="unsure")]
    assert settle(rows) == []


def test_judgments_become_qrels():
    rows = [opinion(1, "ada", 2), opinion(2, "ada", 0, document="e"), opinion(3, "ada", 1, query="p")]
    assert qrels_of(settle(rows)).to_dict() == {"p": {"d": 1}, "q": {"d": 2, "e": 0}}


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([0, 1, None])), max_size=20)
)
def test_undo_is_a_stack_for_each_judge(steps):
    # None takes the judge's last opinion back; the slow way keeps a stack for each judge
    log, stacks = [], {"a": [], "b": []}
    for sequence, (judge, document, grade) in enumerate(steps, 1):
        stack = stacks[judge]
        if grade is not None:
            log.append(opinion(sequence, judge, grade, document=document))
            stack.append(log[-1])
        elif stack:
            back = stack.pop()
            log.append(opinion(sequence, judge, None, document=back.document, action="undo", undoes=back.sequence))
    expected = {}
    for one in sorted((one for stack in stacks.values() for one in stack), key=lambda one: one.sequence):
        expected[one.judge, one.document] = one
    assert standing(log) == sorted(expected.values(), key=lambda one: one.sequence)


def test_a_damaged_schema_is_refused_in_one_line(tmp_path):
    """SQLite quotes the schema in its message: several lines of it, or bytes that are no text."""
    path = tmp_path / "judgments.sqlite"
    with JudgmentStore(path) as store:
        store.add("ann", "q", "d", 1, key="1")
    content = path.read_bytes()
    for damage in (b"[", b"\xda["):
        path.write_bytes(content.replace(b"REFERENCES", damage.ljust(10)))
        with pytest.raises(StoreError) as caught:
            JudgmentStore(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


def graded_by_model(sequence, document, grade, confidence):
    key, source = f"k{sequence}", "model:gpt"
    return Opinion(sequence, key, 0, "gpt", source, "q", document, "grade", grade, confidence, "", None)


def test_a_models_grade_counts_by_what_people_say_of_such_grades():
    alone = settle([graded_by_model(1, "a", 2, 0.9), graded_by_model(2, "b", 0, 0.9)])
    assert [one.probability for one in alone] == pytest.approx([0.9, 0.1]), "without people its own word counts"
    sample = [graded_by_model(10 + i, f"s{i}", 2, 0.9) for i in range(8)]
    people = [opinion(20 + i, "ada", int(i < 2), document=f"s{i}") for i in range(8)]
    found = {one.document: one for one in settle([graded_by_model(1, "a", 2, 0.9), *sample, *people])}
    assert found["a"].probability == pytest.approx((2 + 2 * 0.9) / (8 + 2))
    assert [found[f"s{i}"].probability for i in range(8)] == [1, 1, 0, 0, 0, 0, 0, 0], "people are certain"
    unsure = settle([graded_by_model(1, "a", 3, 0.5), *sample, *people])[0]
    assert unsure.probability == 0.5, "a document that speaks to the model gains nothing by the sample"


def test_only_uncertain_judgments_give_qrels_probabilities():
    people = [opinion(1, "ada", 2), opinion(2, "ada", 0, document="e")]
    assert qrels_of(settle(people)).probability is None
    mixed = qrels_of(settle([*people, graded_by_model(3, "f", 1, 0.8)]))
    assert np.array_equal(mixed.probability, [np.nan, np.nan, 0.8], equal_nan=True)
