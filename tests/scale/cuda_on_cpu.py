"""A device that runs the CUDA kernels on the CPU: their own file, compiled by g++ behind `cuda_on_cpu.cpp`."""

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm.scale.cuda import SOURCE, macros

COMPILER = shutil.which("g++")
EMULATOR = Path(__file__).with_suffix(".cpp")


class CpuDevice:
    """Arrays are numpy's; kernels are compiled into `folder`, unless they are there."""

    def __init__(self, folder: Path) -> None:
        self.lock, self.free_bytes = threading.RLock(), 1 << 30
        self._folder = folder
        self._libraries: dict[tuple[str, ...], ctypes.CDLL] = {}

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy an array: a kernel that writes into what it was given would be found out."""
        return np.array(array, order="C")

    def stage(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy an array."""
        return self.put(array)

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy an array."""
        return np.array(array)

    def empty(self, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
        """Return an array whose content no kernel may use."""
        return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else -7, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
        """Return an array of zeros."""
        return np.zeros(shape, dtype)

    def launch(
        self,
        kernel: str,
        options: Mapping[str, int | str],
        grid: tuple[int, ...],
        threads: int,
        arguments: tuple[Any, ...],
        weights: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Run a kernel."""
        with self.lock:
            library = self._library(macros(options))
            for name, values in (weights or {}).items():
                flat = np.ascontiguousarray(values).reshape(-1)
                there = (ctypes.c_char * flat.nbytes).in_dll(library, name)
                ctypes.memmove(there, flat.ctypes.data, flat.nbytes)
            kept = [_by_address(argument) for argument in arguments]
            addresses = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
            sizes = (ctypes.c_uint * 3)(*grid, *[1] * (3 - len(grid)))
            getattr(library, f"launch_{kernel}")(sizes, ctypes.c_uint(threads), addresses)

    def _library(self, key: tuple[str, ...]) -> ctypes.CDLL:
        if key not in self._libraries:
            command = [str(COMPILER), "-O1", "-w", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-ffp-contract=off"]
            command += ["-fno-strict-aliasing", *key, f'-DKERNELS="{SOURCE}"', str(EMULATOR)]
            made_of = " ".join(command).encode() + SOURCE.read_bytes() + EMULATOR.read_bytes()
            path = self._folder / f"{sha256(made_of).hexdigest()}.so"
            if not path.is_file():
                new = path.with_suffix(f".{os.getpid()}")  # other processes may compile the same
                subprocess.run([*command, "-o", str(new)], check=True)
                new.replace(path)
            self._libraries[key] = ctypes.CDLL(str(path))
        return self._libraries[key]


def _by_address(argument: Any) -> NDArray[Any]:
    """Return an array whose first bytes are the argument: a number itself, or the address of an array."""
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return np.array([argument.ctypes.data], np.uint64)
    assert isinstance(argument, np.generic)
    return np.array([argument])
