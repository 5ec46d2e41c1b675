"""The notebooks of the documentation run, and show what they hold.

After a change of what a notebook shows, GENM_WRITE_DOCS=1 writes its outputs anew.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import write_sample
from notebook import read

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = [pytest.mark.needs("IPython"), pytest.mark.needs("matplotlib"), pytest.mark.needs("pandas")]


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell):
    """What genm shows of its results; other libraries decide how frames and pictures look."""
    outputs = ["".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"]]
    return [html for html in outputs if "genm-display" in html]


def kinds(cell):
    return [sorted(output.get("data", {"stream": ""})) for output in cell["outputs"]]


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def pair(request, tmp_path_factory):
    """A notebook as it is kept, and as it comes out of a new run."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "data").mkdir()
    write_sample(folder / "data")
    target = folder / "run.ipynb"
    call = [sys.executable, ROOT / "tools" / "notebook.py", request.param, "--data", folder / "data"]
    environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython")}
    done = subprocess.run([*call, "--output", target], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    if os.environ.get("GENM_WRITE_DOCS"):
        shutil.copyfile(target, request.param)
    return read(request.param), read(target)


def test_every_cell_runs_and_warns_of_nothing(pair):
    _, run = pair
    for cell in code_cells(run):
        assert cell["outputs"], cell["source"]
        assert not [output for output in cell["outputs"] if output.get("name") == "stderr"]


def test_the_kept_outputs_are_those_of_a_new_run(pair):
    kept, run = pair
    for before, now in zip(code_cells(kept), code_cells(run), strict=True):
        assert kinds(before) == kinds(now), now["source"]
        assert shown(before) == shown(now), now["source"]


def test_it_shows_tables_and_pictures(pair):
    _, run = pair
    assert sum(bool(shown(cell)) for cell in code_cells(run)) >= 6
    assert sum("image/png" in kind for cell in code_cells(run) for kind in kinds(cell)) >= 3


def test_the_page_holds_text_code_and_outputs(pair, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "tools"))
    import notebook_pages

    for path in NOTEBOOKS:
        page = notebook_pages.page_of(path)
        assert page.startswith("# ")
        assert f"({path.name})" in page
        assert page.count("```python") == len(code_cells(read(path)))
        assert "data:image/png;base64," in page
