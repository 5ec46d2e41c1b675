"""Run a notebook from top to bottom and write its outputs into it.

    python tools/notebook.py docs/notebooks/first-steps.ipynb --data FOLDER

FOLDER holds the files that the notebook reads; cells run in a copy of it. The cells run by IPython in this process,
so a test can do the same without a Jupyter server. Pictures are kept as PNG, results as HTML and text.
"""

import argparse
import base64
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

_KEPT = ("text/html", "image/png", "text/plain")


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of a new run in the current folder; an error in a cell is raised."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from matplotlib_inline.backend_inline import configure_inline_support

    backend = "module://matplotlib_inline.backend_inline"
    mpl.use(backend)
    shell = InteractiveShell.instance()
    configure_inline_support(shell, backend)
    plt.ion()  # as a notebook has it: a figure is shown below the cell that drew it
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        count += 1
        with shell.display_trap, capture_output() as captured:
            done = shell.run_cell("".join(cell["source"]), store_history=True)
        if not done.success:
            sys.stderr.write(captured.stdout)
        done.raise_error()
        streams = (("stdout", captured.stdout), ("stderr", captured.stderr))
        outputs = [_stream(name, text) for name, text in streams if text]
        is_quiet = "".join(cell["source"]).rstrip().endswith(";")  # then a notebook shows the picture alone
        outputs += [_output(part.data) for part in captured.outputs if "image/png" in part.data or not is_quiet]
        cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


def _stream(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}


def _output(data: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for kind in _KEPT:
        if kind in data:
            value = data[kind]
            text = base64.b64encode(value).decode() if isinstance(value, bytes) else value
            kept[kind] = text if kind == "image/png" else text.splitlines(keepends=True)
    return {"data": kept, "metadata": {}, "output_type": "display_data"}


def read(path: Path) -> dict[str, Any]:
    """Return a notebook as its file has it."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Run one notebook."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with the files that the notebook reads")
    parser.add_argument("--output", type=Path, help="write there instead of into the notebook")
    options = parser.parse_args()
    target = (options.output or options.notebook).resolve()
    notebook = read(options.notebook)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(options.data, folder, dirs_exist_ok=True)
        before = Path.cwd()
        os.chdir(folder)
        try:
            done = execute(notebook)
        finally:
            os.chdir(before)
    write(target, done)


if __name__ == "__main__":
    main()
