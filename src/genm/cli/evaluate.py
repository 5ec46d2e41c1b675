"""`genm evaluate`: how good are these runs."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError

DEFAULT = "AP,P@10,nDCG@10,RR"
TEXT = f"""Measure runs against judgments, as `trec_eval -c` does.

Measures carry the names of ir_measures: AP, P@5, nDCG@10, RR, R@100, P(rel=2)@5, ...; without -m they are
{DEFAULT}. Judged queries that a run lacks count as 0, and a note says so; --skip-missing skips them. --format tsv
prints measure, query (or all) and value, as trec_eval does.

With --table, a score table of `genm shard` is read shard by shard in place of judgments and runs, and --model says
what to measure on it."""
EXAMPLES = (
    "genm evaluate qrels.txt bm25=bm25.trec dense=dense.trec.gz -m AP,nDCG@10",
    "genm evaluate qrels.txt bm25.trec -q --format tsv",
    "zcat dense.trec.gz | genm evaluate qrels.txt dense=-",
    "genm evaluate --table table/ --model model.json -m nDCG@10",
)


def evaluate(
    qrels: Annotated[
        str | None, typer.Argument(help="Judgments: TREC qrels or a table.", metavar="QRELS", show_default=False)
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="RUN", show_default=False),
    ] = None,
    measures: options.Measures = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also print every query.")] = False,
    skip_missing: options.SkipMissing = False,
    table: options.Table = None,
    model: options.TableModel = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, evaluate, print."""
    wanted = genm.parse_measures(options.split_list(measures or [DEFAULT]))
    if table is not None or model is not None:
        opened, learned = options.table_and_model(table, model, qrels, *runs or ())
        if skip_missing:
            raise InputError("--skip-missing: expected runs and judgments; found --table. Leave it out.")
        with console.progress_bars() as progress:
            found = genm.scale.evaluate_table(opened, learned, wanted, progress=progress)
        console.say_notes(found.notes)
        _show(output, {Path(str(model)).stem: found}, [str(m) for m in wanted], per_query=per_query)
        return
    if qrels is None or not runs:
        raise options.missing_argument("QRELS" if qrels is None else "RUN", "evaluate")
    options.named_paths(runs, qrels)
    with console.progress_bars() as progress:
        judged = options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        results = genm.evaluate_runs(loaded, judged, wanted, skip_missing=skip_missing)
    of_runs = [(*run.notes, *results[name].notes) for name, run in loaded.items()]
    console.say_notes((*judged.notes, *chain.from_iterable(of_runs)))
    _show(output, results, [str(m) for m in wanted], per_query=per_query)


def _show(
    output: console.Format, results: "dict[str, genm.Evaluation]", measures: list[str], *, per_query: bool
) -> None:
    console.show(
        output,
        json=lambda: {name: as_json(result, per_query=per_query) for name, result in results.items()},
        tsv=lambda: (row for name in results for row in _tsv(name, results[name], per_query, len(results) > 1)),
        table=lambda: _table(results, measures, per_query=per_query),
    )


def as_json(result: "genm.Evaluation", *, per_query: bool) -> dict[str, object]:
    """Return an evaluation as a JSON object."""
    names = [str(m) for m in result.measures]
    document: dict[str, object] = {"mean": dict(zip(names, result.means.tolist(), strict=True))}
    document["queries"] = len(result.query_ids)
    if per_query:
        rows = zip(result.query_ids, result.values.tolist(), strict=True)
        document["per_query"] = {query_id: dict(zip(names, row, strict=True)) for query_id, row in rows}
    document["notes"] = [note.text for note in result.notes]
    return document


def _tsv(run: str, result: "genm.Evaluation", per_query: bool, several: bool) -> Iterator[tuple[str, str, str]]:
    names = [str(m) for m in result.measures]
    if several:
        yield "runid", "all", run
    if per_query:
        for query_id, row in zip(result.query_ids, result.values.tolist(), strict=True):
            yield from ((name, query_id, f"{value:.4f}") for name, value in zip(names, row, strict=True))
    yield from ((name, "all", f"{value:.4f}") for name, value in zip(names, result.means.tolist(), strict=True))


def _table(results: "dict[str, genm.Evaluation]", measures: list[str], *, per_query: bool) -> None:
    if per_query:
        rows = [
            (query_id, name, *(f"{value:.4f}" for value in row))
            for name, result in results.items()
            for query_id, row in zip(result.query_ids, result.values.tolist(), strict=True)
        ]
        console.print_table("", ["query_id", "run", *measures], rows, left=2)
    means = [result.means.tolist() for result in results.values()]
    best = [max(range(len(means)), key=lambda r: means[r][m]) for m in range(len(measures))]
    counts = sorted({len(result.query_ids) for result in results.values()})
    title = f"Mean over {' to '.join(f'{n:,}' for n in (counts[0], counts[-1])[: len(counts)])} judged queries"
    rows_ = [(name, *(f"{value:.4f}" for value in row)) for name, row in zip(results, means, strict=True)]
    console.print_table(title, ["run", *measures], rows_, best=best if len(means) > 1 else ())


command = make_verb(evaluate, TEXT, EXAMPLES)
