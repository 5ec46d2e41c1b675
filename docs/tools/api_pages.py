"""MkDocs hook: one API page per public package of genm, so that no list of packages has to be kept by hand.

Public are the root, the packages of `src/genm` whose `__init__` has an `__all__`, and the modules of `MODULES`. The
pages exist during the build only. The names on them come from `__all__`.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

SOURCE = Path(__file__).parents[2] / "src" / "genm"
# single files that users import from, without an `__all__`
MODULES = ("errors", "fuse", "grouping", "model", "records", "training")


def public_names(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return the names in `__all__` of the root and of each package that has one, by the package's dotted name."""
    found = {
        f"genm.{path.parent.name}": exported_names(path)
        for path in sorted(source.glob("[!_]*/__init__.py"))
        if exported_names(path)
    }
    return {"genm": exported_names(source / "__init__.py"), **found}


def exported_names(path: Path) -> list[str]:
    """Return the names in a module's `__all__` that have an entry: all but `__version__`."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            return [name for name in ast.literal_eval(node.value) if name != "__version__"]
    return []


def page_names() -> list[str]:
    """Return the dotted names that get a page, the root first."""
    return sorted([*public_names(), *(f"genm.{name}" for name in MODULES)])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the section "Python" of the navigation."""
    reference = next(part["Reference"] for part in config.nav or [] if "Reference" in part)
    section = next(part for part in reference if "Python" in part)
    section["Python"] = [{name: f"api/{name}.md"} for name in page_names()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File

    for name in page_names():
        files.append(File.generated(config, f"api/{name}.md", content=f"# {name}\n\n::: {name}\n"))
    return files
