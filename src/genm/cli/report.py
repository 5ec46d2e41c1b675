"""`genm report`: the evidence behind a model, as a page to look at or as text for papers and pipelines."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.io import write_text

TEXT = """Report on a model: gains and their significance, weights and their uncertainty, every query.

The page is one self-contained HTML file; md, tex and json are for papers and pipelines. Cross-validation and refits
are read from the file that `genm fit` writes beside the model; if it is missing or belongs to other data, they are
computed. Large data are sampled, and the report says where. Without --format, the output's file name decides."""
EXAMPLES = (
    "genm report --model model.json --qrels q.txt b.trec d.trec -o report.html",
    "genm report --model model.json --qrels q.txt b.trec d.trec --format md",
    "genm report --model m.json --qrels q.txt b.trec d.trec --format json | jq",
)


class ReportFormat(StrEnum):
    """What a report is written as."""

    html = "html"
    md = "md"
    json = "json"
    tex = "tex"


def report(
    runs: options.Runs,
    model_path: Annotated[str, typer.Option("--model", help="A model file of genm fit.", metavar="FILE")],
    qrels: Annotated[str, typer.Option(help="The judgments.", metavar="FILE")],
    query_weights: Annotated[
        str | None, typer.Option(help="Query weights, if genm fit used them.", metavar="FILE")
    ] = None,
    texts: Annotated[
        str | None, typer.Option(help="Texts of documents: id TAB text, or JSON lines.", metavar="FILE")
    ] = None,
    query_texts: Annotated[
        str | None, typer.Option(help="Texts of queries, in the same forms.", metavar="FILE")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Queries shown with their documents; default: 200.", metavar="N", min=0)
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title; default: the model's file name.", metavar="TEXT")
    ] = None,
    form: Annotated[
        ReportFormat | None, typer.Option("--format", help="html, md, json or tex.", metavar="FORMAT")
    ] = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    path: options.OutputFile = "-",
) -> None:
    """Read, align, report, write."""
    others = (qrels, query_weights, texts, query_texts)
    named = options.named_paths(runs, *others)
    evidence = str(genm.evidence.evidence_path(model_path))
    options.check_output(path, (model_path, evidence, *named.values(), *others))
    kind = form or _by_name(path)
    if kind is ReportFormat.html and path == options.STDIN and sys.stdout.isatty():
        raise InputError("expected a file for the HTML page; found a terminal. Name one: -o report.html")
    model = genm.load_model(model_path)
    genm.model.check_rankers(model, tuple(named), model_path)
    chosen = {"--query-weights": query_weights, "--texts": texts, "--query-texts": query_texts}
    chosen |= {"--queries": None if queries is None else f"{queries}", "--title": title}
    chosen |= {"--grades": None if grades == options.WHOLE_GRADES else grades}
    command = _command(runs, path, kind, {"--model": model_path, "--qrels": qrels, **chosen})
    files = {"judgments": qrels, "query weights": query_weights, "texts": texts, "query texts": query_texts}
    with console.progress_bars() as progress:
        judged = options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = genm.align_runs(
            {name: loaded[name] for name in model.rankers},
            judged,
            normalize=model.normalizers,
            depth=model.depths,
            query_weights=None if query_weights is None else genm.read.read_query_weights(query_weights),
            progress=progress,
        )
        notes = (*judged.notes, *(note for run in loaded.values() for note in run.notes))
        console.say_notes((*notes, *aligned.notes))
        if model.groups is not None or model.gate is not None:
            console.say(
                "note: the report is of the global weights; genm explain --groups compares those of the groups"
            )
        found = genm.report.report_model(
            model,
            aligned,
            path=model_path,
            files=files | {f"run {name}": named[name] for name in model.rankers},
            title=title,
            command=command,
            notes=notes,
            n_details=genm.report.DETAIL_QUERIES if queries is None else queries,
            snippet=genm.training.engine_snippet(model),
            tell=console.say,
            progress=progress,
        )
    for said in found["sampling"]:
        console.say(f"note: {said['sentence']}")
    text = genm.report.render_report(found, kind.value)
    if path == options.STDIN:
        console.print_lines(text.removesuffix("\n").split("\n"))
    else:
        write_text(path, text)
        console.say(f"wrote {path}")


def _by_name(path: str) -> ReportFormat:
    suffixes = {f".{form}": form for form in ReportFormat} | {
        ".htm": ReportFormat.html,
        ".markdown": ReportFormat.md,
    }
    name = Path(path).name.lower()
    for packing in (".gz", ".zst"):
        name = name.removesuffix(packing)
    return suffixes.get(Path(name).suffix, ReportFormat.html)


def _command(runs: list[str], path: str, form: ReportFormat, chosen: dict[str, str | None]) -> str:
    """Return the command that makes this report again: the options that were given, and the runs."""
    given = [word for name, value in chosen.items() if value is not None for word in (name, value)]
    return shlex.join(["genm", "report", *given, *runs, "--format", form.value, "-o", path])


command = make_verb(report, TEXT, EXAMPLES)
