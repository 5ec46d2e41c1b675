"""Nothing acknowledged is lost when the writer is killed or the power is cut; crashes.py does it more often."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from serve import crashes

KILLS = int(os.environ.get("GENM_TESTS_KILLS", "6"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CRASH = """
import json, sys
from pathlib import Path

tests, folder, kills, can_cut = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "yes"
sys.path.insert(0, tests)
from serve import crashes
from genm.serve.store import SqliteStore


def outcome(name, kills, **options):
    try:
        return crashes.run(folder / name, kills, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


found = {"kill": outcome("kill", kills)}
if can_cut:
    found["cut"] = outcome("cut", kills, seed=1, power_cut=True)
    connect = SqliteStore._connect

    def careless(self):
        connection = connect(self)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    SqliteStore._connect = careless
    found["careless"] = outcome("careless", 20, seed=2, power_cut=True)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What came of each kind of crash: how many events were acknowledged, or what went wrong.

    They run in a process of their own, because a process with threads should not be forked, and in one process for
    all three, because its start takes longer than the crashes.
    """
    folder = tmp_path_factory.mktemp("crashes")
    for name in ("kill", "cut", "careless"):
        (folder / name).mkdir()
    library = crashes.build_shadow_library(folder)
    shadow = {} if library is None else {"LD_PRELOAD": str(library)}
    tests = Path(crashes.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, tests, folder, str(KILLS), "no" if library is None else "yes"],
        env={**os.environ, **shadow}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    return json.loads(last) | {"said": said, "folder": folder}


def test_kill_9_loses_nothing(found):
    assert isinstance(found["kill"], int), found["kill"]
    assert found["said"][0].startswith(f"{KILLS} kills, {found['kill']:,} events acknowledged")
    assert found["said"][0].endswith("replay equal")


def test_a_power_cut_loses_nothing(found):
    if "cut" not in found:
        pytest.skip("needs Linux and a C compiler")
    assert isinstance(found["cut"], int), found["cut"]
    assert found["said"][1].startswith(f"{KILLS} kills, {found['cut']:,} events acknowledged")
    assert found["said"][1].endswith("replay equal")
    assert (found["folder"] / "cut" / "shadow").is_dir()


def test_the_shadow_would_show_a_loss(found):
    """Without flushing, acknowledged events are gone after the cut: the test can fail."""
    if "careless" not in found:
        pytest.skip("needs Linux and a C compiler")
    assert isinstance(found["careless"], str)
    assert "acknowledged events are lost" in found["careless"] or found["careless"].startswith("StoreError")
