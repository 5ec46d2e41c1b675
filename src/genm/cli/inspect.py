"""`genm inspect`: what is in these runs, before anything is learned from them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.inputs import Duplicates, Lenient, Runs, depths, read_judgments, read_runs
from genm.cli.show import Format, print_json, print_lines, print_table, progress_bars, say_notes

if TYPE_CHECKING:
    from genm.align import Coverage
    from genm.records import Run

HELP = """Look at runs: size, scale of scores, ties, missing scores, overlap, and how much of the top is judged.

Example:

    genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("inspect", help=HELP)(inspect)


def inspect(
    runs: Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments.", metavar="FILE")] = None,
    depth: Annotated[list[str] | None, typer.Option(help="Use the top N of each run; or NAME=N.")] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = "error",
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.table,
) -> None:
    """Read, align, print what is there."""
    from genm.align import align_runs

    with progress_bars() as progress:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = align_runs(loaded, judged, normalize="none", depth=depths(depth or []), progress=progress)
        coverage = aligned.coverage()
    for run in loaded.values():
        say_notes(run.notes)
    say_notes(aligned.notes)
    facts = as_json(coverage, loaded)
    if output is Format.json:
        print_json(facts)
    elif output is Format.tsv:
        print_lines(_tsv(facts))
    else:
        _tables(coverage, loaded)


def as_json(coverage: "Coverage", runs: "dict[str, Run]") -> dict[str, Any]:
    """Return everything that is shown, as a JSON object."""
    rankers = {}
    for k, name in enumerate(coverage.rankers):
        run = runs[name]
        low, median, high = coverage.scales[k].tolist()
        rankers[name] = {
            "queries": len(run.queries),
            "rows": len(run.doc),
            "lowest_score": low,
            "median_score": median,
            "highest_score": high,
            "ties": float(coverage.ties[k]),
            "missing": float(coverage.missing[k]),
        }
        if coverage.judged is not None:
            shares = zip(coverage.depths, coverage.judged[:, k].tolist(), strict=True)
            rankers[name]["judged"] = {f"{depth}": share for depth, share in shares}
    overlap = {
        f"{depth}": {
            f"{a}/{b}": float(coverage.overlap[d, i, j])
            for i, a in enumerate(coverage.rankers)
            for j, b in enumerate(coverage.rankers)
            if i < j
        }
        for d, depth in enumerate(coverage.depths)
    }
    return {
        "queries": coverage.n_queries,
        "queries_without_documents": coverage.n_empty,
        "queries_without_relevant": coverage.n_without_relevant,
        "rankers": rankers,
        "overlap": overlap,
    }


def _tsv(facts: dict[str, Any], place: str = "") -> list[str]:
    lines: list[str] = []
    for key, value in facts.items():
        if isinstance(value, dict):
            lines += _tsv(value, f"{place}{key}\t" if not place else f"{place.rstrip()}.{key}\t")
        else:
            lines.append(f"{place or 'all' + chr(9)}{key}\t{'' if value is None else value}")
    return lines


def _tables(coverage: "Coverage", runs: "dict[str, Run]") -> None:
    header = ["ranker", "queries", "rows", "lowest", "median", "highest", "ties", "missing"]
    rows = []
    for k, name in enumerate(coverage.rankers):
        scales = [f"{value:.4g}" for value in coverage.scales[k].tolist()]
        shares = [f"{share:.1%}" for share in (coverage.ties[k], coverage.missing[k])]
        rows.append((name, f"{len(runs[name].queries):,}", f"{len(runs[name].doc):,}", *scales, *shares))
    print_table(f"{coverage.n_queries:,} queries; raw scores", header, rows)
    if coverage.judged is not None:
        header = ["judged share at", *(f"{depth}" for depth in coverage.depths)]
        cells = [
            (name, *(f"{share:.1%}" for share in coverage.judged[:, k].tolist()))
            for k, name in enumerate(coverage.rankers)
        ]
        print_table("", header, cells)
        if coverage.n_without_relevant:
            print_lines([f"{coverage.n_without_relevant:,} queries have no relevant document.", ""])
    if len(coverage.rankers) > 1:
        depth = coverage.depths.index(10)
        header = ["overlap of the top 10", *coverage.rankers]
        cells = [
            (a, *(f"{share:.1%}" for share in coverage.overlap[depth, i].tolist()))
            for i, a in enumerate(coverage.rankers)
        ]
        print_table("", header, cells)
