"""The page that maps the paper to the code is held to the truth."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| item")
]
SOURCES = sorted((ROOT / "src" / "genm").rglob("*.py"))


def numbers(text: str) -> set[int]:
    """All numbers that a text such as "(12) to (15), (17)" names."""
    found = {int(n) for n in re.findall(r"\d+", text)}
    for low, high in re.findall(r"\((\d+)\) to \((\d+)\)", text):
        found |= set(range(int(low), int(high) + 1))
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_row_names_a_function_and_a_test_that_exist(row: list[str]) -> None:
    _, _, function, test = row
    module, _, name = function.strip("`").rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    path = ROOT / test.strip("`")
    assert path.is_file()
    assert "def test_" in path.read_text(encoding="utf-8")


def test_all_numbered_equations_problems_and_algorithms_have_a_row() -> None:
    items = [row[0] for row in ROWS]
    equations = set().union(*(numbers(item) for item in items if item.startswith("Eq.")))
    assert equations == set(range(1, 43))
    assert {"P1", "P2", "P3", "P4", "P8"} <= set(items)
    algorithms = set().union(*(numbers(item) for item in items if item.startswith("Algorithm")))
    assert algorithms == {1, 2, 3, 4}
    theorems = set().union(*(numbers(re.sub(r"Lemma \d|Corollary \d", "", i)) for i in items if "Theorem" in i))
    assert theorems == {1, 2, 3, 4, 5, 6}


def test_every_citation_in_the_code_has_its_place_on_the_page() -> None:
    departures = {int(n) for n in re.findall(r"^(\d+)\. \*\*", PAGE, re.MULTILINE)}
    assert departures == set(range(1, 16))
    for source in SOURCES:
        text = re.sub(r"\s+", " ", source.read_text(encoding="utf-8"))
        for cited in re.findall(r"[Dd]epartures? ((?:\d+(?:, | and )?)+)", text):
            assert numbers(cited) <= departures, (source, cited)
        for cited in re.findall(r"Eqs?\. ?\(?(\d+)", text):
            assert 1 <= int(cited) <= 42, (source, cited)
        for cited in re.findall(r"Algorithms? (\d)", text):
            assert int(cited) in {1, 2, 3, 4}, (source, cited)


def test_the_kernels_and_fusers_cite_the_paper() -> None:
    for name in (
        "_math/average_precision.py",
        "_math/average_precision_kernels.py",
        "learn/batch.py",
        "learn/online.py",
        "learn/cotrain.py",
    ):
        text = (ROOT / "src" / "genm" / name).read_text(encoding="utf-8")
        assert re.search(r"Eq\.|P1|Algorithm|Problem P\d", text), name
