"""A self-contained HTML page: it asks the network for nothing and runs only its own code.

The page carries a content security policy that forbids every outside source. Scripts and styles are allowed by
their hash, so text that was not escaped could still not run. The caller gives the body, which brings its
own `<header>`, `<main id="main">` and `<footer>`; data goes in as JSON, and scripts read it with
`JSON.parse(document.getElementById("page-data").textContent)`.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

from markupsafe import Markup

from genm.templating import render

_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f\ud800-\udfff]")
_COMMENT = re.compile(r"/\*.*?\*/\n*", re.DOTALL)


def html_page(
    title: str,
    body: Markup,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: object = None,
    later_styles: Iterable[str] = (),
) -> str:
    """Return a whole document that works from a file, without a network.

    `body` is what a template made; `styles` and `scripts` are our own source texts, put in after the base style and
    run in their order; `data` becomes the JSON of the element with the id "page-data". Styles that stand in the
    body are allowed by their hash; `later_styles` names texts of `<style>` elements that a script will add.
    """
    style = _COMMENT.sub("", "\n".join((_colours(), asset("base.css"), *styles)))
    head_script, program = asset("theme.js"), [asset("toggle.js"), *scripts]
    found = _InlineStyles.of(str(body))
    policy = _policy(
        scripts=[head_script, *program], styles=[style, *found.elements, *later_styles], attributes=found.attributes
    )
    document = render(
        "page.html.j2",
        title=title,
        policy=_trusted(policy),
        style=_trusted(style),
        head_script=_trusted(head_script),
        body=body,
        data=None if data is None else _trusted(embed_json(data)),
        scripts=[_trusted(_checked(script)) for script in program],
    )
    return str(document)


def _trusted(text: str) -> Markup:
    """Mark what holds nothing but our own text: assets, hashes, and JSON in which no character can be markup."""
    return Markup(text)  # noqa: S704


def embed_json(value: object) -> str:
    """Return JSON that cannot end the script element it stands in, whatever its strings say."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE_IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def asset(name: str, package: str = "genm.report") -> str:
    """Return the text of one of a package's own files for pages."""
    return files(package).joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


@cache
def _colours() -> str:
    """Return the colours of all pages; the service sends the same file."""
    return files("genm").joinpath("templates", "colours.css").read_text(encoding="utf-8")


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
