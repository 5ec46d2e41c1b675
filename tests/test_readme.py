"""The README's examples run."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from genm.cli.app import app

README_FILE = Path(__file__).parent.parent / "README.md"
README = README_FILE.read_text(encoding="utf-8")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs and judgments under the names that the README uses, six queries of thirty documents."""
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    relevant = {q: set(rng.choice(30, 4, replace=False).tolist()) for q in range(6)}
    lines = [f"q{q} 0 d{d} 1\n" for q, docs in relevant.items() for d in sorted(docs)]
    for name in ("qrels.txt", "new.qrels"):
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    for name in ("bm25", "dense", "sparse", "new-bm25", "new-dense", "b", "d"):
        rows = [
            f"q{q} Q0 d{d} 0 {rng.normal() + 1.5 * (d in relevant[q]):.4f} x\n" for q in range(6) for d in range(30)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_the_python_example_runs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "'bm25'" in printed
    assert (files / "model.json").is_file()


def test_the_commands_run_in_their_order(files: Path) -> None:
    from typer.testing import CliRunner

    engine = README.split("## From run files to your engine")[1].split("`--target`")[0]
    block = engine + README.split("## On the command line")[1].split("Every command")[0]
    commands = [shlex.split(line.strip(), comments=True) for line in block.splitlines() if "genm " in line]
    assert len(commands) >= 10
    for words in commands:
        # rank and reproduce take minutes and have tests of their own; sample would refuse to replace the files
        if words[1] in ("rank", "reproduce", "sample"):
            continue
        if words[1] == "update":  # goes on with a stream, so it needs a model that holds one
            stream = "fit --method online --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json"
            assert CliRunner().invoke(app, stream.split()).exit_code == 0
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, (words, done.output)


def test_the_figures_are_those_of_the_kept_results() -> None:
    tables = README_FILE.parent / "docs" / "results" / "tables"
    kept = {
        row[0]: row[1:]
        for row in csv.reader((tables / "more-rankers.csv").read_text(encoding="utf-8").splitlines())
    }
    block = README.split("## What to expect")[1].split("##")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if "0." in line]
    rows = [row for row in shown if len(row) == 6]
    names = [
        name for row in rows for name in kept if row[0].startswith(name.split(",")[0].replace("uniform", "equal"))
    ]
    assert names == ["best single ranker", "RRF (k=60)", "uniform weights, min-max", "UnsEnM, z-scores", "gEnM.BAT"]
    assert [row[1:] for row in rows] == [[value.split(" ")[0] for value in kept[name]] for name in names]
    bar = list(csv.DictReader((tables / "bar.csv").read_text(encoding="utf-8").splitlines()))
    n_above = sum(row["above"] == "yes" for row in bar)
    assert f"higher in {n_above} of {len(bar)} rows" in block
