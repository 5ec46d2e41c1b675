"""The service: fuses lists over HTTP, learns from feedback, and keeps everything that it acknowledged.

It needs the extra `serve`. The names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genm.serve.judging import serve_judging
    from genm.serve.replay import Checked, check_store
    from genm.serve.security import Tokens
    from genm.serve.server import Settings, serve
    from genm.serve.store import copy_to, existing_store

__all__ = ["Checked", "Settings", "Tokens", "check_store", "copy_to", "existing_store", "serve", "serve_judging"]

_HOMES = {
    "judging": ("serve_judging",),
    "replay": ("Checked", "check_store"),
    "security": ("Tokens",),
    "server": ("Settings", "serve"),
    "store": ("copy_to", "existing_store"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"genm.serve.{home}"), name)
    raise AttributeError(f"module 'genm.serve' has no attribute {name!r}")
