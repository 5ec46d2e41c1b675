"""Building blocks of a self-contained HTML page: it asks the network for nothing and runs only its own code.

The page carries a content security policy that forbids every outside source. Scripts and styles are let in by
their hash, so text that slipped in unescaped could still not run. The caller gives the body, which brings its
own `<header>`, `<main id="main">` and `<footer>`; data goes in as JSON, and scripts read it with
`JSON.parse(document.getElementById("page-data").textContent)`.

Cells of tables are HTML: foreign text goes in through `isolated` or `escape`.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

from genm import formatting

_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f\ud800-\udfff]")
_THEME_TOGGLE = '<button type="button" id="theme" class="theme" hidden>Dark</button>'

MINUS = "\u2212"
_HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")


def html_page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: object = None,
    later_styles: Iterable[str] = (),
) -> str:
    """Return a whole document that works from a file, without a network.

    `body` is HTML that is already safe; `styles` and `scripts` are source texts, put in after the base style and
    run in their order; `data` becomes the JSON of the element with the id "page-data". Styles that stand in the
    body are allowed by their hash; `later_styles` names texts of `<style>` elements that a script will add.
    """
    style = "\n".join((asset("base.css"), *styles))
    head_script, program = asset("theme.js"), [asset("toggle.js"), *scripts]
    found = _InlineStyles.of(body)
    policy = _policy(
        scripts=[head_script, *program], styles=[style, *found.elements, *later_styles], attributes=found.attributes
    )
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        f"<script>{head_script}</script>",
        "</head>",
        "<body>",
        '<a class="skip" href="#main">Skip to the content</a>',
        _THEME_TOGGLE,
        body,
    ]
    if data is not None:
        parts.append(f'<script type="application/json" id="page-data">{embed_json(data)}</script>')
    parts += [f"<script>{_checked(script)}</script>" for script in program]
    parts += ["</body>", "</html>", ""]
    return "\n".join(parts)


def escape(text: object) -> str:
    """Return text that is safe between tags and in quoted attributes; what no document may hold becomes U+FFFD."""
    return html.escape(_BROKEN.sub("\ufffd", str(text)), quote=True)


def isolated(text: object) -> str:
    """Return foreign text as HTML that cannot turn the direction of the words around it."""
    return f"<bdi>{escape(text)}</bdi>"


def embed_json(value: object) -> str:
    """Return JSON that cannot end the script element it stands in, whatever its strings say."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE_IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def asset(name: str) -> str:
    """Return the text of one of the package's own files for pages."""
    return files("genm.report").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _checked(script: str) -> str:
    """Return a script as it is, unless it could end its own element."""
    if re.search(r"</script|<!--", script, re.IGNORECASE):
        raise ValueError("script: expected text without '</script' and '<!--'; build such strings from parts.")
    return script


def _policy(*, scripts: Iterable[str], styles: Iterable[str], attributes: Iterable[str]) -> str:
    """Return a content security policy that lets in these texts and nothing else."""
    hashed = [_hash(text) for text in attributes]
    style = [*(_hash(text) for text in styles), *(["'unsafe-hashes'", *hashed] if hashed else [])]
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(_hash(text) for text in scripts)}",
            f"style-src {' '.join(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class _InlineStyles(HTMLParser):
    """The style elements and style attributes that stand in a piece of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self._inside = False

    @classmethod
    def of(cls, body: str) -> "_InlineStyles":
        """Read a body; every text is named once, in the order of the page."""
        parser = cls()
        parser.feed(body)
        parser.close()
        parser.elements = list(dict.fromkeys(parser.elements))
        parser.attributes = list(dict.fromkeys(parser.attributes))
        return parser

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [value for name, value in attrs if name == "style" and value]
        self._inside = tag == "style"
        if self._inside:
            self.elements.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = False

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "style"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.elements[-1] += data


def with_minus(text: str) -> str:
    """Return a text with real minus signs before its numbers."""
    return _HYPHEN.sub(MINUS, text)


def decimals(value: float | None, places: int = 4) -> str:
    """Write a number with a fixed number of places; one that does not exist is a dash."""
    return formatting.NONE if value is None else with_minus(f"{value:.{places}f}")


def signed(value: float | None, places: int = 4) -> str:
    """Write a difference, always with its sign."""
    return with_minus(formatting.signed(value, places))


def between(low: float | None, high: float | None, places: int = 4) -> str:
    """Write an interval of differences."""
    return with_minus(formatting.between(low, high, places))


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: frozenset[int] | set[int] = frozenset(),
    marked: Mapping[int, str] | None = None,
    identity: str = "",
) -> str:
    """Return a table whose first cell of each row is its header; `numbers` are columns that align to the right.

    A column without a name has no header cell, which would be read out. `marked` gives rows a class. The box
    scrolls sideways when the table is wider than the page.
    """

    def kind(column: int) -> str:
        return ' class="number"' if column in numbers else ""

    parts = [f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(_plain(caption))}">']
    parts.append(f"<table{_attribute('id', identity)}><caption><span>{caption}</span></caption><thead><tr>")
    parts += [
        f'<th scope="col"{kind(i)}>{cell}</th>' if cell else f"<td{kind(i)}></td>" for i, cell in enumerate(head)
    ]
    parts.append("</tr></thead><tbody>")
    for number, row in enumerate(rows):
        parts.append(f"<tr{_attribute('class', (marked or {}).get(number, ''))}>")
        parts += [
            f'<th scope="row"{kind(i)}>{cell}</th>' if i == 0 else f"<td{kind(i)}>{cell}</td>"
            for i, cell in enumerate(row)
        ]
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names with what they stand for."""
    return '<dl class="facts">' + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs) + "</dl>"


def folded(summary: str, inside: str) -> str:
    """Return a part that opens on demand, and by itself on paper."""
    return f'<details class="numbers"><summary>{summary}</summary>{inside}</details>'


def bar(parts: Sequence[tuple[str, float]], total: float) -> str:
    """Return a bar of pieces next to each other, each with its class; the numbers stand beside it as text."""
    x, shapes = 0.0, []
    for name, size in parts:
        width = 100.0 * max(size, 0.0) / total if total > 0 else 0.0
        shapes.append(f'<rect class="{name}" x="{x:.2f}" width="{width:.2f}" height="8"/>')
        x += width
    drawn = "".join(shapes)
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""


def _plain(caption: str) -> str:
    """Return a caption's first sentence without its markup, to name the box around the table."""
    return caption.partition(". ")[0].partition("<")[0].strip().rstrip(".")
