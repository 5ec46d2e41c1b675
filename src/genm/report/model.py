"""A report about a model in one call: its evidence, the files it was made from, the texts of what it shows."""

import hashlib
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path

from genm._math.parallel import over_items
from genm.align import Aligned
from genm.evidence import Kept, evidence_path, fingerprint, load_evidence, mismatch
from genm.model import Model
from genm.progress import Progress, silent
from genm.records import Note
from genm.report.build import DETAIL_QUERIES, Source, build_report, compute_evidence
from genm.report.payload import InputFile, Report, Snippet
from genm.report.queries import add_texts, read_beginnings
from genm.version import __version__


def report_model(
    model: Model,
    aligned: Aligned,
    *,
    path: str | os.PathLike[str],
    files: Mapping[str, str | None] | None = None,
    title: str | None = None,
    command: str = "",
    notes: tuple[Note, ...] = (),
    n_details: int = DETAIL_QUERIES,
    snippet: Snippet | None = None,
    tell: Callable[[str], None] = lambda _: None,
    progress: Progress = silent,
) -> Report:
    """Return the report of a model file; `render_report` writes it as a page, Markdown, LaTeX or JSON.

    `path` is the model's file. The evidence is read from the file beside it; if that is missing or belongs to other
    data it is computed, and `tell` gets a line that says so. `aligned` holds runs and judgments, aligned for the
    model. `files` names further input files by their role ("judgments", "run bm25"), to be listed with their
    hashes; those of "texts" and "query texts" are read as well. `notes` are those of reading. `snippet` is what the
    model's search engine takes (`genm.export.export_model`), to be copied from the page.
    """
    kept, beside = _evidence(aligned, model, path, tell, progress)
    given = {"model": str(path), "evidence": beside, **(files or {})}
    source = Source(
        title=title if title is not None else Path(path).name,
        command=command,
        files=_input_files(given),
        versions=_versions(),
        notes=notes,
        evidence_was_read=beside is not None,
        snippet=snippet,
    )
    report = build_report(aligned, model, kept, source, n_details=n_details, progress=progress)
    documents, queries = (
        None if given.get(role) is None else partial(read_beginnings, str(given[role]), progress=progress)
        for role in ("texts", "query texts")
    )
    add_texts(report, documents, queries)
    return report


def _evidence(
    aligned: Aligned,
    model: Model,
    path: str | os.PathLike[str],
    tell: Callable[[str], None],
    progress: Progress,
) -> tuple[Kept, str | None]:
    """Return the evidence and the file it was read from; None if it had to be computed."""
    beside = evidence_path(Path(path))
    if not beside.exists():
        tell(f"no {beside} (genm fit -o writes it): cross-validating and refitting")
        return compute_evidence(aligned, model, progress=progress), None
    kept = load_evidence(beside)
    reason = mismatch(kept, model, fingerprint(aligned))
    if reason is None:
        if kept.lacks:
            tell(f"note: {beside}: {kept.lacks}. Learning without each ranker again; genm fit writes a full file.")
        return kept, str(beside)
    tell(f"note: {beside} is not used: {reason}. Cross-validating and refitting instead.")
    return compute_evidence(aligned, model, progress=progress), None


def _input_files(paths: Mapping[str, str | None]) -> tuple[InputFile, ...]:
    """Return name, hash and size of every file that was read; several are hashed at a time."""
    given = [(role, path) for role, path in paths.items() if path is not None]
    return tuple(over_items(lambda pair: _input_file(*pair), given))


def _input_file(role: str, path: str) -> InputFile:
    if not Path(path).is_file():
        return {"role": role, "name": Path(path).name, "sha256": None, "n_bytes": None}
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"role": role, "name": Path(path).name, "sha256": digest, "n_bytes": Path(path).stat().st_size}


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("numpy", "numba", "scipy", "polars")}
    return {"genm": __version__, "python": platform.python_version(), **libraries}
