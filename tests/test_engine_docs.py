"""The engines' pages are made by the code; a page that differs from it fails here."""

import random
import re
from pathlib import Path

import pytest

from genm.align import Aligned
from genm.export import export_model, targets
from genm.export.pages import example_model, overview, page, training_snippet
from genm.read import run_from_dict

FOLDER = Path(__file__).parents[1] / "docs" / "engines"
ADVICE = "Write the pages again: python -m genm.export.pages docs/engines"


@pytest.mark.parametrize("name", targets())
def test_the_page_is_what_the_code_writes(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == page(targets()[name]), ADVICE


def test_the_overview_lists_every_page_and_no_page_is_left_over() -> None:
    assert (FOLDER / "index.md").read_text(encoding="utf-8") == overview(), ADVICE
    assert {path.stem for path in FOLDER.glob("*.md")} == {"index", *targets()}


@pytest.mark.parametrize("name", targets())
def test_the_page_ends_with_a_query_that_holds_the_weights(name: str) -> None:
    text = page(targets()[name])
    model = example_model(targets()[name])
    written = export_model(model, name, settings=targets()[name].guide.settings).text
    assert written.rstrip() in text
    if not targets()[name].weights.equal and name != "azure":  # Azure: relative to the text's; RRF: not written
        assert re.search(r"0\.65", written)


@pytest.mark.parametrize("name", targets())
def test_the_training_snippet_runs(name: str) -> None:
    target, draw = targets()[name], random.Random(0)
    runs = {
        ranker: run_from_dict({"q": {f"d{i}": draw.random() for i in range(5)}}, name=ranker)
        for ranker in target.guide.rankers
    }
    space: dict[str, object] = {"runs": runs, "qrels": None}
    exec(training_snippet(target), space)
    aligned = space["aligned"]
    assert isinstance(aligned, Aligned)
    assert aligned.normalizers == tuple(space["rules"].normalizers.values())  # type: ignore[attr-defined]
