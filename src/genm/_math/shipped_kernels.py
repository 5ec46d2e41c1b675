"""Kernels that a wheel carries as LLVM's intermediate code, of which the machine code is made at first use.

Most of the time of compiling does not depend on the processor: numba infers types and lowers Python to LLVM's
language, and LLVM optimises that. A wheel built by `make wheel` carries the result (bitcode) for one version of
Python, numba and llvmlite on one system. Machine code for the user's own processor is made from it in a tenth of
the time. Any other version finds nothing here and compiles.

A wheel without a folder of kernels is what a checkout is: every kernel is compiled where it is used.
"""

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite.binding import get_process_triple
from numba.core.serialize import dumps

FOLDER = Path(__file__).parents[1] / "_kernels"


def versions() -> str:
    """Return what the intermediate code depends on, as the name of a folder."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{python}-numba{numba.__version__}-llvmlite{llvmlite.__version__}-{get_process_triple()}"


@cache
def shipped_folder() -> Path | None:
    """Return the folder of kernels for these versions; None if the installation has none."""
    if not FOLDER.is_dir():
        return None
    found = FOLDER / versions()
    return found if found.is_dir() else None


def file_name(function: Any, key: tuple[Any, ...]) -> str:
    """Return the name of a kernel's file: it changes with the source, the bytecode and the types of the arguments.

    `key` is numba's: types of the arguments, processor, digests of the bytecode. The processor does not count.
    """
    signature, _, bytecode = key
    source = Path(function.__code__.co_filename).read_bytes()
    digest = sha256(repr((signature, bytecode, sha256(source).hexdigest())).encode()).hexdigest()
    return f"{function.__module__}.{function.__qualname__}-{digest[:24]}"


def ship(folder: Path, function: Any, key: tuple[Any, ...], form: tuple[list[str], Any]) -> None:
    """Write a compiled kernel to the folder of a wheel: without machine code, and without its annotated source."""
    symbols, ((name, kind, (_, bitcode)), *rest) = form
    rest = ["" if isinstance(part, str) else part for part in rest]
    content = dumps((symbols, ((name, kind, (b"", bitcode)), *rest)))  # type: ignore[no-untyped-call]
    (folder / file_name(function, key)).write_bytes(with_digest(content))


def with_digest(content: bytes) -> bytes:
    """Return the content, followed by its digest."""
    return content + sha256(content).digest()


def whole_content(path: str | Path) -> bytes | None:
    """Return the content of a file with its digest; None if they differ or there is no such file."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    size = sha256().digest_size
    return content if sha256(content[:-size]).digest() == content[-size:] else None
