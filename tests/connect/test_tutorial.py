"""The tutorial on OpenSearch, followed literally, with a node that has k-NN and neural-search: GENM_OPENSEARCH.

The node may be a throw-away one that `make engines` starts. The test makes and removes the index `articles` and the
search pipelines `learned` and `equal`.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from genm.connect import read_config

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-opensearch.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ADDRESS = os.environ.get("GENM_OPENSEARCH", "").rstrip("/")
MADE = ("articles", "_search/pipeline/learned", "_search/pipeline/equal")


def blocks():
    """Return kind, file name and text of every block, in the page's order."""
    return [(kind, title, text) for kind, title, text in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def test_the_configurations_of_the_page_are_read():
    configs = {title: read_config(tomllib.loads(text)) for kind, title, text in blocks() if kind == "toml"}
    assert set(configs) == {"pull.toml", "hybrid.toml"}
    assert set(configs["pull.toml"].rankers) == {"bm25", "dense"}


def test_every_block_has_a_kind_that_the_test_follows():
    assert {kind for kind, _, _ in blocks()} <= {"text", "python", "sh", "toml"}


def remove_all(address):
    for path in MADE:
        request = urllib.request.Request(f"{address}/{path}", method="DELETE")
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=60).close()


@pytest.fixture
def opensearch():
    if not ADDRESS:
        pytest.skip("GENM_OPENSEARCH names no OpenSearch")
    remove_all(ADDRESS)
    yield ADDRESS
    remove_all(ADDRESS)


def follow(kind, title, text, folder, address):
    """Do what a block says, and return what it prints."""
    if kind == "toml":
        (folder / title).write_text(text, encoding="utf-8")
        return ""
    command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-e", "-c", text]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "OPENSEARCH": address, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_tutorial_leads_to_a_better_ranking(opensearch, tmp_path):
    check_tutorial(opensearch, tmp_path)


def check_tutorial(address, folder):
    """Follow the page from its first block to its last, in a folder, with the node at this address."""
    pytest.importorskip("opensearchpy")
    pytest.importorskip("sklearn")
    printed = [follow(kind, title, text, folder, address) for kind, title, text in blocks() if kind != "text"]
    assert {"bm25.trec", "dense.trec", "docs.tsv", "queries.tsv", "pull.json"} <= set(os.listdir(folder / "runs"))
    assert (folder / "report.html").stat().st_size > 10_000
    weights = json.loads((folder / "pipeline.json").read_text(encoding="utf-8"))["phase_results_processors"][0]
    print(weights, *printed, sep="\n")
    rows = dict(re.findall(r"^(bm25|dense|equal|learned) +([0-9.]+)", printed[-1], re.MULTILINE))
    assert float(rows["learned"]) > max(float(rows[name]) for name in ("bm25", "dense", "equal")), printed[-1]
