"""The page on other tools is run from top to bottom."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
NEEDS = {
    "Notebooks": "matplotlib",
    "pandas and polars": "pandas",
    "ranx": "ranx",
    "scikit-learn": "sklearn",
    "PyTerrier": "pyterrier",
    "ir_measures": "ir_measures",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files and names that the page assumes."""
    draw = np.random.default_rng(7)
    rows = [(q, f"d{i}", int(draw.random() < 0.3)) for q in range(1, 9) for i in range(12)]
    folder = tmp_path_factory.mktemp("interop")
    columns = {}
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    for name, noise in (("bm25", 0.5), ("dense", 1.0)):
        columns[name] = [g + draw.normal(0, noise) for _, _, g in rows]
        lines = [f"{q} Q0 {d} 1 {s:.6f} {name}\n" for (q, d, _), s in zip(rows, columns[name], strict=True)]
        (folder / f"{name}.trec").write_text("".join(lines))
    names = {
        "X": np.column_stack(list(columns.values())),
        "y": np.array([g for _, _, g in rows]),
        "qid": np.array([q for q, _, _ in rows]),
        "_rows": rows,
        "_columns": columns,
        "_folder": folder,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks_of(SECTIONS[0]):  # what stands above the sections, which all of them use
            exec(compile(block, "interop.md", "exec"), names)
    return names


def blocks_of(text: str) -> list[str]:
    found: list[str] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def add_pyterrier(space: dict[str, Any]) -> None:
    import pandas as pd
    import pyterrier as pt

    frame = pd.DataFrame(space["_rows"], columns=["qid", "docno", "label"]).astype({"qid": str})
    topics = pd.DataFrame({"qid": frame["qid"].unique(), "query": "words"})
    table = frame[["qid", "docno"]].assign(query="words", **space["_columns"])
    for name in ("bm25", "dense"):
        results = table[["qid", "query", "docno"]].assign(score=table[name])
        space[name] = pt.Transformer.from_df(pt.model.add_ranks(results))
    space |= {"train_topics": topics, "topics": topics, "train_qrels": frame}
    space["first_stage"] = pt.Transformer.from_df(table.assign(score=0.0, rank=0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda text: text.split("\n", 1)[0])
def test_the_page_runs(
    section: str, space: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    title = section.split("\n", 1)[0]
    library = NEEDS.get(title)
    if library == "ranx":
        request.getfixturevalue("ranx")
    elif library is not None:
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(space["_folder"])
    names = dict(space)
    if title == "PyTerrier":
        add_pyterrier(names)
    for block in blocks_of(section):
        exec(compile(block, title, "exec"), names)
    check = CHECKS[title]
    assert check(names), title


def same(run: Any, other: Any) -> bool:
    from genm.interop import to_dict

    return bool(to_dict(run) == to_dict(other))


CHECKS = {
    "Notebooks": lambda n: (
        set(n["fuser"].ranker_weights_) == {"bm25", "dense"} and len(n["held_out"].query_ids) == 8
    ),
    "pandas and polars": lambda n: same(n["again"], n["fused"]) and len(n["grades"]) == 96,
    "Dictionaries: pytrec_eval, BEIR": lambda n: same(n["back"], n["fused"]),
    "ranx": lambda n: same(n["ours"], n["fused"]),
    "ir_measures": lambda n: n["best"].to_model().measure == "nDCG@10",
    "scikit-learn": lambda n: 0 < n["quality"] <= 1 and n["model"].rankers == ("x0", "x1"),
    "PyTerrier": lambda n: len(n["results"]) == 80 and set(n["ranker"][-1].weights_) == {"bm25", "dense"},
}
