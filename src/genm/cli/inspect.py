"""`genm inspect`: what is in these runs, before anything is learned from them."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb

TEXT = """Look at runs before anything is learned from them: size, scale of scores, ties, missing scores, overlap.

With --qrels also the share of judged documents at the top, and the number of queries without relevant documents."""
EXAMPLES = (
    "genm inspect bm25=bm25.trec dense=dense.trec",
    "genm inspect bm25=bm25.trec dense=dense.trec --qrels qrels.txt",
)


def inspect(
    runs: options.Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments.", metavar="FILE")] = None,
    depth: options.Depth = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, align, print what is there."""
    options.named_paths(runs, qrels)
    with console.progress_bars() as progress:
        judged = (
            None
            if qrels is None
            else options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        )
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        cut = options.depths(depth or [])
        aligned = genm.align_runs(loaded, judged, normalize="none", depth=cut, progress=progress)
        coverage = aligned.coverage()
    console.say_notes(() if judged is None else judged.notes)
    for run in loaded.values():
        console.say_notes(run.notes)
    console.say_notes(aligned.notes)
    facts = as_json(coverage, loaded)
    console.show(output, json=lambda: facts, tsv=lambda: _tsv(facts), table=lambda: _tables(coverage, loaded))


def as_json(coverage: "genm.align.Coverage", runs: "dict[str, genm.Run]") -> dict[str, Any]:
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


def _tables(coverage: "genm.align.Coverage", runs: "dict[str, genm.Run]") -> None:
    header = ["ranker", "queries", "rows", "lowest", "median", "highest", "ties", "missing"]
    rows = []
    for k, name in enumerate(coverage.rankers):
        scales = [f"{value:.4g}" for value in coverage.scales[k].tolist()]
        shares = [f"{share:.1%}" for share in (coverage.ties[k], coverage.missing[k])]
        rows.append((name, f"{len(runs[name].queries):,}", f"{len(runs[name].doc):,}", *scales, *shares))
    console.print_table(f"{coverage.n_queries:,} queries; raw scores", header, rows)
    if coverage.judged is not None:
        header = ["judged share at", *(f"{depth}" for depth in coverage.depths)]
        cells = [
            (name, *(f"{share:.1%}" for share in coverage.judged[:, k].tolist()))
            for k, name in enumerate(coverage.rankers)
        ]
        console.print_table("", header, cells)
        if coverage.n_without_relevant:
            n = coverage.n_without_relevant
            console.print_lines([f"{n:,} {'query has' if n == 1 else 'queries have'} no relevant document.", ""])
    if len(coverage.rankers) > 1:
        depth = coverage.depths.index(10)
        header = ["overlap of the top 10", *coverage.rankers]
        cells = [
            (a, *(f"{share:.1%}" for share in coverage.overlap[depth, i].tolist()))
            for i, a in enumerate(coverage.rankers)
        ]
        console.print_table("", header, cells)


command = make_verb(inspect, TEXT, EXAMPLES)
