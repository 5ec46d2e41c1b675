"""Logs of clicks: every format, bounded memory, what is left out, and what is written."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

import genm
from genm.errors import FormatError, InputError
from genm.judge import (
    ClickCounts,
    ClickJudgment,
    click_logs,
    judge_by_clicks,
    read_clicks,
    with_query_ids,
    write_click_judgments,
)

DOCS = ["d1", "d2", "d3"]


def entries(n: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    """Lists in random order for one query; d1 is nearly always clicked where it is seen, d3 hardly ever."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(n):
        docs = [DOCS[i] for i in rng.permutation(3)]
        chance = {"d1": 0.9, "d2": 0.4, "d3": 0.05}
        clicks = [d for r, d in enumerate(docs) if rng.random() < chance[d] / (r + 1)]
        made.append({"query": "fast cars", "docs": docs, "clicks": clicks})
    return made


def as_jsonl(path: Path, made: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in made))
    return str(path)


@pytest.fixture
def log(tmp_path: Path) -> str:
    return as_jsonl(tmp_path / "log.jsonl", entries())


def as_csv(path: Path, made: list[dict[str, Any]], *, session: bool) -> str:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["query", "doc_id", "position", "clicked", *(["session"] if session else [])])
        for s, one in enumerate(made):
            for r, doc in enumerate(one["docs"], 1):
                row = [one["query"], doc, r, int(doc in one["clicks"])]
                table.writerow([*row, *([s] if session else [])])
    return str(path)


def as_ubi(folder: Path, made: list[dict[str, Any]]) -> list[str]:
    queries, events = [], []
    for s, one in enumerate(made):
        search = {"query_id": f"s{s}", "user_query": one["query"], "query_response_hit_ids": one["docs"]}
        queries.append(search if s % 2 else {"_index": "ubi_queries", "_source": search})
        events.append({"action_name": "scroll", "query_id": f"s{s}"})
        for doc in one["clicks"]:
            place = {"object": {"object_id": doc}, "position": {"ordinal": 1}}
            events.append({"action_name": "click", "query_id": f"s{s}", "event_attributes": place})
    return [as_jsonl(folder / "queries.jsonl", queries), as_jsonl(folder / "events.jsonl", events)]


def test_all_formats_give_the_same_counts(tmp_path: Path, log: str) -> None:
    whole = read_clicks([log])
    assert whole.n_shown == 60
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(log).read_bytes()))
    positions = [{**e, "clicks": [e["docs"].index(d) + 1 for d in e["clicks"]]} for e in entries()]
    logs = {
        "gzip": [str(packed)],
        "positions": [as_jsonl(tmp_path / "places.jsonl", positions)],
        "csv": [as_csv(tmp_path / "a.csv", entries(), session=False)],
        "csv with sessions": [as_csv(tmp_path / "b.csv", entries(), session=True)],
        "ubi": as_ubi(tmp_path, entries()),
    }
    for name, paths in logs.items():
        assert read_clicks(paths).lists == whole.lists, name


def test_judgments_follow_the_clicks(log: str) -> None:
    found = judge_by_clicks(log)
    by_doc = {one.doc_id: one for one in found.judgments}
    assert by_doc["d1"].relevance == 1.0
    assert by_doc["d1"].relevance > by_doc["d2"].relevance > by_doc["d3"].relevance
    assert 0.0 < by_doc["d1"].confidence < 1.0
    assert found.to_qrels().to_dict() == {"fast cars": {d: by_doc[d].grade for d in by_doc}}
    assert by_doc["d1"].grade == 3
    assert by_doc["d1"].probability > 0.9 > 0.5 > by_doc["d3"].probability
    assert ClickJudgment("q", "d", 0.5, 0.3).probability == 0.5
    assert ClickJudgment("q", "d", 0.8, 1.0).probability == 1.0
    assert found.n_queries == 1
    more = {one.doc_id: one for one in judge_by_clicks(read_clicks([log] * 5)).judgments}
    assert more["d2"].confidence > by_doc["d2"].confidence


def test_queries_with_little_evidence_are_left_out_and_counted(tmp_path: Path, log: str) -> None:
    rare = as_jsonl(tmp_path / "rare.jsonl", [{"query": "rare", "docs": DOCS, "clicks": ["d1"]}] * 5)
    found = judge_by_clicks([log, rare])
    assert found.n_left_out == 1
    assert {one.query for one in found.judgments} == {"fast cars"}
    assert "1 queries have fewer than 10 lists or 3 clicks" in next(n.text for n in found.notes)
    with pytest.raises(InputError, match="found none among 1 queries"):
        judge_by_clicks(rare)


def test_memory_is_bounded() -> None:
    counts = ClickCounts(most_lists=50)
    for i in range(1000):
        counts.add(f"q{i % 100}", [f"d{i}", "d"], [0])
        counts.add("frequent", ["d1", "d2"], [1])
        assert counts.n_cells <= 50
    assert counts.n_cells == sum(map(len, counts.lists.values()))
    assert counts.n_dropped > 0
    assert counts.n_lists("frequent") == 1000
    one = ClickCounts(most_lists=50)
    for i in range(200):
        one.add("q", [f"d{i}"], [0])
    assert one.n_cells <= 50


def test_searches_that_are_too_old_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_logs, "OPEN_SEARCHES", 10)
    counts = read_clicks(as_ubi(tmp_path, entries()))
    assert counts.n_shown == 60
    assert counts.n_without_search > 0
    assert counts.n_other_actions == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ('{"query": "q", "docs": ["d"]\n', "expected a JSON object on each line"),
        ('{"query": "q", "docs": "d"}\n', "a list of documents as docs"),
        ('{"query": "q", "docs": ["d"], "clicks": ["e"]}\n', "clicks on the 1 documents shown"),
        ('{"query": "q", "docs": ["d"], "clicks": [2]}\n', "clicks on the 1 documents shown"),
        ('{"query": "q", "docs": ["d"], "clicks": 1}\n', "a list of clicks"),
        ('{"docs": ["d"]}\n', "text as query"),
        ('{"action_name": "click", "query_id": "s"}\n', "text as object_id"),
        ("query,position,clicked\nq,1,0\n", "Add the column doc_id"),
        ("query,doc_id,position,clicked\nq,d,first,0\n", "log:2: expected a whole number as position"),
        (f"query,doc_id,position,clicked\nq,d,{'1' * 5000},0\n", "log:2: expected a whole number as position"),
        ("query,doc_id,position,clicked\n,d,1,0\n", "log:2: expected text as query"),
        ("query,doc_id,position,clicked\nq,d,1\n", "log:2: expected 4 columns; found 3"),
        ("query,doc_id,position,clicked\nq,d,1,0,x\n", "log:2: expected 4 columns; found 5"),
        ("query,doc_id,query,position,clicked\nq,d,p,1,0\n", "expected each column once"),
        ('query,doc_id,position,clicked\n"q"x,d,1,0\n', "log:2: expected CSV"),
        (f"query,doc_id,position,clicked\n{'q' * 140_000},d,1,0\n", "log:2: expected CSV; found field larger"),
        ("query,doc_id,position,clicked\nq\x1b,d,1,0\n", r"query without control characters; found .q.x1b"),
        ('{"query": "q", "docs": ["d\\u0000"]}\n', r"docs without control characters; found .d.x00"),
        ('{"query": "\\ud800", "docs": ["d"]}\n', "query without control characters"),
        ('{"query": "q", "query": "p", "docs": ["d"]}\n', r"\('query' twice\)"),
        ('{"query": "q", "docs": ["d"], "clicks": [[1]]}\n', "clicks on the 1 documents shown"),
        (f'{{"docs": {"[" * 100_000}\n', "nested too deeply"),
        (f'{{"docs": [{"1" * 5000}]}}\n', "4300 digits"),
        ('{"_source": 1}\n', "a JSON object on each line"),
        ('{"_source": null}\n', "a JSON object on each line"),
        ('{"action_name": ["click"]}\n', "text as action_name"),
    ],
)
def test_what_is_wrong_with_a_log_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_clicks([str(path)])


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(b"not packed")
    with pytest.raises(FormatError, match="expected a header with query, doc_id, position and clicked"):
        read_clicks([str(path)])


def test_a_packed_log_that_is_cut_short_is_refused(tmp_path: Path, log: str) -> None:
    """The reader of the zstandard library ends without a word where the data do."""
    content = Path(log).read_bytes()
    for name, pack in (("a.gz", gzip.compress), ("a.zst", zstandard.compress)):
        path = tmp_path / name
        path.write_bytes(pack(content)[:-9])
        with pytest.raises(FormatError, match="stop in the middle"):
            read_clicks([str(path)])


def test_packed_logs_may_follow_each_other_in_one_file(tmp_path: Path, log: str) -> None:
    content = Path(log).read_bytes()
    for name, pack in (("a.gz", gzip.compress), ("a.zst", zstandard.compress), ("named.otherwise", gzip.compress)):
        path = tmp_path / name
        path.write_bytes(pack(content) * 2)
        assert read_clicks([str(path)]).n_shown == 120, name


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"query,doc_id,position,clicked\n" + b"q,d,1,1\n" * 20_000))
    monkeypatch.setenv("GENM_MAX_UNPACKED", "100K")
    with pytest.raises(FormatError, match="unpacks to at most 102,400 bytes"):
        read_clicks([str(path)])
    monkeypatch.setenv("GENM_MAX_UNPACKED", "10M")
    assert read_clicks([str(path)]).n_shown == 20_000
    monkeypatch.setattr(click_logs, "LONGEST_LINE", 1000)
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(FormatError, match=r"log\.gz:1: expected lines of at most 1,000 characters"):
        read_clicks([str(path)])


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path, found in (
        (str(tmp_path), "a folder"),
        (str(tmp_path / "x"), "no such file"),
        ("a\0b", "no file can"),
    ):
        with pytest.raises(FormatError, match=found):
            read_clicks([path])


def test_a_search_that_comes_again_counts_again(tmp_path: Path) -> None:
    search = {"query_id": "s", "user_query": "cars", "query_response_hit_ids": ["d1", "d2"]}
    click = {"action_name": "click", "query_id": "s", "event_attributes": {"object": {"object_id": "d9"}}}
    counts = read_clicks([as_jsonl(tmp_path / "log", [search, click, search])])
    assert counts.lists == {"cars": {(("d1", "d2"), 0): 2}}
    assert counts.n_not_shown == 1


def test_judgments_are_written_and_read_again(tmp_path: Path, log: str) -> None:
    found = judge_by_clicks(log)
    queries = tmp_path / "queries.tsv"
    queries.write_text("7\tFast  Cars\n8\tother\n")
    named = with_query_ids(found, str(queries))
    write_click_judgments(named, tmp_path / "q.qrels")
    assert genm.read_qrels(tmp_path / "q.qrels") == named.to_qrels()
    write_click_judgments(found, tmp_path / "q.csv")
    fractions = genm.read_qrels(tmp_path / "q.csv", grades="from=0.5")
    assert fractions["fast cars"] == {one.doc_id: int(one.relevance >= 0.5) for one in found.judgments}
    assert fractions.provenance is not None
    assert fractions.provenance.names == ("clicks-pbm",)
    assert fractions.provenance.confidence == pytest.approx([one.confidence for one in found.judgments], abs=1e-4)
    write_click_judgments(found, tmp_path / "q.tsv")
    assert genm.read_qrels(tmp_path / "q.tsv", grades="from=0.5") == fractions


def test_queries_that_nobody_typed_are_refused(tmp_path: Path, log: str) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("7\tslow cars\n")
    with pytest.raises(InputError, match="found none of 1"):
        with_query_ids(judge_by_clicks(log), str(queries))


def test_limits_below_0_are_refused(log: str) -> None:
    with pytest.raises(InputError, match=r"least_lists .* found -5"):
        judge_by_clicks(log, least_lists=-5)
    with pytest.raises(InputError, match=r"least_clicks .* found -1"):
        judge_by_clicks(log, least_clicks=-1)


def test_an_unknown_model_is_refused(log: str) -> None:
    with pytest.raises(InputError, match="expected one of pbm, dbn, coec"):
        judge_by_clicks(log, model="ubm")
