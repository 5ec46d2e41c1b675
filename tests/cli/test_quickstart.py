"""Every command of docs/quickstart.md is run in an empty folder: the first one writes the sample.

The page shows what is printed to the last digit, whatever the machine. After a change of a learner,
GENM_WRITE_DOCS=1 writes the page anew.
"""

import os
import re
from pathlib import Path

import pytest
from console_pages import run_all, write

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"


@pytest.fixture(scope="module")
def outcomes(genm, tmp_path_factory):
    return run_all(genm, PAGE, tmp_path_factory.mktemp("quickstart"))


def test_commands_succeed_or_show_that_they_do_not(outcomes):
    assert len(outcomes) >= 12
    for command, shown, done, _ in outcomes:
        assert done.code == (2 if shown.startswith("genm: ") else 0), (command, done.err)


def test_the_page_shows_what_is_printed(outcomes):
    if os.environ.get("GENM_WRITE_DOCS"):
        write(PAGE, outcomes)
    for command, shown, _, printed in outcomes:
        assert printed == shown, f"{command}\n{printed}"  # every figure to its last digit, on every machine


def test_the_page_begins_with_the_sample(made_up):
    page = PAGE.read_text(encoding="utf-8")
    for name in ("bm25.trec", "dense.trec", "qrels.txt"):
        first = (made_up / name).read_text().splitlines()[0]
        assert re.search(rf"^    {name} +{re.escape(first)}(  |$)", page, re.MULTILINE), first


def test_it_leads_from_runs_to_a_measured_fusion(outcomes):
    verbs = [command.split()[1] for command, *_ in outcomes]
    assert list(dict.fromkeys(verbs)) == ["sample", "inspect", "evaluate", "fuse", "compare", "fit", "update"]
