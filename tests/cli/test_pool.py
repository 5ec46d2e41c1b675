"""`genm pool` and `genm clicks` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    runs = {
        "a": "q1 Q0 d1 1 3 a\nq1 Q0 d2 2 2 a\nq1 Q0 d3 3 1 a\nq2 Q0 d1 1 2 a\nq2 Q0 d4 2 1 a\n",
        "b": "q1 Q0 d3 1 3 b\nq1 Q0 d2 2 2 b\nq1 Q0 d5 3 1 b\nq2 Q0 d4 1 2 b\nq2 Q0 d1 2 1 b\n",
        "qrels": "q1 0 d1 1\nq1 0 d3 0\n",
    }
    for name, text in runs.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in runs}


def test_pairs_come_from_runs_alone(genm: Any, files: dict[str, str], tmp_path: Path) -> None:
    done = genm("pool", f"a={files['a']}", f"b={files['b']}", "-n", "3", "-o", str(tmp_path / "p.tsv"))
    assert done.code == 0
    assert "3 pairs to judge for weights, by mtc" in done.out
    assert len((tmp_path / "p.tsv").read_text().splitlines()) == 4


def test_json_tells_pairs_and_estimate(genm: Any, files: dict[str, str]) -> None:
    done = genm(
        "pool",
        f"a={files['a']}",
        f"b={files['b']}",
        "--qrels",
        files["qrels"],
        "--compare",
        "a,b",
        "--format",
        "json",
    )
    document = json.loads(done.out)
    assert document["target"] == ["a", "b"]
    assert document["judged"] == 2
    assert ("q1", "d1") not in {(pair["query_id"], pair["doc_id"]) for pair in document["pairs"]}
    assert document["estimate"]["systems"] == ["a", "b"]
    assert document["estimate"]["low"] < document["estimate"]["difference"] < document["estimate"]["high"]


def test_pairs_go_to_standard_output(genm: Any, files: dict[str, str]) -> None:
    done = genm("pool", f"a={files['a']}", f"b={files['b']}", "-n", "2", "-o", "-")
    assert done.out.splitlines()[0] == "query_id\tdoc_id\tprobability\tusefulness"
    assert len(done.out.splitlines()) == 3


def test_current_weights_need_a_comparison(genm: Any, files: dict[str, str]) -> None:
    done = genm("pool", f"a={files['a']}", f"b={files['b']}", "--current", "a=1,b=2")
    assert done.code == 2
    assert "--compare" in done.err
    done = genm(
        "pool", f"a={files['a']}", f"b={files['b']}", "--current", "a=1,b=2", "--compare", "current,equal",
        "--format", "tsv",
    )  # fmt: skip
    assert done.code == 0


def test_clicks_become_judgments(genm: Any, tmp_path: Path) -> None:
    lines = [
        json.dumps({"query": "q1", "docs": docs, "clicks": docs[: 1 + (docs[0] == "d1")][-1:]})
        for docs in (["d1", "d2"], ["d2", "d1"]) * 10
    ]
    log, qrels = tmp_path / "log.jsonl", tmp_path / "c.qrels"
    log.write_text("\n".join(lines))
    done = genm("clicks", str(log), "-o", str(qrels), "--format", "json")
    assert done.code == 0
    assert json.loads(done.out)["judgments"] == 2
    assert len(qrels.read_text().splitlines()) == 2
    done = genm("clicks", str(log), "-o", "-", "--model", "coec")
    assert len(done.out.splitlines()) == 2
    assert genm("clicks", str(log), "-o", str(qrels), "--model", "no").code == 2
