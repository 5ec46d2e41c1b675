"""Pulling as a whole: retries, resuming, failures, changes, and what is written."""

import errno
import json
import os
import threading

import pytest

from genm.connect import PullError, pull, pull_runs
from genm.connect.engine import Answer, check_depth
from genm.connect.http import retry_after
from genm.connect.journal import Journal
from genm.errors import EngineError, InputError, WrongTypeError
from genm.read import read_run

QUERIES = {f"q{i}": f"text {i}" for i in range(6)}


def ranked(query, depth):
    """Three documents, whose scores depend on the query."""
    return [(f"d{n}", len(query) / n) for n in (1, 2, 3)][:depth]


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Keep the pauses that a pull would make, and make none."""
    made = []
    monkeypatch.setattr(pull_runs._Pacer, "sleep", lambda _, seconds: made.append(seconds) if seconds > 0 else None)
    return made


def failing(times, **fault):
    """Return a source that fails so many times for each query, and then answers."""
    left = dict.fromkeys(QUERIES.values(), times)
    lock = threading.Lock()

    def source(query, depth):
        with lock:
            left[query] -= 1
            if left[query] >= 0:
                raise EngineError("engine: HTTP status 503.", **fault)
        return ranked(query, depth)

    return source


def test_a_callable_gives_a_run_for_each_name():
    pulled = pull({"a": ranked, "b": lambda query, depth: {"x": 1.5}}, QUERIES, depth=2)
    assert list(pulled.runs) == ["a", "b"]
    assert pulled.runs["a"]["q3"] == {"d1": 6.0, "d2": 3.0}
    assert pulled.runs["b"]["q0"] == {"x": 1.5}
    assert pulled.queries == QUERIES
    assert (pulled.files, pulled.failures, pulled.notes) == ((), (), ())


def test_a_second_pull_writes_the_same_bytes(tmp_path):
    first = pull({"a": ranked}, QUERIES, tmp_path / "one", concurrency=4)
    second = pull({"a": ranked}, QUERIES, tmp_path / "two")
    assert [path.name for path in first.files] == ["a.trec", "queries.tsv", "pull.json"]
    for one, two in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    again = pull({"a": ranked}, QUERIES, tmp_path / "one")
    assert [path.read_bytes() for path in again.files] == [path.read_bytes() for path in second.files]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["a.trec", "pull.json", "queries.tsv"]
    assert read_run(tmp_path / "one" / "a.trec") == first.runs["a"]


def test_a_busy_engine_is_asked_again_later_each_time(pauses):
    pulled = pull({"a": failing(2, retry=True)}, {"q1": "text 1"}, retries=2)
    assert len(pulled.runs["a"]) == 1
    assert len(pauses) == 2
    assert pull_runs.FIRST_PAUSE / 2 <= pauses[0] <= pull_runs.FIRST_PAUSE
    assert pull_runs.FIRST_PAUSE <= pauses[1] <= 2 * pull_runs.FIRST_PAUSE


def test_the_engine_says_how_long_to_wait(pauses):
    pull({"a": failing(1, retry=True, after=9.0)}, {"q1": "text 1"})
    assert 9.0 in pauses


def test_an_engine_that_wants_hours_is_left_alone():
    with pytest.raises(EngineError, match="asks to wait 7200 s; resume later"):
        pull({"a": failing(1, retry=True, after=7200.0)}, QUERIES)


def test_pauses_grow_to_a_limit_and_differ():
    pauses = [pull_runs.pause_before(attempt, 0.0) for attempt in range(20)]
    assert max(pauses) <= pull_runs.LONGEST_PAUSE
    assert min(pauses[8:]) >= pull_runs.LONGEST_PAUSE / 2
    assert len(set(pauses)) == len(pauses)


@pytest.mark.parametrize(("value", "least", "most"), [("12", 12, 12), ("", 0, 0), ("soon", 0, 0), ("\u00b2", 0, 0)])
def test_retry_after_is_a_number(value, least, most):
    assert least <= retry_after(value) <= most


def test_retry_after_may_be_a_date():
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") > 1e9


def test_a_rate_spaces_the_searches(pauses, monkeypatch):
    monkeypatch.setattr(pull_runs.time, "monotonic", lambda: 100.0)  # no time passes, however busy the machine is
    pull({"a": ranked}, QUERIES, rate=2.0)
    assert sorted(pauses) == [0.5, 1.0, 1.5, 2.0, 2.5]


def broken_for(*query_ids):
    texts = {QUERIES[query_id] for query_id in query_ids}

    def source(query, depth):
        if query in texts:
            raise EngineError("engine: HTTP status 400: bad query.")
        return ranked(query, depth)

    return source


def test_failures_write_no_run_and_can_be_resumed(tmp_path):
    with pytest.raises(
        PullError, match=r"2 of 12 searches failed, so no run was written; the first is b, query 'q1'"
    ) as e:
        pull({"a": ranked, "b": broken_for("q1", "q4")}, QUERIES, tmp_path)
    assert [(one.ranker, one.query_id) for one in e.value.failures] == [("b", "q1"), ("b", "q4")]
    assert not list(tmp_path.glob("*.trec"))
    asked = []

    def mended(query, depth):
        asked.append(query)
        return ranked(query, depth)

    pulled = pull({"a": mended, "b": mended}, QUERIES, tmp_path, resume=True)
    assert asked == ["text 1", "text 4"]
    whole = pull({"a": ranked, "b": ranked}, QUERIES, tmp_path / "whole")
    assert pulled.runs == whole.runs
    assert not (tmp_path / "pull.journal").exists()
    for name in ("a.trec", "b.trec", "pull.json"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_failed_queries_can_be_left_out_of_all_runs(tmp_path):
    pulled = pull({"a": ranked, "b": broken_for("q1")}, QUERIES, tmp_path, skip_failed=True)
    assert set(pulled.runs["a"]) == set(pulled.runs["b"]) == set(QUERIES) - {"q1"}
    assert "1 queries failed and were left out: q1" in [note.text for note in pulled.notes]
    record = json.loads((tmp_path / "pull.json").read_text(encoding="utf-8"))
    assert record["failures"][0]["query_id"] == "q1"


def test_a_fault_that_all_would_meet_stops_at_once(tmp_path):
    asked = []

    def source(query, depth):
        asked.append(query)
        raise EngineError("engine: HTTP status 401.", fatal=True)

    with pytest.raises(EngineError, match="401"):
        pull({"a": source}, {f"q{i}": "x" for i in range(500)}, tmp_path)
    assert len(asked) < 5


def test_failures_alone_stop_a_pull():
    with pytest.raises(EngineError, match="400"):
        pull({"a": broken_for(*QUERIES)}, {f"q{i}": "text 1" for i in range(500)})


def test_an_exception_of_a_source_passes_and_what_is_finished_is_kept(tmp_path):
    def source(query, depth):
        if query == "text 3":
            raise KeyError("own")
        return ranked(query, depth)

    with pytest.raises(KeyError, match="own"):
        pull({"a": source}, QUERIES, tmp_path)
    lines = (tmp_path / "pull.journal").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 3
    with pytest.raises(InputError, match=r"unfinished pull; found one\. Continue it with --resume"):
        pull({"a": ranked}, QUERIES, tmp_path)
    assert pull({"a": ranked}, QUERIES, tmp_path, resume=True).runs["a"]["q3"] == {"d1": 6.0, "d2": 3.0, "d3": 2.0}


def interrupted(folder, **options):
    """Leave a pull that was killed in the middle of a line."""
    with pytest.raises(PullError):
        pull({"a": broken_for("q5")}, QUERIES, folder, **options)
    with (folder / "pull.journal").open("ab") as file:
        file.write(b'{"ranker": "a", "que')


def test_what_a_killed_process_left_of_its_last_line_is_dropped(tmp_path):
    interrupted(tmp_path)
    pulled = pull({"a": ranked}, QUERIES, tmp_path, resume=True)
    assert pulled.runs == pull({"a": ranked}, QUERIES).runs


def test_resuming_something_else_is_refused_with_what_differs(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(InputError, match="found other rankers"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True, depth=7)
    with pytest.raises(InputError, match="found other queries"):
        pull({"a": ranked}, {**QUERIES, "q0": "other"}, tmp_path, resume=True)
    with pytest.raises(InputError, match="found other vectors"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True, vectors=lambda texts: [[1.0]] * len(texts))
    with pytest.raises(InputError, match="found other duplicates"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True, duplicates="max")


@pytest.mark.parametrize("content", [b"my notes", b"[]\n", b'{"format": "other"}\n', b"\xff\n"])
def test_another_file_in_place_of_the_journal_is_refused(tmp_path, content):
    (tmp_path / "pull.journal").write_bytes(content)
    with pytest.raises(InputError, match="Remove the file"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True)


@pytest.mark.parametrize("content", [b"", b'{"for', b'{"format": "genm pull journal", "vers'])
def test_a_process_that_was_killed_at_the_head_leaves_nothing_to_resume(tmp_path, content):
    (tmp_path / "pull.journal").write_bytes(content)
    assert len(pull({"a": ranked}, QUERIES, tmp_path, resume=True).runs["a"]) == 6


def test_a_full_disk_is_said_and_what_is_finished_is_kept(tmp_path, monkeypatch):
    written, write = [], os.write

    def full(handle, data):
        written.append(bytes(data))
        if len(written) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[: len(data) // 2 + 1])  # a write may be short

    with monkeypatch.context() as patch:
        patch.setattr("genm.connect.journal.os.write", full)
        with pytest.raises(
            InputError, match=r"pull\.journal: .*No space left on device\. Make space, then --resume"
        ):
            pull({"a": ranked}, QUERIES, tmp_path)
    assert pull({"a": ranked}, QUERIES, tmp_path, resume=True).runs == pull({"a": ranked}, QUERIES).runs


@pytest.mark.parametrize("line", [b"{}", b"no", b'{"ranker": "a", "query": "q0", "hits": [["d1"]]}', b"[1]"])
def test_a_broken_line_of_the_journal_is_named(tmp_path, line):
    interrupted(tmp_path)
    path = tmp_path / "pull.journal"
    head, *rest = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([head, line, *rest]))
    with pytest.raises(InputError, match=r"pull\.journal:2: expected a finished search"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True)


@pytest.mark.parametrize(("written", "other"), [(b"6.0", b"7.0"), (b'"d1"', b'"d9"'), (b"6.0", b"NaN")])
def test_an_answer_that_was_changed_on_disk_is_not_used(tmp_path, written, other):
    interrupted(tmp_path)
    path = tmp_path / "pull.journal"
    content = path.read_bytes()
    assert written in content
    path.write_bytes(content.replace(written, other))
    with pytest.raises(InputError, match=r"pull\.journal:\d+: expected a finished search; found a broken line"):
        pull({"a": ranked}, QUERIES, tmp_path, resume=True)


def test_a_link_in_place_of_the_journal_is_not_followed(tmp_path):
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "pull.journal").symlink_to(elsewhere)
    for resume in (False, True):
        with pytest.raises(InputError, match="found a link"):
            pull({"a": ranked}, QUERIES, folder, resume=resume)
    assert not elsewhere.exists()


def test_two_pulls_into_one_folder_are_refused(tmp_path):
    with Journal(tmp_path, {}, None, resume=False), pytest.raises(InputError, match="expected no other pull"):
        Journal(tmp_path, {}, None, resume=True)
    assert not (tmp_path / "pull.journal.lock").exists()


def test_a_document_text_is_kept_once(tmp_path):
    with Journal(tmp_path, {}, None, resume=False) as journal:
        journal.add(("a", "q1"), Answer((("d1", 1.0),), {"d1": "long text"}))
        journal.add(("a", "q2"), Answer((("d1", 1.0),), {"d1": "long text"}))
        assert journal.path.read_text(encoding="utf-8").count("long text") == 1
    with Journal(tmp_path, {}, None, resume=True) as journal:
        assert journal.answers["a", "q1"].texts == {"d1": "long text"}


def test_texts_come_along_if_they_are_wanted(tmp_path):
    source = {"a": lambda query, depth: [("d2", 2.0, "two\tlines\nof text"), ("d1", 1.0, "one")]}
    assert pull(source, QUERIES, tmp_path / "without").texts == {}
    pulled = pull(source, QUERIES, tmp_path / "with", texts=True)
    assert pulled.texts == {"d1": "one", "d2": "two\tlines\nof text"}
    assert (tmp_path / "with" / "docs.tsv").read_text(encoding="utf-8") == "d1\tone\nd2\ttwo lines of text\n"


def test_queries_without_documents_are_noted():
    pulled = pull({"a": lambda query, depth: []}, QUERIES)
    assert [note.text for note in pulled.notes] == ["a: 6 queries got no document: q0, q1, q2, q3, and 2 more"]
    assert len(pulled.runs["a"]) == 0


@pytest.mark.parametrize(("rule", "kept"), [("max", 3.0), ("first", 2.0), ("last", 1.0)])
def test_duplicates_are_an_error_unless_a_rule_is_given(rule, kept):
    source = {"a": lambda query, depth: [("d1", 2.0), ("d1", 3.0), ("d1", 1.0)]}
    with pytest.raises(PullError, match="each document once; found 'd1' again"):
        pull(source, {"q": "a"})
    pulled = pull(source, {"q": "a"}, duplicates=rule)
    assert pulled.runs["a"]["q"] == {"d1": kept}
    assert "2 documents came twice" in pulled.notes[0].text


def test_inputs_are_not_written_over(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("q1\ta\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"found the same file as .*queries\.tsv"):
        pull({"a": ranked}, path, tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pull.json").hardlink_to(path)
    with pytest.raises(InputError, match="which would be lost"):
        pull({"a": ranked}, QUERIES, tmp_path / "other", inputs=(str(path),))


def test_wrong_calls_are_refused():
    with pytest.raises(InputError, match="dept: expected one of"):
        pull({"a": ranked}, QUERIES, dept=3)
    with pytest.raises(InputError, match="depth: expected an integer from 1"):
        pull({"a": ranked}, QUERIES, depth=0)
    with pytest.raises(InputError, match="queries: expected a file or"):
        pull({"a": ranked})
    with pytest.raises(InputError, match="source: expected"):
        pull({}, QUERIES)
    with pytest.raises(InputError, match="duplicates: expected one of"):
        pull({"a": ranked}, QUERIES, duplicates="some")
    with pytest.raises(WrongTypeError, match="expected a callable, or a retriever"):
        pull({"a": 3}, QUERIES)
    with pytest.raises(InputError):
        check_depth(True)
