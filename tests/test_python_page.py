"""The page on Python is run from top to bottom."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "python.md"


@pytest.mark.filterwarnings("ignore::genm.errors.ConvergenceWarning")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("genm.evidence.resampling.N_RESAMPLES", 10)
    draw = np.random.default_rng(7)
    rows = [(q, f"d{i}", int(draw.random() < 0.3)) for q in range(1, 11) for i in range(15)]
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows), encoding="utf-8")
    for name, noise in (("bm25", 0.5), ("dense", 1.0)):
        lines = [f"{q} Q0 {d} 1 {g + draw.normal(0, noise):.6f} {name}\n" for q, d, g in rows]
        Path(f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["best"] == max(names["bm25"]["1"], key=names["bm25"]["1"].get)
    assert names["fused"] == names["trained"].fuse([names["bm25"], names["dense"]])
    assert set(names["weights"]) == {"newton", "boost"}
    assert {path.name for path in tmp_path.glob("*.json")} == {"model.json", "model.evidence.json"}
    assert "best single ranker" in capsys.readouterr().out
