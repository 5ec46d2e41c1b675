"""Nothing acknowledged is lost when the writer is killed or the power is cut; crashes.py does it more often."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from serve import crashes

KILLS = int(os.environ.get("GENM_TESTS_KILLS", "6"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_kill_9_loses_nothing(tmp_path):
    """In a process of its own: a process with threads should not be forked."""
    done = subprocess.run(
        [sys.executable, crashes.__file__, "--kills", str(KILLS), "--folder", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "replay equal" in done.stdout


def test_a_power_cut_loses_nothing(tmp_path):
    done = crashes.run_with_power_cuts(tmp_path, KILLS, seed=1)
    if done is None:
        pytest.skip("needs Linux and a C compiler")
    assert done.returncode == 0, done.stderr
    assert "replay equal" in done.stdout
    assert (tmp_path / "shadow").is_dir()


def test_the_shadow_would_show_a_loss(tmp_path):
    """Without flushing, acknowledged events are gone after the cut: the test can fail."""
    library = crashes.build_shadow_library(tmp_path)
    if library is None:
        pytest.skip("needs Linux and a C compiler")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from serve import crashes\n"
        "from genm.serve.store import SqliteStore\n"
        "connect = SqliteStore._connect\n"
        "def careless(self):\n"
        "    connection = connect(self)\n"
        "    connection.execute('PRAGMA synchronous=OFF')\n"
        "    return connection\n"
        "SqliteStore._connect = careless\n"
        "crashes.run(sys.argv[2], 20, seed=2, power_cut=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(os.path.dirname(crashes.__file__)), str(tmp_path)],
        env={**os.environ, "LD_PRELOAD": str(library), "GENM_SHADOW": str(tmp_path / "shadow")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "acknowledged events are lost" in done.stderr or "StoreError" in done.stderr
