"""`genm update`: continue learning from a stream of judged queries."""

from pathlib import Path
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.io import locked

TEXT = """Update a model with newly judged queries, one step for each, and write it back (gEnM.ON).

The model must come from `genm fit --method online`. It keeps the state of the stream, so updates in parts give the
same weights, bit for bit, as one long stream. Updates of the same file wait for each other. The training figures
in the model belong to the old weights and are dropped.

A model does not remember its queries. With --seen, the judgments that it has learned from, only queries with a new
judgment take a step, each with all its judgments, old and new; where grades differ the new one counts. Without it,
every query of --qrels takes a step with the judgments of that file alone.

With --groups, or --queries for a model with rules, a query also moves the weights of its group. A new group starts
at the global weights."""
EXAMPLES = (
    "genm update --model model.json --qrels new.qrels bm25=b.trec dense=d.trec",
    "genm update --model m.json --qrels new.txt --seen old.txt b.trec d.trec",
    "genm update --model m.json --qrels new.qrels --groups g.tsv b.trec d.trec",
)


def update(
    runs: options.Runs,
    model: Annotated[str, typer.Option(help="The model to update.", metavar="FILE")],
    qrels: Annotated[str, typer.Option(help="Judgments of the new queries.", metavar="FILE")],
    seen: Annotated[
        str | None, typer.Option(help="Judgments that the model has learned from.", metavar="FILE")
    ] = None,
    groups: options.GroupFile = None,
    queries: options.QueryFile = None,
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write; else over the model.", metavar="FILE")
    ] = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, update, save, print."""
    names = options.named_paths(runs, qrels, model, seen, groups, queries)
    if model_path is None and not Path(model).is_file() and (model == options.STDIN or Path(model).exists()):
        raise InputError(f"--model {model}: expected -o FILE as well; there is no file to write the model back to.")
    target = model_path or model
    options.check_output(target, (*names.values(), qrels, seen, groups, queries), standard=False)
    with locked(model, waiting=lambda: console.say(f"waiting for another update of {model}")):
        before = genm.load_model(model)
        genm.model.check_rankers(before, tuple(names), model)
        n_before = genm.learn.OnlineFuser.from_model(before).n_seen_  # refuses a model without a stream
        with console.progress_bars() as progress:
            judged = options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
            if seen is not None:
                known = options.read_judgments(seen, lenient=lenient, grades=grades, progress=progress)
                judged = genm.learn.merge_new_judgments(known, judged)
            loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            aligned = before.align(loaded, judged) if len(judged) else None
            group_of, columns = options.read_query_files(groups, queries)
            after = before
            if aligned is not None:
                names_of_groups = _groups(before, aligned, group_of, columns)
                after = genm.learn.update_model(before, aligned, names_of_groups)
        genm.save_model(after, target)  # before anything is printed: a broken pipe must not cost the model
    for run in loaded.values():
        console.say_notes(run.notes)
    console.say_notes((*judged.notes, *(() if aligned is None else aligned.notes)))
    rows = list(zip(before.rankers, before.weights, after.weights, strict=True))
    n_seen = genm.learn.OnlineFuser.from_model(after).n_seen_
    console.show(
        output,
        json=lambda: {
            "weights": dict(zip(after.rankers, after.weights, strict=True)),
            "seen": n_seen,
            **({} if after.groups is None else {"groups": _by_name(after)}),
        },
        tsv=lambda: [
            *(("weight", name, repr(weight)) for name, _, weight in rows),
            *(
                (f"group.weight.{group}", name, repr(weight))
                for group, weights in _by_name(after).items()
                for name, weight in weights.items()
            ),
        ],
        table=lambda: _tables(after, rows, n_seen - n_before, n_seen),
    )
    console.say(f"wrote {target}")


def _groups(
    model: "genm.Model",
    aligned: "genm.Aligned",
    given: dict[str, str] | None,
    columns: dict[str, dict[str, str]] | None,
) -> list[str | None] | None:
    """Return the group of each query; None where there are no groups to update."""
    if model.groups is None and columns is not None:
        raise InputError("--queries: this model has no rules and no column that say the group. Use --groups.")
    if given is None and columns is None:
        if model.groups is not None:
            console.say(
                "note: the groups of these queries are not given (--groups, --queries): only the global weights "
                "move"
            )
        return None
    grouping = genm.grouping.Grouping() if model.groups is None else model.groups.grouping
    return genm.grouping.groups_of_queries(grouping, aligned.queries, queries=columns, given=given)


def _by_name(model: "genm.Model") -> dict[str, dict[str, float]]:
    """Return the weights of each group by ranker."""
    known = {} if model.groups is None else model.groups.weights
    return {group: dict(zip(model.rankers, weights, strict=True)) for group, weights in known.items()}


def _tables(model: "genm.Model", rows: list[tuple[str, float, float]], n_new: int, n_seen: int) -> None:
    _table(rows, n_new, n_seen)
    cells = [(group, *map(console.weight_text, one.values())) for group, one in _by_name(model).items()]
    if cells:
        console.print_table("Weights by group", ["group", *model.rankers], cells)


def _table(rows: list[tuple[str, float, float]], n_new: int, n_seen: int) -> None:
    title = f"{n_new:,} {'query' if n_new == 1 else 'queries'} more, {n_seen:,} in all"
    cells = [(name, console.weight_text(before), console.weight_text(now)) for name, before, now in rows]
    console.print_table(title, ["ranker", "before", "now"], cells)


command = make_verb(update, TEXT, EXAMPLES)
