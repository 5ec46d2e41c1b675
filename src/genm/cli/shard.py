"""`genm shard`: runs and judgments of any size as a score table on disk."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError

TEXT = """Write runs and judgments of any size as a score table: Parquet files of whole queries, and a manifest.

Runs are TREC files (also .gz, .zst) or Parquet tables, or one folder that genm pull wrote. The table holds what
`genm fit` would align: all judged queries, in the order of the judgments, with raw scores; normalisers are applied
when it is read. Memory is bounded by --memory, whatever the size of the runs. The work folder takes about as much
disk as the unpacked runs. After an interruption the same command goes on, and leaves the same bytes.

-o is a folder, or an address of an object store, such as s3://bucket/table (extra `scale`, and s3fs, gcsfs or
adlfs). A score table that is there is replaced; a folder with other files is not touched."""
EXAMPLES = (
    "genm shard bm25=bm25.trec.gz dense=dense.trec.gz --qrels q.txt -o table/",
    "genm shard runs/ --qrels qrels.txt -o s3://bucket/table --memory 4G",
    "genm fuse --table table/ --model model.json -o fused.trec.gz",
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class Dtype(StrEnum):
    """In how many bits scores are stored."""

    float32 = "float32"
    float64 = "float64"


def shard(
    runs: options.Runs,
    output_folder: Annotated[
        str, typer.Option("--output", "-o", help="Folder or address for the table.", metavar="DIR")
    ],
    qrels: Annotated[str | None, typer.Option(help="Judgments; none: a table to fuse.", metavar="FILE")] = None,
    dtype: Annotated[
        Dtype, typer.Option(help="Type of the scores: float32 or float64.", metavar="TYPE")
    ] = Dtype.float32,
    normalize: Annotated[
        list[str] | None,
        typer.Option(help="The normaliser, as of genm fit; or NAME=KIND for each.", metavar="KIND"),
    ] = None,
    depth: options.Depth = None,
    query_weights: Annotated[
        str | None, typer.Option(help="Lines of query and weight.", metavar="FILE", show_default=False)
    ] = None,
    shard_size: Annotated[str, typer.Option(help="About how large a shard is.", metavar="SIZE")] = "64M",
    memory: Annotated[str, typer.Option(help="About how much memory to use.", metavar="SIZE")] = "1G",
    work: Annotated[
        str | None,
        typer.Option(help="Local folder for work files; default: in the table.", metavar="DIR"),
    ] = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, align, write, print."""
    kinds, cut = options.normalizers(normalize or []), options.depths(depth or [])
    is_pull = len(runs) == 1 and "=" not in runs[0] and Path(runs[0]).is_dir()
    names = {} if is_pull else options.named_paths(runs, qrels, query_weights)
    if not is_pull:
        options.check_rules(kinds, cut, names)
    sizes = [size_of("--shard-size", shard_size), size_of("--memory", memory)]
    weights = None if query_weights is None else genm.read.read_query_weights(query_weights)
    with console.progress_bars() as progress:
        table = genm.scale.write_table(
            runs[0] if is_pull else names,
            qrels,
            output_folder,
            normalize=kinds,
            depth=cut,
            query_weights=weights,
            dtype=dtype.value,
            shard_bytes=sizes[0],
            lenient=lenient,
            duplicates=duplicates.value,
            grades=grades,
            memory=sizes[1],
            work=work,
            progress=progress,
            tell=lambda text: console.say(f"note: {text}"),
        )
    console.say_notes(table.notes)
    console.show(output, json=lambda: _json(table), tsv=lambda: _rows(table), table=lambda: _table(table))
    console.say(f"wrote {table.path}")


def size_of(option: str, text: str) -> int:
    """Return a number of bytes, given with K, M or G."""
    found = re.fullmatch(r"([0-9]{1,12})([KMG]?)B?", text.strip().upper())
    if found is None or int(found[1]) < 1:
        raise InputError(f"{option} {text:.40}: expected a number of bytes, such as 64M or 2G.")
    return int(found[1]) * UNITS[found[2]]


def _json(table: "genm.scale.ScoreTable") -> dict[str, object]:
    return {
        "path": table.path,
        "digest": table.digest,
        "rankers": list(table.rankers),
        "depths": list(table.depths),
        "normalizers": [normalizer.kind for normalizer in table.normalizers],
        "dtype": table.dtype,
        "judged": table.labelled,
        "queries": table.n_queries,
        "rows": table.n_rows,
        "shards": table.n_shards,
        "bytes": table.n_bytes,
        "notes": [note.text for note in table.notes],
    }


def _rows(table: "genm.scale.ScoreTable") -> list[tuple[str, ...]]:
    return [(s.file, str(s.queries), str(s.rows), str(s.bytes), s.sha256) for s in table.shards]


def _table(table: "genm.scale.ScoreTable") -> None:
    judged = "with judgments" if table.labelled else "without judgments"
    rows = [
        ("rankers", ", ".join(table.rankers)),
        ("normalisers", ", ".join(dict.fromkeys(normalizer.kind for normalizer in table.normalizers))),
        ("scores", table.dtype),
        ("queries", f"{table.n_queries:,}"),
        ("rows", f"{table.n_rows:,}"),
        ("shards", f"{table.n_shards:,}"),
        ("bytes", f"{table.n_bytes:,}"),
        ("digest", table.digest),
    ]
    console.print_table(f"Score table {judged}", ["what", "value"], rows, left=2)


command = make_verb(shard, TEXT, EXAMPLES)
