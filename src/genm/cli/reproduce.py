"""`genm reproduce`: the paper's experiment, repeated."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.cli.compilation import compile_in_background

PAPERS = "med,cran,cisi,cacm,mc"
TEXT = f"""Repeat the paper's experiment: every table and figure, with the printed numbers beside ours.

Ranks the collections by TFIDF, LSA, pLSI and LDI, learns weights by every method on one half of the judged queries,
measures on the other half, and averages over seeded splits. Writes a folder with one self-contained page, tables
(Markdown, CSV), figures (SVG) and a manifest. Without --collections they are the paper's five, {PAPERS}, which
need the SMART collections (--data or GENM_DATA); pydocs needs no data. Figures need the extra `plots`. Rankings are
cached on disk."""
EXAMPLES = (
    "genm reproduce -o results/",
    "genm reproduce --collections med --splits 2 -o first-page/",
    "genm reproduce --collections pydocs -o results/",
)


def reproduce(
    collections: Annotated[
        list[str] | None, typer.Option(help="Collections, comma-separated; may be repeated.", metavar="LIST")
    ] = None,
    splits: Annotated[int, typer.Option(help="Seeded splits into two halves.", metavar="N", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first split; the others follow.", metavar="N", min=0)] = 0,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the page.", metavar="DIR")] = "results",
    data: Annotated[
        str | None, typer.Option(help="Folder of the SMART collections; else GENM_DATA.", metavar="DIR")
    ] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Write no figures.")] = False,
    paper_rankers: Annotated[
        bool, typer.Option("--paper-rankers", help="Leave out the table with BM25 and the dense rankers.")
    ] = False,
    form: console.Output = console.Format.table,
) -> None:
    """Run, write, summarise."""
    names = options.split_list(collections or [PAPERS])
    chosen = {"--collections": ",".join(names), "--splits": str(splits), "--seed": str(seed), "-o": output}
    words = ["genm", "reproduce", *(word for pair in chosen.items() for word in pair)]
    words += ["--no-figures"] * no_figures + ["--paper-rankers"] * paper_rankers
    with console.progress_bars() as progress, compile_in_background(exact=True):
        results = genm.reproduce.reproduce_to_folder(
            output,
            names,
            splits=splits,
            seed=seed,
            data=data,
            further=not paper_rankers,
            figures=not no_figures,
            command=shlex.join(words),
            progress=progress,
        )
    console.say_notes(results.notes)
    header, rows, best = genm.reproduce.summary_of(results)
    title = f"Held out, mean over {results.splits} {'split' if results.splits == 1 else 'splits'} into halves"
    console.show(
        form,
        json=lambda: genm.reproduce.results_json(results),
        tsv=lambda: [header, *rows],
        table=lambda: console.print_table(title, header, rows, best=best, left=2),
    )
    console.say(f"wrote {Path(output) / genm.reproduce.PAGE}")


command = make_verb(reproduce, TEXT, EXAMPLES)
