"""Where the collections' files are: a folder that the user names, since genm ships none of them."""

import os
from collections.abc import Sequence
from pathlib import Path

from genm.errors import InputError

VARIABLE = "GENM_DATA"


def data_folder(data: str | os.PathLike[str] | None, *, wanted: str) -> Path:
    """Return the folder of the collections: `data`, or else what GENM_DATA says; `wanted` goes into the error."""
    chosen = data if data is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise InputError(
            f"{wanted} is read from a folder, and none was given. Name it with --data DIR (in Python: data=...) or "
            f"set {VARIABLE}; {_how_to_get(wanted)}"
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        source = "data" if data is not None else VARIABLE
        raise InputError(f"{folder}: expected the folder of the collections ({source}); found no such folder")
    return folder


def find_file(folder: Path, name: str, candidates: Sequence[str]) -> Path:
    """Return the first of the candidates in `folder`/`name` or in `folder` itself; letter case does not count."""
    for place in (folder / name, folder / name.upper(), folder):
        present = {path.name.lower(): path for path in sorted(place.iterdir())} if place.is_dir() else {}
        for candidate in candidates:
            path = present.get(candidate.lower())
            if path is not None and path.is_file():
                return path
    raise InputError(
        f"{folder / name}: expected the file {candidates[0]}; found none. Point --data (in Python: data=...) or "
        f"{VARIABLE} at the folder above {name}/; {_how_to_get(name)}"
    )


def _how_to_get(wanted: str) -> str:
    return f"`genm collections get {wanted} --data DIR` downloads it where there is a network."
