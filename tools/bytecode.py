"""Compile to bytecode what genm imports at run time, once, so that every command starts quickly.

Where PYTHONDONTWRITEBYTECODE is set, as in many containers, Python would compile the same thousand modules again in
every command. Test tools and the tests inside packages are left alone: they would take longer than all the rest.

    python tools/bytecode.py rankers plots     genm, its dependencies and those of these extras
"""

import compileall
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "genm"
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,. -]*)\])?")
EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


def needed(name: str, extras: frozenset[str], seen: dict[tuple[str, frozenset[str]], Distribution]) -> None:
    """Put a distribution and, one by one, all that it requires into `seen`; what is not installed is left out."""
    key = (re.sub(r"[-_.]+", "-", name).lower(), extras)
    if key in seen:
        return
    try:
        seen[key] = distribution(name)
    except PackageNotFoundError:
        return
    for requirement in seen[key].requires or ():
        asked = EXTRA.search(requirement)
        found = REQUIREMENT.match(requirement)
        if found is not None and (asked is None or asked[1] in extras):
            more = frozenset(part.strip() for part in (found[2] or "").split(",") if part.strip())
            needed(found[1], more, seen)


def modules(packages: list[Distribution]) -> list[Path]:
    """Return the Python files of the packages, without their tests, and genm's own."""
    found = set(SOURCES.rglob("*.py"))
    for package in packages:
        found |= {Path(str(package.locate_file(file))) for file in package.files or () if file.suffix == ".py"}
    return sorted(path for path in found if not {"test", "tests"} & set(path.parts) and path.is_file())


def compile_all(paths: list[Path]) -> None:
    """Compile files whose bytecode is missing or older; one that cannot be compiled is its package's business."""
    for path in paths:
        compileall.compile_file(path, quiet=2)


def main() -> None:
    """Compile in as many processes as there are cores."""
    seen: dict[tuple[str, frozenset[str]], Distribution] = {}
    needed("genm", frozenset(sys.argv[1:]), seen)
    paths = modules(list(seen.values()))
    with ProcessPoolExecutor() as pool:
        list(pool.map(compile_all, (paths[start : start + 50] for start in range(0, len(paths), 50))))


if __name__ == "__main__":
    main()
