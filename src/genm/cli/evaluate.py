"""`genm evaluate`: how good are these runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from genm.cli.inputs import Duplicates, Lenient, named_paths, read_judgments, read_runs, split_list
from genm.cli.show import Format, print_json, print_lines, print_table, progress_bars, say_notes

if TYPE_CHECKING:
    from genm.evaluate import Evaluation

HELP = """Measure runs against judgments, as `trec_eval -c` does.

Measures carry the names of ir_measures: AP, P@5, nDCG@10, RR, R@100, P(rel=2)@5, ... Judged queries that a
run lacks count 0 and are said; `--skip-missing` leaves them out.

Example:

    genm evaluate qrels.txt bm25=bm25.trec dense=dense.trec.gz -m AP,nDCG@10
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("evaluate", help=HELP)(evaluate)


def evaluate(
    qrels: Annotated[str, typer.Argument(help="Judgments (TREC qrels or a table).", metavar="QRELS")],
    runs: Annotated[list[str], typer.Argument(help="Runs as FILE or NAME=FILE.", metavar="RUN...")],
    measures: Annotated[
        list[str] | None, typer.Option("--measures", "-m", help="Measures, comma-separated.", metavar="LIST")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also print every query.")] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out judged queries that a run lacks.")
    ] = False,
    lenient: Lenient = False,
    duplicates: Duplicates = "error",
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.table,
) -> None:
    """Read, evaluate, print."""
    from genm.evaluate import evaluate_run, parse_measures

    wanted = parse_measures(",".join(split_list(measures or ["AP,P@10,nDCG@10,RR"])))
    named_paths(runs)
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = {
            name: evaluate_run(run, judged, wanted, skip_missing=skip_missing) for name, run in loaded.items()
        }
    say_notes(judged.notes)
    for name, run in loaded.items():
        say_notes((*run.notes, *results[name].notes))
    if output is Format.json:
        print_json({name: as_json(result, per_query=per_query) for name, result in results.items()})
    elif output is Format.tsv:
        print_lines(line for name in results for line in _tsv(name, results[name], per_query, len(results) > 1))
    else:
        _table(results, [str(m) for m in wanted], per_query=per_query)


def as_json(result: "Evaluation", *, per_query: bool) -> dict[str, object]:
    """Return an evaluation as a JSON object."""
    names = [str(m) for m in result.measures]
    document: dict[str, object] = {"mean": dict(zip(names, result.means.tolist(), strict=True))}
    document["queries"] = len(result.query_ids)
    if per_query:
        rows = zip(result.query_ids, result.values.tolist(), strict=True)
        document["per_query"] = {query_id: dict(zip(names, row, strict=True)) for query_id, row in rows}
    document["notes"] = [note.text for note in result.notes]
    return document


def _tsv(run: str, result: "Evaluation", per_query: bool, several: bool) -> list[str]:
    names = [str(m) for m in result.measures]
    lines = [f"runid\tall\t{run}"] if several else []
    if per_query:
        for query_id, row in zip(result.query_ids, result.values.tolist(), strict=True):
            lines += [f"{name}\t{query_id}\t{value:.4f}" for name, value in zip(names, row, strict=True)]
    lines += [f"{name}\tall\t{value:.4f}" for name, value in zip(names, result.means.tolist(), strict=True)]
    return lines


def _table(results: "dict[str, Evaluation]", measures: list[str], *, per_query: bool) -> None:
    if per_query:
        rows = [
            (query_id, name, *(f"{value:.4f}" for value in row))
            for name, result in results.items()
            for query_id, row in zip(result.query_ids, result.values.tolist(), strict=True)
        ]
        print_table("", ["query_id", "run", *measures], rows, left=2)
    means = [result.means.tolist() for result in results.values()]
    best = [max(range(len(means)), key=lambda r: means[r][m]) for m in range(len(measures))]
    rows_ = [(name, *(f"{value:.4f}" for value in row)) for name, row in zip(results, means, strict=True)]
    n_queries = max(len(result.query_ids) for result in results.values())
    title = f"Mean over {n_queries} judged queries"
    print_table(title, ["run", *measures], rows_, best=best if len(means) > 1 else ())
