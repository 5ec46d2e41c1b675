"""Every command of docs/explain.md is run, on the sample that its figures belong to."""

import os
import random
import re
from pathlib import Path

import pytest
from console_pages import blurred, run_all, write
from problems import made_up

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"


def write_sample(folder):
    """Two hundred queries; bm25 and dense see different documents, splade nearly what bm25 sees."""
    draw = random.Random(20240302)
    qrels, runs = [], {"bm25": [], "dense": [], "splade": []}
    for q in range(1, 201):
        docs = draw.sample(range(1, 400), 40)
        relevant = set(docs[:5])
        qrels += [f"{q} 0 d{doc:03} {int(doc in relevant)}" for doc in docs[:20]]
        scores = {
            name: {doc: draw.gauss(1.6 if doc in seen else 0.0, 1.0) for doc in docs}
            for name, seen in (("bm25", docs[:3]), ("dense", docs[2:5]))
        }
        scores["splade"] = {doc: score + draw.gauss(0.0, 0.08) for doc, score in scores["bm25"].items()}
        for name, scale in (("bm25", 7.0), ("dense", 0.2), ("splade", 3.0)):
            top = sorted(docs, key=scores[name].__getitem__, reverse=True)[:25]
            runs[name] += [
                f"{q} Q0 d{doc:03} {r} {scale * scores[name][doc]:.6f} {name}" for r, doc in enumerate(top, 1)
            ]
    (folder / "qrels.txt").write_text("\n".join(qrels) + "\n")
    for name, lines in runs.items():
        (folder / f"{name}.trec").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def outcomes(genm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain-page")
    write_sample(folder)
    return run_all(genm, PAGE, folder)


def test_commands_succeed(outcomes):
    assert [command.split()[1] for command, *_ in outcomes] == ["fit", "explain", "explain"]
    for command, _, done, _ in outcomes:
        assert done.code == 0, (command, done.err)


def test_the_page_shows_what_is_printed(outcomes):
    if os.environ.get("GENM_WRITE_DOCS"):
        write(PAGE, outcomes)
    for command, shown, _, printed in outcomes:
        assert without_pictures(blurred(printed)) == without_pictures(blurred(shown)), f"{command}\n{printed}"


def without_pictures(text):
    """Return the text without bars and strips, which follow the figures."""
    return " ".join("".join(" " if letter in "█▏▎▍▌▋▊▉├┤●│" else letter for letter in text).split())


def test_the_python_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code[1], "docs/explain.md", "exec"), {"aligned": made_up(0, n_queries=12)})
    printed = capsys.readouterr().out
    assert printed.startswith("r0 0.")
