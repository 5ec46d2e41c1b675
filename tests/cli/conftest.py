import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from genm.cli.app import app
from genm.cli.compilation import MESSAGE
from genm.collections import write_sample


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def fault(self):
        """The one line that a refused command leaves."""
        assert (self.code, self.out) == (2, "")
        assert self.err.startswith("genm: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        return self.err


@pytest.fixture(scope="session")
def made_up(tmp_path_factory):
    """A folder with qrels.txt, bm25.trec and dense.trec."""
    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture
def sample(made_up, tmp_path, monkeypatch):
    """A copy of the folder for the test's own use, and its working folder."""
    shutil.copytree(made_up, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def genm():
    """Run a command line in this process."""

    def run(*args, stdin=None):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(
            app, [str(a) for a in args], input=stdin, catch_exceptions=False, prog_name="genm"
        )
        # the first test to use a kernel on a machine is also told of its compiling
        return Outcome(result.exit_code, result.stdout, result.stderr.replace(f"{MESSAGE}\n", ""))

    return run


@pytest.fixture(scope="module")
def little_evidence():
    """Let `genm fit` keep no refits and no learning curve beside a model, where the test looks at neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genm.evidence.resampling.N_RESAMPLES", 0)
        patch.setattr("genm.evidence.resampling.N_WHOLE", 0)
        patch.setattr("genm.evidence.resampling.MOST_ROWS", 0)
        yield


@pytest.fixture
def process():
    """Start the command line in a process of its own."""

    def start(*args, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([sys.executable, "-m", "genm", *map(str, args)], **options)

    return start
