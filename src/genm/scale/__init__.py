"""Training data larger than memory: score tables on disk, and what is computed from them shard by shard."""

from genm.scale.apply import evaluate_table, fuse_table
from genm.scale.shard import write_table
from genm.scale.table import ScoreTable, Shard, TableWriter

__all__ = ["ScoreTable", "Shard", "TableWriter", "evaluate_table", "fuse_table", "write_table"]
