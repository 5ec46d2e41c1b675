"""MkDocs hook: every notebook of docs/notebooks becomes a page, with the outputs that the notebook holds.

Nothing is run: `tools/notebook.py` writes the outputs. The notebook itself is copied beside the page.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page_of(path)))
    return files


def page_of(path: Path) -> str:
    """Return a notebook as Markdown: its texts, its code, and what each cell shows."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    parts = [_text_of(cell) for cell in notebook["cells"]]
    title, _, rest = parts[0].partition("\n")
    told = f"This page is a notebook: [download it]({path.name}) and run it."
    return "\n\n".join([title, told, rest.strip(), *parts[1:]]) + "\n"


def _text_of(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *map(_output, cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _preformatted("".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        named = html.escape("".join(data.get("text/plain", ["Figure"])))
        return f'<p><img alt="{named}" src="data:image/png;base64,{data["image/png"].strip()}"></p>'
    if "text/html" in data:
        lines = "".join(data["text/html"]).splitlines()
        inside = "\n".join(line for line in lines if line.strip())  # an empty line would end the block of HTML
        return f'<div class="notebook-output">\n{inside}\n</div>'
    return _preformatted("".join(data["text/plain"]))


def _preformatted(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
