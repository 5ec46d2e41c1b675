"""`genm update`: go on learning from a stream of judged queries."""

from dataclasses import replace
from typing import Annotated

import typer

from genm.cli.inputs import (
    DuplicateRule,
    Duplicates,
    Lenient,
    Runs,
    check_output,
    named_paths,
    read_judgments,
    read_runs,
)
from genm.cli.show import Format, Output, print_json, print_table, print_tsv, progress_bars, say, say_notes
from genm.cli.verbs import add_verb

TEXT = """Take the judged queries that have come in since, one step each, and write the model back (gEnM.ON).

The model must come from `genm fit --method on`. It keeps the state of the stream, so updating in pieces gives the
same weights, bit for bit, as one long stream."""
EXAMPLES = ("genm update --model model.json --qrels new.qrels bm25=b.trec dense=d.trec",)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    summary = "Go on learning from a stream of judged queries."
    add_verb(app, "update", update, summary=summary, text=TEXT, examples=EXAMPLES)


def update(
    runs: Runs,
    model: Annotated[str, typer.Option(help="The model to go on with.", metavar="FILE")],
    qrels: Annotated[str, typer.Option(help="Judgments of the new queries.", metavar="FILE")],
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write; else over the model.", metavar="FILE")
    ] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, go on, save, print."""
    from genm.learn import OnlineFuser, align_for_model
    from genm.model import load_model, save_model

    named_paths(runs, qrels)
    check_output(model_path)
    before = load_model(model)
    fuser = OnlineFuser.from_model(before)
    seen = fuser.n_seen_
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = align_for_model(before, loaded, judged)
        fuser.partial_fit(aligned)
    for run in loaded.values():
        say_notes(run.notes)
    say_notes((*judged.notes, *aligned.notes))
    now = fuser.to_model()
    after = replace(before, weights=now.weights, online=now.online)
    rows = list(zip(before.rankers, before.weights, after.weights, strict=True))
    if output is Format.json:
        print_json({"weights": dict(zip(after.rankers, after.weights, strict=True)), "seen": fuser.n_seen_})
    elif output is Format.tsv:
        print_tsv(("weight", name, repr(weight)) for name, _, weight in rows)
    else:
        title = f"{fuser.n_seen_ - seen} queries more, {fuser.n_seen_} in all"
        print_table(title, ["ranker", "before", "now"], [(n, f"{b:.4f}", f"{a:.4f}") for n, b, a in rows])
    save_model(after, model_path or model)
    say(f"wrote {model_path or model}")
