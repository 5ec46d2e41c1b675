"""Training data larger than memory: score tables on disk, and what is computed from them shard by shard.

The names below are imported when they are first used, so that `genm.scale.cuda` needs numpy and CuPy alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genm.scale.apply import evaluate_table, fuse_table
    from genm.scale.checkpoint import Checkpoint, checkpoint_path
    from genm.scale.cluster import ClusterAddress, DaskEngine, open_engine
    from genm.scale.engines import Engine, ProcessEngine, Table, ThreadEngine, bytes_of
    from genm.scale.evaluation import Request, Settings
    from genm.scale.shard import write_table
    from genm.scale.table import ScoreTable, Shard, TableWriter

__all__ = [
    "Checkpoint",
    "ClusterAddress",
    "DaskEngine",
    "Engine",
    "ProcessEngine",
    "Request",
    "ScoreTable",
    "Settings",
    "Shard",
    "Table",
    "TableWriter",
    "ThreadEngine",
    "bytes_of",
    "checkpoint_path",
    "evaluate_table",
    "fuse_table",
    "open_engine",
    "write_table",
]

_HOMES = {
    "genm.scale.apply": ("evaluate_table", "fuse_table"),
    "genm.scale.checkpoint": ("Checkpoint", "checkpoint_path"),
    "genm.scale.cluster": ("ClusterAddress", "DaskEngine", "open_engine"),
    "genm.scale.engines": ("Engine", "ProcessEngine", "Table", "ThreadEngine", "bytes_of"),
    "genm.scale.evaluation": ("Request", "Settings"),
    "genm.scale.shard": ("write_table",),
    "genm.scale.table": ("ScoreTable", "Shard", "TableWriter"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'genm.scale' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
