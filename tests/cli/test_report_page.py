"""Every command of docs/report.md is run, on the sample that its figures belong to."""

import os
import re
from pathlib import Path

import pytest
from console_pages import blurred, run_all, write

from genm.evidence import resampling
from genm.report import build, landscape

PAGE = Path(__file__).parents[2] / "docs" / "report.md"
VERDICT = re.compile(
    r"Held out, the learned weights (beat|lose to|are not shown to differ from) the strongest rival, [\w ]+ "
    r"\(\S+ AP, #\\?% interval \S+ to \S+\)[;,] (they beat|and) [\w ()]+\."
)
"""The verdicts that the sample may give; tests/report/test_systems.py tests each sentence."""


@pytest.fixture(scope="module")
def outcomes(genm, made_up, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report-page")
    for path in made_up.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return run_all(genm, PAGE, folder)


def test_the_page_shows_what_is_printed(outcomes):
    if os.environ.get("GENM_WRITE_DOCS"):
        write(PAGE, outcomes)
    assert len(outcomes) == 4
    for command, shown, done, printed in outcomes:
        assert done.code == 0, (command, done.err)
        counted = [VERDICT.subn("verdict", blurred(text)) for text in (printed, shown)]
        assert counted[0] == counted[1], f"{command}\n{printed}"
        assert counted[0][1] == (" | head" in command and "--format tsv" not in command), command


def test_the_limits_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    assert f"{build.TABLE_ROWS:,} queries" in page
    assert f"{build.TABLE_SCORES // 10**6} million scores" in page
    assert f"| {build.LANDSCAPE_WORK // 10**6} million, counted" in page
    assert f"| {build.DETAIL_QUERIES}, including the largest gains" in page
    assert f"{build.SLIDER_SCORES:,} scores" in page
    assert f"more than {landscape.MOST_STEPS} steps" in page
    assert f"more than {landscape.PLATEAU_LOSS} is lost" in page
    assert f"in {landscape.N_GRID}ths" in page
    assert f"{resampling.N_RESAMPLES} refits on queries" in page
    assert f"above {resampling.WARM_ROWS // resampling.FEWEST_REFITS // 10**6} million rows" in page
