"""`genm reproduce`: the paper's experiment, run again."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genm.cli.compilation import compile_in_background
from genm.cli.console import Format, Output, print_json, print_table, print_tsv, progress_bars, say, say_notes
from genm.cli.options import add_verb, split_list

if TYPE_CHECKING:
    from genm.reproduce.results import Results

PAPERS = "med,cran,cisi,cacm,mc"
TEXT = f"""Run the paper's experiment again: every table and figure, its numbers beside ours.

Ranks the collections by TFIDF, LSA, pLSI and LDI, learns weights by every method on one half of the judged queries,
measures on the other half, and averages over seeded splits. Writes a folder with one self-contained page, tables
(Markdown, CSV), figures (SVG) and a manifest. Without --collections they are the paper's five, {PAPERS}, which
need the SMART collections (--data or GENM_DATA); pydocs needs no data. Figures need the extra `plots`. What was
ranked before is read back from the cache."""
EXAMPLES = (
    "genm reproduce -o results/",
    "genm reproduce --collections med --splits 2 -o first-page/",
    "genm reproduce --collections pydocs -o results/",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(
        app,
        "reproduce",
        reproduce,
        summary="Run the paper's experiment again.",
        text=TEXT,
        examples=EXAMPLES,
    )


def reproduce(
    collections: Annotated[
        list[str] | None, typer.Option(help="Collections, comma-separated; may be repeated.", metavar="LIST")
    ] = None,
    splits: Annotated[int, typer.Option(help="Seeded splits into two halves.", metavar="N", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Of the first split; the others follow.", metavar="N", min=0)] = 0,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the page.", metavar="DIR")] = "results",
    data: Annotated[
        str | None, typer.Option(help="Folder of the SMART collections; else GENM_DATA.", metavar="DIR")
    ] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Leave the figures out.")] = False,
    paper_rankers: Annotated[
        bool, typer.Option("--paper-rankers", help="Leave out the table with BM25 and the dense rankers.")
    ] = False,
    form: Output = Format.table,
) -> None:
    """Run, write, summarise."""
    from genm.reproduce import reproduce as run
    from genm.reproduce.page import PAGE, make_folder, results_json, write_folder

    names = split_list(collections or [PAPERS])
    if not no_figures:
        _check_plots()
    folder = make_folder(Path(output))
    chosen = {"--collections": ",".join(names), "--splits": str(splits), "--seed": str(seed), "-o": output}
    words = ["genm", "reproduce", *(word for pair in chosen.items() for word in pair)]
    words += ["--no-figures"] * no_figures + ["--paper-rankers"] * paper_rankers
    with progress_bars() as progress, compile_in_background(exact=True):
        results = run(names, splits=splits, seed=seed, data=data, further=not paper_rankers, progress=progress)
        results = write_folder(
            results, folder, command=shlex.join(words), figures=not no_figures, progress=progress
        )
    say_notes(results.notes)
    if form is Format.json:
        print_json(results_json(results))
    else:
        _print_summary(results, form)
    say(f"wrote {folder / PAGE}")


def _check_plots() -> None:
    """Refuse before the long work, not after it, if nothing could be drawn."""
    from genm.plotting import new_figure

    new_figure()


def _print_summary(results: "Results", form: Format) -> None:
    from genm.reproduce.tables import summary_of

    header, rows, best = summary_of(results)
    if form is Format.tsv:
        print_tsv([header, *rows])
    else:
        title = f"Held out, mean over {results.splits} {'split' if results.splits == 1 else 'splits'} into halves"
        print_table(title, header, rows, best=best, left=2)
