"""`genm update`: go on learning from a stream of judged queries."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_table,
    print_tsv,
    progress_bars,
    say,
    say_notes,
    weight_text,
)
from genm.cli.options import (
    STDIN,
    DuplicateRule,
    Duplicates,
    Lenient,
    Runs,
    add_verb,
    check_output,
    named_paths,
    read_judgments,
    read_runs,
)
from genm.errors import InputError

TEXT = """Take the judged queries that have come in since, one step each, and write the model back (gEnM.ON).

The model must come from `genm fit --method online`. It keeps the state of the stream, so updating in pieces gives
the same weights, bit for bit, as one long stream. Updates of one file wait for each other. The figures that fit
kept in the model are of other weights, and are dropped."""
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
    from genm.learn import OnlineFuser
    from genm.model import align_for_model, check_rankers, load_model, save_model

    names = named_paths(runs, qrels, model)
    if model_path is None and not Path(model).is_file() and (model == STDIN or Path(model).exists()):
        raise InputError(f"--model {model}: expected -o FILE as well; there is no file to write the model back to.")
    target = model_path or model
    check_output(target, standard=False)
    with _locked(model):
        before = load_model(model)
        check_rankers(before, tuple(names), model)
        fuser = OnlineFuser.from_model(before)
        seen = fuser.n_seen_
        with progress_bars() as progress:
            judged = read_judgments(qrels, lenient=lenient, progress=progress)
            loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
            aligned = align_for_model(before, loaded, judged)
            fuser.partial_fit(aligned)
        now = fuser.to_model()
        after = replace(before, weights=now.weights, online=now.online, training={})
        save_model(after, target)  # before anything is printed: whoever reads may go away, the model stays
    for run in loaded.values():
        say_notes(run.notes)
    say_notes((*judged.notes, *aligned.notes))
    rows = list(zip(before.rankers, before.weights, after.weights, strict=True))
    if output is Format.json:
        print_json({"weights": dict(zip(after.rankers, after.weights, strict=True)), "seen": fuser.n_seen_})
    elif output is Format.tsv:
        print_tsv(("weight", name, repr(weight)) for name, _, weight in rows)
    else:
        more = fuser.n_seen_ - seen
        title = f"{more:,} {'query' if more == 1 else 'queries'} more, {fuser.n_seen_:,} in all"
        print_table(title, ["ranker", "before", "now"], [(n, weight_text(b), weight_text(a)) for n, b, a in rows])
    say(f"wrote {target}")


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other updates of this file waiting, so that each goes on from what the one before it wrote.

    The lock lies on the file itself. Writing puts another file in its place, so whoever has waited looks again.
    Where the system or the file system knows no locks, work goes on without.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    while Path(path).is_file():
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another update of {path}")
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:
                break
            if _is_still(path, file.fileno()):
                yield
                return
    yield


def _is_still(path: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
