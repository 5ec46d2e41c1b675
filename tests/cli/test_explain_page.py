"""Every command of docs/explain.md is run, on the sample that its figures belong to."""

import os
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from console_pages import blurred, run_all, tables, write
from problems import made_up

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
RANKERS = ("bm25", "dense", "splade")
NAME, NAMES, LOSS = r"\S+", r"[\w#]+(?:(?:, | and )[\w#]+)*", r"# AP, joint #% interval # to #"
SENTENCES = [
    re.compile(form)
    for form in (
        rf"Keep {NAME}: beside the others it is worth # AP \(joint #% interval # to #\)\.",
        rf"Leave out {NAME}: the others do better without it, by # AP \(joint #% interval # to #\)\.",
        rf"Leave out {NAME}: that costs nothing \({LOSS}; less than # counts as nothing\)\.",
        rf"{NAME}: too few queries to tell what it is worth beside the others \({LOSS}\)\.",
        rf"That holds for each of {NAMES} by itself, not for all together: they may stand in for each other\.",
        rf"{NAME} and {NAME} rank almost alike: rank correlation #, #% of their top # in common\.",
        rf"{NAMES} (?:alone is|are) enough: .*; chosen out of # subsets, it loses at most #\.",
        rf"{NAMES} (?:alone )?may be enough: .*; but chosen out of # subsets, it may lose up to #: more "
        r"queries would tell\.",
        r"All # stay: each of the # smaller choices looked at, taken by itself, is significantly worse \(.*\)\.",
    )
]


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
    (_, shown, _, printed), *explained = outcomes
    assert blurred(printed) == blurred(shown)
    for command, shown, _, printed in explained:
        assert tables(printed) == tables(shown), f"{command}\n{printed}"
        assert titles(printed) == titles(shown), f"{command}\n{printed}"


def titles(text):
    """Return the lines above the tables."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return [blurred(lines[0]) for lines, (head, *_) in pairwise(blocks) if len(lines) == 1 and "  " in head]


def test_every_sentence_is_one_that_the_code_says(outcomes):
    """Which one it is follows the figures; the choice is tests/explain/test_text.py's matter."""
    _, shown, _, printed = outcomes[1]
    for text in (shown, printed):
        said = [block for block in text.split("\n\n") if block.endswith(".")]
        assert [one for one in said if not any(form.fullmatch(blurred(one)) for form in SENTENCES)] == []
        for ranker in RANKERS:
            assert (
                sum(one.startswith((f"Keep {ranker}:", f"Leave out {ranker}:", f"{ranker}:")) for one in said) == 1
            )


def test_the_python_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code[1], "docs/explain.md", "exec"), {"aligned": made_up(0, n_queries=12)})
    printed = capsys.readouterr().out
    assert printed.startswith("r0 0.")
