"""docs/no-judgments.md is followed literally: the page is served, a person who knows the truth judges, genm learns.

GENM_WRITE_DOCS=1 writes what the commands print, and the picture of the page, anew.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from console_pages import run, steps, write

pytest.importorskip("uvicorn", reason="needs the extra serve")

PAGE = Path(__file__).parents[2] / "docs" / "no-judgments.md"
PICTURE = PAGE.parent / "assets" / "judge.png"
N_JUDGED = 120


@pytest.fixture(scope="module")
def outcomes(genm, tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("tutorial"), Path.cwd()
    os.chdir(folder)
    try:
        text = PAGE.read_text(encoding="utf-8")
        found = []
        for command, shown in steps(text):
            if command.startswith("genm judge export"):
                judge_by_hand(re.search(r"^    (genm judge .*)$", text, re.MULTILINE)[1])
            found.append((command, shown, *run(genm, command)))
        return found
    finally:
        os.chdir(before)


def judge_by_hand(command):
    """Serve the page as the tutorial says, and judge on it as somebody would who knows the truth."""
    import httpx

    from genm import read_qrels

    truth = read_qrels("qrels.txt").to_dict()
    words = [word for word in shlex.split(command)[1:] if word != "--open"]
    with subprocess.Popen([sys.executable, "-m", "genm", *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(found[1] for line in process.stderr if (found := re.search(r"(http://\S+);", line)))
            with httpx.Client(base_url=address, timeout=60) as page:
                if os.environ.get("GENM_WRITE_DOCS"):
                    take_picture(address)
                answer = page.get("/v1/next").json()
                for number in range(N_JUDGED):
                    query, document = answer["next"]["query_id"], answer["next"]["document_id"]
                    answer = page.post("/v1/opinions", json={
                        "key": f"judgment-{number:04}", "query": query, "document": document, "action": "grade",
                        "grade": truth[query].get(document, 0),
                    }).json()  # fmt: skip
                assert answer["progress"]["n_judged"] == N_JUDGED
        finally:
            process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode in (0, 130)


def take_picture(address):
    from playwright.sync_api import sync_playwright
    from report.visits import FLAGS

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=PICTURE)
        browser.close()


def test_the_tutorial_works_as_it_is_written(outcomes):
    if os.environ.get("GENM_WRITE_DOCS"):
        write(PAGE, outcomes)
    verbs = [command.split()[1] for command, *_ in outcomes]
    assert verbs == ["sample", "pool", "judge", "fit", "fuse", "evaluate"]
    for command, shown, done, printed in outcomes:
        assert done.code == 0, (command, done.err)
        if command.split()[1] in ("pool", "sample"):
            assert printed == shown, f"{command}\n{printed}"


def test_it_ends_with_weights_that_beat_both_rankers(outcomes):
    printed = outcomes[-1][3]
    ap = {name: float(value) for name, value in re.findall(r"^(\w+) +(0\.\d+)", printed, re.MULTILINE)}
    assert ap["fused"] > max(ap["bm25"], ap["dense"])
