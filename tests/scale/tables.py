"""Small score tables for the tests of engines."""

from pathlib import Path

import numpy as np
import pytest

from genm.align import Aligned
from genm.scale import ScoreTable, TableWriter


def table_of(aligned: Aligned, folder: Path, *, n_shards: int, dtype: str = "float64") -> ScoreTable:
    """Write aligned runs as a table of consecutive shards of about equal size, and open it."""
    pytest.importorskip("pyarrow", reason="needs the extra scale")
    writer = TableWriter(folder, aligned.rankers, depths=aligned.depths, labelled=aligned.labelled, dtype=dtype)
    for part in np.array_split(np.arange(len(aligned.queries)), n_shards):
        writer.add(aligned.select(part))
    return writer.finish()
