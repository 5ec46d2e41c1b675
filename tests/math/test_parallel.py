import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import genm

NOWHERE = "/dev/null/nowhere"
"""A folder that nobody can make, root included."""


def test_kernels_work_where_no_folder_can_keep_them(tmp_path):
    """A package that belongs to the system, run by a user without a home: numba finds nowhere to write."""
    package = tmp_path / "genm"
    shutil.copytree(Path(genm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # a file of this name keeps root, too, from making the folder
    code = (
        "import numpy as np\n"
        "from genm._math import elementary, fusion\n"
        "from genm._math.exact import line_kernels\n"
        "from genm.cli.compilation import compile_in_background\n"
        "assert fusion.__file__.startswith(__import__('sys').argv[1]), fusion.__file__\n"
        "with compile_in_background() as wait:\n"
        "    wait()\n"
        "print(fusion.weighted_sum(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([0.5, 0.25])))\n"
    )
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA"), NOWHERE)
    env = {**os.environ, **nowhere, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "[1.   2.75]\n")


KERNEL = """
import numpy as np
from genm._math.parallel import kernel

@kernel
def total(values):
    out = 0.0
    for i in range(len(values)):
        out += values[i]
    return out

print(total(np.arange(4.0)), sum(total.stats.cache_hits.values()))
"""


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Change one bit in the middle of the machine code."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {"emptied": lambda _: b"", "cut": cut, "flipped": flipped, "garbage": lambda _: b"\x80\x04garbage" * 99}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_kernel_is_compiled_again(tmp_path: Path, suffix: str, damage: str) -> None:
    script = tmp_path / "k.py"
    script.write_text(KERNEL)

    def run() -> tuple[int, str, str]:
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, encoding="utf-8")
        return done.returncode, done.stdout, done.stderr

    assert run() == (0, "6.0 0\n", "")
    assert run() == (0, "6.0 1\n", "")
    (path,) = (tmp_path / "kept").rglob(f"k.total*{suffix}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert run() == (0, "6.0 0\n", "")
    assert run() == (0, "6.0 1\n", "")


def test_a_kernel_that_cannot_be_kept_is_used(tmp_path: Path) -> None:
    code = "import genm._math.parallel as p\np.IndexDataCacheFile._open_for_write = None\n"
    broken = "def refuse(*_):\n    raise OSError(28, 'No space left on device')\n"
    script = tmp_path / "k.py"
    script.write_text(KERNEL.replace("@kernel", broken + code.replace("None", "refuse") + "\n@kernel"))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0 0\n", "")


def test_loading_a_kernel_does_not_load_the_compiler(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    loaded = "import sys\nprint('numba.np.arraymath' in sys.modules, 'scipy.linalg' in sys.modules)\n"
    compiled = "import numba\nprint(numba.njit(lambda x: total(x) + x.sum())(np.arange(4.0)))\n"
    script.write_text(f"{KERNEL}{loaded}{compiled}")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    runs = [
        subprocess.run(
            [sys.executable, script], env=env, capture_output=True, text=True, encoding="utf-8", check=True
        )
        for _ in range(2)
    ]
    assert runs[0].stdout == "6.0 0\nTrue True\n12.0\n"
    assert runs[1].stdout == "6.0 1\nFalse False\n12.0\n"  # and compiling works after a load
