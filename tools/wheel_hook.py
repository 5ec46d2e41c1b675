"""Puts the kernels of `tools/ship_kernels.py` into a wheel, if GENM_KERNELS names their folder: `make wheel`."""

import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Adds a folder to the wheel, whose tag then names this version of Python and this system."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what is built; a wheel without kernels, or for an editable installation, stays as it is."""
        folder = os.environ.get("GENM_KERNELS")
        if not folder or version != "standard":
            return
        if not any(Path(folder).glob("cp*/*")):
            raise SystemExit(f"GENM_KERNELS={folder}: expected a folder that tools/ship_kernels.py has filled.")
        build_data["force_include"][folder] = "genm/_kernels"
        build_data["pure_python"] = False
        build_data["tag"] = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-{_system()}"


def _system() -> str:
    """Return the system's name in a wheel's tag. Bitcode is linked to no library, so any glibc will do."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        return f"manylinux_2_17_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
