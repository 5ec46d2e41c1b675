"""Kernels that a wheel carries: used without compiling, for the processor at hand, and only where they fit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from genm._math import shipped_kernels
from genm._math.shipped_kernels import whole_content

MODULE = """
import numpy as np
from genm._math.parallel import kernel, part

@part()
def squared(x: float) -> float:
    return x * x

@kernel
def sum_of_squares(values: np.ndarray) -> float:
    total = 0.0
    for i in range(len(values)):
        total += squared(values[i])
    return total
"""

PROGRAM = """
import json, sys
from pathlib import Path
from genm._math import shipped_kernels
from ship_kernels import ship_to

step, folder = sys.argv[1], Path(sys.argv[2])
shipped_kernels.FOLDER = folder
own = folder / shipped_kernels.versions()

if step == "ship":
    own.mkdir(parents=True)
    ship_to(own)
from numba.core import event
import numpy as np

with event.install_recorder("numba:compile") as record:
    from squares import sum_of_squares
    found = sum_of_squares(np.array([0.1, 0.2, 0.3]))
print(json.dumps([found.hex(), len(record.buffer) > 0]))
"""


class Machine:
    """A machine with an installation that may carry kernels, and a folder of its own for compiled ones."""

    def __init__(self, home: Path) -> None:
        self.home, self.kernels = home, home / "kernels"
        (home / "squares.py").write_text(MODULE)

    def run(self, step: str, cache: str, **environment: str) -> tuple[str, bool]:
        """Return what the kernel gives, and whether anything was compiled."""
        path = os.pathsep.join([str(self.home), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(self.home / cache), **environment}
        words = [sys.executable, "-c", PROGRAM, step, str(self.kernels)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        value, compiled = json.loads(done.stdout)
        return value, compiled


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    made = Machine(tmp_path_factory.mktemp("machine"))
    made.wanted, compiled = made.run("ship", "builder")
    assert compiled
    return made


def shipped_files(machine):
    return sorted(machine.kernels.glob("*/*"))


def test_what_is_shipped_has_no_machine_code_no_path_and_no_part(machine):
    (one,) = shipped_files(machine)  # the part is inside the kernel
    assert one.name.startswith("squares.sum_of_squares-")
    content = one.read_bytes()
    assert b"\x7fELF" not in content
    assert os.fsencode(machine.home) not in content
    assert b"total +=" not in content


def test_nothing_is_compiled_and_the_result_is_kept(machine):
    assert machine.run("use", "user") == (machine.wanted, False)
    assert list((machine.home / "user").rglob("*sum_of_squares*.nbc"))
    away = machine.kernels.rename(machine.home / "away")
    try:  # the second time it comes from the user's own folder
        assert machine.run("use", "user") == (machine.wanted, False)
    finally:
        away.rename(machine.kernels)


def test_the_machine_code_is_made_for_the_processor_at_hand(machine):
    assert machine.run("use", "old processor", NUMBA_CPU_NAME="generic") == (machine.wanted, False)


def test_a_damaged_file_is_left_alone_and_the_kernel_compiled(machine):
    (path,) = shipped_files(machine)
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    try:
        assert machine.run("use", "user of a damaged file") == (machine.wanted, True)
        for damaged in (content[:middle], b"", content + b"more"):
            path.write_bytes(damaged)
            assert whole_content(path) is None
    finally:
        path.write_bytes(content)
    assert whole_content(path) == content


def test_a_changed_source_is_compiled(machine):
    source = machine.home / "squares.py"
    source.write_text(MODULE.replace("return x * x", "return 2.0 * x * x"))
    try:
        value, compiled = machine.run("use", "user who changed it")
        assert compiled
        assert float.fromhex(value) == pytest.approx(2.0 * float.fromhex(machine.wanted))
    finally:
        source.write_text(MODULE)


def test_other_versions_find_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped_kernels, "FOLDER", tmp_path)
    find = shipped_kernels.shipped_folder.__wrapped__
    (tmp_path / "cp999-numba0-llvmlite0-none").mkdir()
    assert find() is None
    (tmp_path / shipped_kernels.versions()).mkdir()
    assert find() == tmp_path / shipped_kernels.versions()
    monkeypatch.setattr(shipped_kernels, "FOLDER", tmp_path / "nothing")
    assert find() is None


def hooked(monkeypatch, folder, version):
    if folder is None:
        monkeypatch.delenv("GENM_KERNELS", raising=False)
    else:
        monkeypatch.setenv("GENM_KERNELS", str(folder))
    data = {"force_include": {}}
    hook = pytest.importorskip("wheel_hook", reason="needs hatchling, which builds the wheel")
    hook.CustomBuildHook(str(folder), {}, None, None, str(folder), "wheel").initialize(version, data)
    return data


def test_a_wheel_with_kernels_is_tagged_for_this_python_and_system(tmp_path, monkeypatch):
    assert hooked(monkeypatch, None, "standard") == {"force_include": {}}
    with pytest.raises(SystemExit, match="expected a folder that"):
        hooked(monkeypatch, tmp_path, "standard")
    (tmp_path / "cp311").mkdir()
    (tmp_path / "cp311" / "kernel").write_bytes(b"")
    assert hooked(monkeypatch, tmp_path, "editable") == {"force_include": {}}
    data = hooked(monkeypatch, tmp_path, "standard")
    assert data["force_include"] == {str(tmp_path): "genm/_kernels"}
    assert not data["pure_python"]
    assert data["tag"].startswith(f"cp{sys.version_info[0]}{sys.version_info[1]}-none-")
