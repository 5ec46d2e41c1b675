"""`genm evaluate`: how good are these runs."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from genm.cli.console import Format, Output, print_json, print_table, print_tsv, progress_bars, say_notes
from genm.cli.options import (
    DuplicateRule,
    Duplicates,
    Judgments,
    Lenient,
    Measures,
    Runs,
    SkipMissing,
    add_verb,
    named_paths,
    read_judgments,
    read_runs,
    split_list,
)

if TYPE_CHECKING:
    from genm.evaluate import Evaluation

DEFAULT = "AP,P@10,nDCG@10,RR"
TEXT = f"""Measure runs against judgments, as `trec_eval -c` does.

Measures carry the names of ir_measures: AP, P@5, nDCG@10, RR, R@100, P(rel=2)@5, ...; without -m they are
{DEFAULT}. Judged queries that a run lacks count 0, and a note says so; --skip-missing leaves them out. --format tsv
prints measure, query (or all) and value, as trec_eval does."""
EXAMPLES = (
    "genm evaluate qrels.txt bm25=bm25.trec dense=dense.trec.gz -m AP,nDCG@10",
    "genm evaluate qrels.txt bm25.trec -q --format tsv",
    "zcat dense.trec.gz | genm evaluate qrels.txt dense=-",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "evaluate", evaluate, summary="Measure runs against judgments.", text=TEXT, examples=EXAMPLES)


def evaluate(
    qrels: Judgments,
    runs: Runs,
    measures: Measures = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also print every query.")] = False,
    skip_missing: SkipMissing = False,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, evaluate, print."""
    from genm.evaluate import evaluate_run, parse_measures

    wanted = parse_measures(split_list(measures or [DEFAULT]))
    named_paths(runs, qrels)
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = {
            name: evaluate_run(run, judged, wanted, skip_missing=skip_missing) for name, run in loaded.items()
        }
    of_runs = [(*run.notes, *results[name].notes) for name, run in loaded.items()]
    say_notes((*judged.notes, *chain.from_iterable(of_runs)))
    if output is Format.json:
        print_json({name: as_json(result, per_query=per_query) for name, result in results.items()})
    elif output is Format.tsv:
        print_tsv(row for name in results for row in _tsv(name, results[name], per_query, len(results) > 1))
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


def _tsv(run: str, result: "Evaluation", per_query: bool, several: bool) -> Iterator[tuple[str, str, str]]:
    names = [str(m) for m in result.measures]
    if several:
        yield "runid", "all", run
    if per_query:
        for query_id, row in zip(result.query_ids, result.values.tolist(), strict=True):
            yield from ((name, query_id, f"{value:.4f}") for name, value in zip(names, row, strict=True))
    yield from ((name, "all", f"{value:.4f}") for name, value in zip(names, result.means.tolist(), strict=True))


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
    counts = sorted({len(result.query_ids) for result in results.values()})
    title = f"Mean over {' to '.join(f'{n:,}' for n in (counts[0], counts[-1])[: len(counts)])} judged queries"
    rows_ = [(name, *(f"{value:.4f}" for value in row)) for name, row in zip(results, means, strict=True)]
    print_table(title, ["run", *measures], rows_, best=best if len(means) > 1 else ())
