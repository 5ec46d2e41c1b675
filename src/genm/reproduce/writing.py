"""The experiment as a folder: a page, tables, figures, the figures behind them, and what they were made from."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from genm.errors import InputError
from genm.io import write_text
from genm.progress import Progress, silent
from genm.reproduce.figures import draw_figures
from genm.reproduce.manifest import manifest_of
from genm.reproduce.page import render
from genm.reproduce.results import MEASURES, MethodResult, Results

PAGE = "index.html"


def make_folder(folder: Path) -> Path:
    """Return the folder, made if need be: before the long work, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder ({error.strerror}). Choose another.") from None
    return folder


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
    texts[PAGE] = render(results, drawings, manifest=manifest, command=command)
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
