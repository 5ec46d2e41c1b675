import json

import numpy as np
import pytest

from genm.cache import cached
from genm.cli.cache import _readable


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GENM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_counts_and_clears(genm, folder):
    cached("scores", ("a",), lambda: {"x": np.zeros(1000)})
    found = json.loads(genm("cache", "size", "--format", "json").out)
    assert found["folder"] == str(folder)
    assert found["entries"] == 1
    assert found["bytes"] > 8000
    rows = dict(line.split("\t") for line in genm("cache", "size", "--format", "tsv").out.splitlines())
    assert rows == {"folder": str(folder), "entries": "1", "bytes": str(found["bytes"])}
    cleared = genm("cache", "clear")
    assert (cleared.code, cleared.out) == (0, "")
    assert cleared.err == f"cleared {folder}: 1 entries, {_readable(found['bytes'])}\n"
    assert json.loads(genm("cache", "size", "--format", "json").out)["entries"] == 0


def test_tells_the_size_where_nothing_is_asked(genm, folder):
    found = genm("cache")
    assert found.out == genm("cache", "size").out
    assert found.out.splitlines()[2].split() == [str(folder), "0", "0", "bytes"]


def test_an_unknown_verb(genm, folder):
    assert genm("cache", "burn").fault == "genm: usage: No such command 'burn'. See: genm cache --help\n"


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (8_394_703, "8.4 MB"), (5e12, "5000.0 GB")],
)
def test_sizes_as_people_read_them(n, text):
    assert _readable(n) == text
