"""Check the built site: every public name has its entry, and every link inside the site has its target.

MkDocs' strict mode checks the links of Markdown pages; this also checks the links that mkdocstrings and the theme
write, and those of HTML pages that are copied as they are. Usage: `python docs/tools/check_site.py site`.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api_pages import public_names


class Page(HTMLParser):
    """The ids and links of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids, and the targets of anchors, images, scripts and style sheets."""
        for name, value in attrs:
            if name in ("id", "name") and value and tag != "meta":
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Return one line per link to a file or an anchor that does not exist."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    lines = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links count from the root of the server
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("/"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file():
                lines.append(f"{path.relative_to(site.resolve())}: no file for {link}")
            elif anchor and target in pages and anchor not in pages[target].ids:
                lines.append(f"{path.relative_to(site.resolve())}: no anchor for {link}")
    return lines


def missing_names(site: Path) -> list[str]:
    """Return one line per public name that has no entry on its package's page and no page of its own.

    `genm.evaluate` and `genm.fuse` are functions of the root and modules; their pages are those of the modules.
    """
    lines = []
    for package, names in public_names().items():
        file = site / "api" / package / "index.html"
        known = Page(file).ids if file.is_file() else set()
        known |= {f"{package}.{name}" for name in names if (site / "api" / f"{package}.{name}").is_dir()}
        lines += [f"{package}: no entry for {name}" for name in names if f"{package}.{name}" not in known]
    return lines


def main(site: Path) -> int:
    """Print what is wrong with the site; return the exit code."""
    lines = [*broken_links(site), *missing_names(site)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
