import gc
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# A random test says whether something is right, never whether it is quick: machines differ, and kernels compile.
settings.register_profile("genm", deadline=None)
settings.load_profile("genm")
# The profile of continuous integration draws the same cases on every run, so that more of them find nothing new on
# the second day. Tests that name no number of their own draw half of the usual hundred there.
settings.register_profile("ci", settings.get_profile("ci"), max_examples=50)

NUMBERS = (
    "cli/test_report_page.py",
    "evidence/test_evidence.py",
    "learn/test_batch.py",
    "learn/test_boost.py",
    "learn/test_ranker_quality.py",
    "learn/test_same_bits.py",
    "math/test_elementary.py",
    "math/test_lanes.py",
    "math/test_linear_algebra.py",
    "math/test_significance.py",
    "math/test_student.py",
    "math/test_theory.py",
    "math/test_topic_models.py",
    "rankers/test_ldi.py",
    "rankers/test_lsa.py",
    "rankers/test_plsi.py",
    "rankers/test_ranking.py",
    "reproduce/test_experiment.py",
    "test_notebooks.py",
)
"""Tests that hold numbers which a processor could change: they also run with kernels for an older one."""

TOGETHER = (
    "connect/",
    "export/",
    "interop/",
    "reproduce/",
    "serve/test_postgresql.py",
    "serve/test_relearning.py",
    "serve/test_state_machine.py",
)
"""Tests that load large libraries, start PostgreSQL or share the experiment: one process of pytest runs them."""


def pytest_configure(config):
    gc.disable()  # until everything is collected: what comes until then is there to stay
    # As in the Makefile: dozens of processes are started, and each would compile the modules it loads for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # A shell lets what it starts in the background ignore Ctrl-C, and so would the commands that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "numbers: holds numbers that another processor could change")
    config.addinivalue_line("markers", "needs(module): uses an optional package; skipped where it is not installed")


def pytest_collection_finish():
    """Look for cycles less often, and not among what is there to stay: that takes a tenth off the suite."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    chosen = {here / name for name in NUMBERS}
    gone = sorted(str(path) for path in chosen if not path.is_file())
    assert not gone, f"tests/conftest.py lists tests that are gone: {gone}"
    for item in items:
        if item.path in chosen:
            item.add_marker(pytest.mark.numbers)
        for mark in item.iter_markers("needs"):
            (module,) = mark.args
            if find_spec(module) is None:
                item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))
    found = yield  # pytest chooses by these marks, and pytest-randomly shuffles
    # pytest-xdist gives the first tests to the first process; the order is random otherwise
    together = tuple(f"{here.as_posix()}/{name}" for name in TOGETHER)
    items.sort(key=lambda item: not item.path.as_posix().startswith(together))
    return found


def pytest_terminal_summary(terminalreporter, config):
    """Say how to get the same order again; pytest-randomly says so in a header, which -q leaves out."""
    seed = getattr(config.option, "randomly_seed", None)
    if seed is not None and terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
        terminalreporter.write_line(f"order of the tests: --randomly-seed={seed}")


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory):
    """Keep the user's home out of it: what is cached there decides no test, and tests leave nothing there."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # pytest's processes share one cache
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENM_CACHE", str(base / "genm-cache"))
        patch.setenv("IR_DATASETS_HOME", str(base / "ir_datasets"))
        patch.setenv("MPLCONFIGDIR", str(base / "matplotlib"))
        patch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
        yield


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory):
    """Trust one authority of some 130: HTTP clients read them all anew, in .03 s, for every connection."""
    if find_spec("certifi") is None:
        yield
        return
    import certifi

    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
    path = tmp_path_factory.mktemp("authority") / "first.pem"
    path.write_text(first + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certifi, "where", lambda: str(path))
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="session")
def smart_data():
    """The folder of the SMART collections; they are third-party data and no part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "collections"
    folder = Path(os.environ.get("GENM_DATA") or beside)
    if not (folder / "med" / "MED.ALL").is_file():
        pytest.skip("needs the SMART collections: set GENM_DATA to the folder that holds med/, cran/, cisi/, cacm/")
    return folder
