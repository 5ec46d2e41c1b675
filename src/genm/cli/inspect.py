"""`genm inspect`: what is in these runs, before anything is learned from them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_lines,
    print_table,
    print_tsv,
    progress_bars,
    say_notes,
)
from genm.cli.options import (
    Depth,
    DuplicateRule,
    Duplicates,
    Lenient,
    Runs,
    add_verb,
    depths,
    named_paths,
    read_judgments,
    read_runs,
)

if TYPE_CHECKING:
    from genm.align import Coverage
    from genm.records import Run

TEXT = """Look at runs before anything is learned from them: size, scale of scores, ties, missing scores, overlap.

With --qrels also the share of the top documents that somebody judged, and queries without relevant documents."""
EXAMPLES = (
    "genm inspect bm25=bm25.trec dense=dense.trec",
    "genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "inspect", inspect, summary="Look at runs: scales, ties, overlap.", text=TEXT, examples=EXAMPLES)


def inspect(
    runs: Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments.", metavar="FILE")] = None,
    depth: Depth = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, align, print what is there."""
    from genm.align import align_runs

    named_paths(runs, qrels)
    with progress_bars() as progress:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = align_runs(loaded, judged, normalize="none", depth=depths(depth or []), progress=progress)
        coverage = aligned.coverage()
    say_notes(() if judged is None else judged.notes)
    for run in loaded.values():
        say_notes(run.notes)
    say_notes(aligned.notes)
    facts = as_json(coverage, loaded)
    if output is Format.json:
        print_json(facts)
    elif output is Format.tsv:
        print_tsv(_tsv(facts))
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


def _tsv(facts: dict[str, Any], place: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield what the fact is about (all, or ranker.NAME, overlap.DEPTH), its name and its value."""
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _tsv(value, (*place, key))
        else:
            yield ".".join(place) or "all", key, "" if value is None else str(value)


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
            n = coverage.n_without_relevant
            print_lines([f"{n:,} {'query has' if n == 1 else 'queries have'} no relevant document.", ""])
    if len(coverage.rankers) > 1:
        depth = coverage.depths.index(10)
        header = ["overlap of the top 10", *coverage.rankers]
        cells = [
            (a, *(f"{share:.1%}" for share in coverage.overlap[depth, i].tolist()))
            for i, a in enumerate(coverage.rankers)
        ]
        print_table("", header, cells)
