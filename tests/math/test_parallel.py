import os
import shutil
import subprocess
import sys
from pathlib import Path

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
