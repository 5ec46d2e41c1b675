"""Training data larger than memory: score tables on disk, and what is computed from them shard by shard."""

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
