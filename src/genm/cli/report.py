"""`genm report`: the evidence behind a model, as a page to look at or as text for papers and pipelines."""

import hashlib
import platform
import shlex
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genm.cli.console import print_lines, progress_bars, say, say_notes
from genm.cli.options import (
    STDIN,
    DuplicateRule,
    Duplicates,
    Lenient,
    OutputFile,
    Runs,
    add_verb,
    check_output,
    named_paths,
    read_judgments,
    read_runs,
)
from genm.errors import InputError

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evidence import Kept
    from genm.model import Model
    from genm.progress import Progress
    from genm.report.payload import InputFile, Report
    from genm.report.queries import Texts

TEXT = """Show what a model is worth: gains and whether they are luck, weights and how sure they are, every query.

The page is one HTML file that asks the network for nothing; md, tex and json are for papers and pipelines. Folds
and refits are read from the file that `genm fit` keeps beside the model; where it is missing, or of other data,
they are computed. Large data are sampled, and the report says where. Without --format the output's name decides."""
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


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    summary = "Show what a model is worth, on one page."
    add_verb(app, "report", report, summary=summary, text=TEXT, examples=EXAMPLES)


def report(
    runs: Runs,
    model_path: Annotated[str, typer.Option("--model", help="A model file of genm fit.", metavar="FILE")],
    qrels: Annotated[str, typer.Option(help="The judgments.", metavar="FILE")],
    query_weights: Annotated[
        str | None, typer.Option(help="Query weights, if fit was given some.", metavar="FILE")
    ] = None,
    texts: Annotated[
        str | None, typer.Option(help="Texts of documents: id TAB text, or JSON lines.", metavar="FILE")
    ] = None,
    query_texts: Annotated[
        str | None, typer.Option(help="Texts of queries, in the same forms.", metavar="FILE")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Queries that open to their documents; 200 without it.", metavar="N", min=0)
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title; else the model's file name.", metavar="TEXT")] = None,
    form: Annotated[
        ReportFormat | None, typer.Option("--format", help="html, md, json or tex.", metavar="FORMAT")
    ] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    path: OutputFile = "-",
) -> None:
    """Read, align, gather, write."""
    from genm.align import align_runs
    from genm.model import check_rankers, load_model
    from genm.read import read_query_weights
    from genm.report.build import DETAIL_QUERIES, Source, build_report
    from genm.report.queries import add_texts

    others = (qrels, query_weights, texts, query_texts)
    named = named_paths(runs, *others)
    check_output(path)
    kind = form or _by_name(path)
    _check_not_read(path, (model_path, *named.values(), *others))
    if kind is ReportFormat.html and path == STDIN and sys.stdout.isatty():
        raise InputError("a page is not for reading on a terminal. Write it to a file: -o report.html")
    model = load_model(model_path)
    check_rankers(model, tuple(named), model_path)
    with progress_bars() as progress:
        judged = read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        weights = None if query_weights is None else read_query_weights(query_weights)
        aligned = align_runs(
            {name: loaded[name] for name in model.rankers},
            judged,
            normalize=model.normalizers,
            depth=model.depths,
            query_weights=weights,
            progress=progress,
        )
        notes = [*judged.notes, *(note for run in loaded.values() for note in run.notes)]
        say_notes((*notes, *aligned.notes))
        kept, beside = _evidence(aligned, model, model_path, progress)
        files = {"model": model_path, "evidence": beside, "judgments": qrels, "query weights": query_weights}
        files |= {"texts": texts, "query texts": query_texts}
        files |= {f"run {name}": named[name] for name in model.rankers}
        source = Source(
            title=title if title is not None else Path(model_path).name,
            command=_command(
                runs,
                path,
                kind,
                {
                    "--model": model_path,
                    "--qrels": qrels,
                    "--query-weights": query_weights,
                    "--texts": texts,
                    "--query-texts": query_texts,
                    "--queries": queries,
                    "--title": title,
                },
            ),
            files=_files(files),
            versions=_versions(),
            notes=tuple(notes),
            evidence_was_read=beside is not None,
        )
        n_details = DETAIL_QUERIES if queries is None else queries
        found = build_report(aligned, model, kept, source, n_details=n_details, progress=progress)
        add_texts(found, _reader(texts, progress), _reader(query_texts, progress))
    for said in found["sampling"]:
        say(f"note: {said['sentence']}")
    _write(path, kind, found)


def _evidence(
    aligned: "Aligned", model: "Model", model_path: str, progress: "Progress"
) -> "tuple[Kept, str | None]":
    """Return the evidence, and where it was read; None if it had to be computed."""
    from genm.evidence import evidence_path, fingerprint, load_evidence, mismatch
    from genm.report.build import compute_evidence

    beside = evidence_path(model_path)
    if not beside.exists():
        say(f"no {beside}: cross-validating and refitting, which genm fit -o would have kept")
        return compute_evidence(aligned, model, progress=progress), None
    kept = load_evidence(beside)
    reason = mismatch(kept, model, fingerprint(aligned))
    if reason is None:
        return kept, str(beside)
    say(f"note: {beside} is not used: {reason}. Cross-validating and refitting instead.")
    return compute_evidence(aligned, model, progress=progress), None


def _by_name(path: str) -> ReportFormat:
    suffixes = {f".{form}": form for form in ReportFormat} | {
        ".htm": ReportFormat.html,
        ".markdown": ReportFormat.md,
    }
    name = Path(path).name.lower()
    for packing in (".gz", ".zst"):
        name = name.removesuffix(packing)
    return suffixes.get(Path(name).suffix, ReportFormat.html)


def _check_not_read(path: str, inputs: Iterable[str | None]) -> None:
    """Refuse to write over what is read."""
    if path == STDIN or not Path(path).exists():
        return
    for name in inputs:
        if name not in (None, STDIN) and Path(name).exists() and Path(path).samefile(name):
            raise InputError(f"{path}: expected a file that is not read here; it would be lost. Name another one.")


def _reader(path: str | None, progress: "Progress") -> "Texts | None":
    from genm.report.queries import read_texts

    return None if path is None else lambda wanted: read_texts(path, wanted, progress=progress)


def _command(runs: list[str], path: str, form: ReportFormat, options: "dict[str, str | int | None]") -> str:
    """Return the command that makes this report again: the options that were given, and the runs."""
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return shlex.join(["genm", "report", *given, *runs, "--format", form.value, "-o", path])


def _files(paths: "dict[str, str | None]") -> "tuple[InputFile, ...]":
    """Return name, hash and size of every file that was read; several are hashed at a time."""
    from genm._math.parallel import over_items

    given = [(role, path) for role, path in paths.items() if path is not None]
    return tuple(over_items(lambda pair: _file(*pair), given))


def _file(role: str, path: str) -> "InputFile":
    if not Path(path).is_file():
        return {"role": role, "name": Path(path).name, "sha256": None, "n_bytes": None}
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"role": role, "name": Path(path).name, "sha256": digest, "n_bytes": Path(path).stat().st_size}


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from genm import __version__

    return {
        "genm": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scipy", "polars")},
    }


def _write(path: str, form: ReportFormat, found: "Report") -> None:
    from genm.io import write_text
    from genm.report import render_report

    if path == STDIN:
        print_lines(render_report(found, form.value).removesuffix("\n").split("\n"))
        return
    write_text(path, render_report(found, form.value))
    say(f"wrote {path}")
