"""The format is found from content and name, and can be overruled."""

import numpy as np
import pytest

from genm.errors import InputError
from genm.read import read_run
from genm.read.formats import found_format
from genm.read.sources import Source
from genm.read.trec import QRELS, RUN, Shape


@pytest.mark.parametrize(
    ("name", "content", "shape", "form"),
    [
        ("x", "q Q0 d 1 2 t\n", RUN, "trec"),
        ("x.txt.gz", "q 0 d 1\n", QRELS, "trec"),
        ("qrels.dev.tsv", "q\t0\td\t1\n", QRELS, "trec"),
        ("run.tsv", "q\tQ0\td\t1\t2\tt\n", RUN, "trec"),
        ("test.tsv", "query-id\tcorpus-id\tscore\n", QRELS, "tsv"),
        ("test.tsv", "q\td\t1\n", QRELS, "tsv"),
        ("x", '\n"qid","docno","label"\r\n', QRELS, "csv"),
        ("x.csv.zst", "anything", RUN, "csv"),
        ("x.csv", "", RUN, "trec"),
        ("x.pq", "", RUN, "parquet"),
        ("x", "PAR1", RUN, "parquet"),
    ],
)
def test_formats_are_found(name: str, content: str, shape: Shape, form: str) -> None:
    assert found_format(Source(name, np.frombuffer(content.encode(), np.uint8)), shape) == form


def test_unknown_formats_are_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x"
    path.write_text("q Q0 d 1 2 t\n")
    with pytest.raises(InputError, match="format: expected one of trec, csv, tsv, parquet; found 'xml'"):
        read_run(path, format="xml")  # type: ignore[arg-type]
