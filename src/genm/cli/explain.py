"""`genm explain`: what each ranker is worth, to the ensemble, to a query, to a document."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import Format, Output, print_json, print_tsv, progress_bars, say, say_notes
from genm.cli.explain_show import as_json, as_tsv, query_json, query_tables, query_tsv, tables
from genm.cli.fit import METHODS
from genm.cli.options import (
    STDIN,
    DuplicateRule,
    Duplicates,
    Lenient,
    Runs,
    check_output,
    named_paths,
    read_judgments,
    read_runs,
)
from genm.cli.verbs import add_verb
from genm.errors import InputError
from genm.io import write_text

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evaluate import Measure
    from genm.model import Model
    from genm.progress import Progress

TEXT = """Show what each ranker is worth: its share of the measure, and what is lost when it is left out.

Every subset of the rankers is learned again and measured on queries held out, so no figure owes anything to
queries that a weight was learned from. Up to 12 rankers all subsets are gone through; of more, --orders are
sampled. With --query the model's weights explain one query: what each ranker gained or lost, and every document's
score as a sum of what the rankers gave."""
EXAMPLES = (
    "genm explain --model model.json --qrels qrels.txt bm25=b.trec dense=d.trec",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --plot worth.svg",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --query 12 --top 5",
    "genm explain --model m.json a.trec b.trec --query 12 --doc d034",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "explain", explain, summary="Show what each ranker is worth.", text=TEXT, examples=EXAMPLES)


def explain(
    runs: Runs,
    model: Annotated[str, typer.Option(help="A model file of genm fit.", metavar="FILE")],
    qrels: Annotated[str | None, typer.Option(help="Judgments; --query can do without.", metavar="FILE")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Explain this query.", metavar="QUERY")] = None,
    doc: Annotated[
        str | None, typer.Option("--doc", help="Of the query, explain this document.", metavar="DOC")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Of the query, explain the top N; 10 without it.", metavar="N", min=1)
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", help="What to measure and learn; else the model's.", metavar="MEASURE"),
    ] = None,
    method: Annotated[str | None, typer.Option(help="How to learn; else the model's.", metavar="NAME")] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", metavar="N", min=2)] = 5,
    orders: Annotated[int | None, typer.Option(help="Sample so many orders of the rankers.", metavar="N")] = None,
    confidence: Annotated[float, typer.Option(help="Level of intervals and tests.", metavar="SHARE")] = 0.95,
    margin: Annotated[float, typer.Option(help="A loss below this counts as nothing.", metavar="NUMBER")] = 0.005,
    seed: Annotated[int, typer.Option(help="Seed of folds, orders and resamples.", metavar="N", min=0)] = 0,
    plot: Annotated[str | None, typer.Option(help="Draw the figures into this SVG.", metavar="FILE")] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, align as the model does, learn subsets, print and draw."""
    from genm.learn import align_for_model
    from genm.model import check_rankers, load_model

    _check_options(qrels, query, doc, top, plot)
    names = named_paths(runs, qrels)
    if plot == STDIN:
        raise InputError("--plot -: a picture is written to a file. Name one, such as worth.svg.")
    check_output(plot)
    learned = load_model(model)
    check_rankers(learned, tuple(names), place=model)
    with progress_bars() as progress:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = align_for_model(learned, loaded, judged)
        for run in loaded.values():
            say_notes(run.notes)
        say_notes((*(judged.notes if judged else ()), *aligned.notes))
        wanted = _measure(learned, measure)
        if query is not None:
            _one_query(output, learned, aligned, wanted, query, doc, 10 if top is None else top)
            return
        how: dict[str, Any] = {
            "folds": folds,
            "orders": orders,
            "confidence": confidence,
            "margin": margin,
            "seed": seed,
        }
        how |= {"method": _method(learned, method), "measure": wanted, "level": learned.relevance_level}
        _ensemble(output, learned, aligned, how, plot, progress)


def _check_options(
    qrels: str | None, query: str | None, doc: str | None, top: int | None, plot: str | None
) -> None:
    """Refuse options that contradict each other, or that nothing would read."""
    if query is None and (doc is not None or top is not None):
        option = "--doc" if doc is not None else "--top"
        raise InputError(f"{option} explains documents of one query. Name it: --query QUERY.")
    if doc is not None and top is not None:
        raise InputError("--doc explains one document and --top several. Leave one of them out.")
    if query is not None and plot is not None:
        raise InputError("--plot draws the worth of the rankers over all queries. Leave --query out.")
    if query is None and qrels is None:
        raise InputError(
            "expected --qrels FILE: what a ranker is worth is measured on judgments. Give them, or --query."
        )


def _measure(model: "Model", measure: str | None) -> "Measure":
    from genm.evaluate import parse_measure
    from genm.learn.scorer import with_level

    return with_level(parse_measure(measure or model.measure), model.relevance_level)


def _one_query(
    output: Format,
    model: "Model",
    aligned: "Aligned",
    measure: "Measure",
    query: str,
    doc: str | None,
    top: int,
) -> None:
    import numpy as np

    from genm.explain import explain_documents, gains_by_query
    from genm.explain.contributions import position_of

    found = explain_documents(aligned, model.weights, query, doc_id=doc, top=top)
    gains = None
    if aligned.labelled:
        one = aligned.select(np.array([position_of(aligned, query)]))
        gains = gains_by_query(one, model.weights, measure)
    if output is Format.json:
        print_json(query_json(model, query, found, gains))
    elif output is Format.tsv:
        print_tsv(query_tsv(model, query, found, gains))
    else:
        query_tables(model, query, found, gains)


def _method(model: "Model", asked: str | None) -> str:
    """Return how subsets are learned: as asked, as the model was, or by auto where nobody could do that again."""
    if asked is not None or model.method in METHODS:
        return asked or model.method
    say(f"note: the model's method {model.method!r} cannot be learned again; subsets are learned by 'auto'.")
    return "auto"


def _ensemble(
    output: Format, model: "Model", aligned: "Aligned", how: dict[str, Any], plot: str | None, progress: "Progress"
) -> None:
    from genm.explain import draw_worth, gains_by_query, measure_worth

    if plot is not None:
        _check_drawing()
    worth = measure_worth(aligned, progress=progress, **how)
    gains = gains_by_query(aligned, model.weights, worth.measure)
    if output is Format.json:
        print_json(as_json(model, worth, gains))
    elif output is Format.tsv:
        print_tsv(as_tsv(model, worth, gains))
    else:
        tables(model, worth, gains)
    if plot is not None:
        write_text(plot, draw_worth(worth))
        say(f"wrote {plot}")


def _check_drawing() -> None:
    """Say that drawing needs an extra before the work, not after it."""
    from genm.plotting import new_figure

    new_figure(1.0, 1.0)
