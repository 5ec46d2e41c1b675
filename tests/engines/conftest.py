"""Tests against real engines. They are slow, so they run only where GENM_ENGINES is set: `make engines`.

GENM_ENGINES names the engines, comma-separated, or is `all`. An engine whose tools are missing, or whose files
cannot be fetched, is skipped with the reason; the table at the end says so.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.proof import Proof, load_texts

HERE = Path(__file__).parent
CHOSEN = [name for name in os.environ.get("GENM_ENGINES", "").split(",") if name]
_PROOF = pytest.StashKey[Proof]()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the engines that were not asked for, before their clients are imported."""
    name = collection_path.stem.removeprefix("test_")
    own = collection_path.parent == HERE and collection_path.name.startswith("test_")
    return True if own and "all" not in CHOSEN and name not in CHOSEN else None


@pytest.fixture(scope="session")
def proof(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    """The texts, and the table that every comparison writes to."""
    with pytest.MonkeyPatch.context() as patch:  # the comparison looks at no evidence
        patch.setattr("genm.evidence.resampling.N_RESAMPLES", 0)
        patch.setattr("genm.evidence.resampling.N_WHOLE", 0)
        patch.setattr("genm.evidence.resampling.MOST_ROWS", 0)
        made = Proof(load_texts(), tmp_path_factory.mktemp("engines"))
        pytestconfig.stash[_PROOF] = made
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print a row for each technique, and why an engine did not run."""
    if not CHOSEN:
        return
    made = config.stash.get(_PROOF, None)
    if made is not None:
        n_docs, n_queries = len(made.texts.docs), len(made.texts.queries)
        terminalreporter.section(f"engines ({made.texts.name}: {n_docs} documents, {n_queries} queries)")
    terminalreporter.write_line(f"{'engine':16}{'version':16}{'technique':36}{'queries':>8}{'equal top 10':>14}")
    for row in made.rows if made is not None else []:
        line = f"{row.engine:16}{row.version:16}{row.technique:36}{row.n_queries:>8}{row.n_equal:>14}"
        terminalreporter.write_line(line)
    for report in terminalreporter.stats.get("error", []) + terminalreporter.stats.get("failed", []):
        terminalreporter.write_line(f"{_engine(report):16}failed: {report.nodeid.rpartition('::')[2]}")
    skipped = {_engine(report): report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])}
    for name, reason in skipped.items():
        terminalreporter.write_line(f"{name:16}skipped: {reason.removeprefix('Skipped: ')}")


def _engine(report: pytest.TestReport | pytest.CollectReport) -> str:
    return Path(report.nodeid.partition("::")[0]).stem.removeprefix("test_")
