"""A folder of files, local or in an object store: what a score table is read from and written to.

A local folder needs no library. A path with `://`, such as `s3://bucket/table`, is left to fsspec and its back
ends (s3fs, gcsfs, adlfs). Credentials come from where the back end looks for them (its environment variables or
configuration files) or from `options`; messages show neither them nor the user part of an address.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genm.errors import GenmError, InputError, MissingExtraError, TableError
from genm.io import PathLike, make_folder, whole_file

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
_USER = re.compile(r"(://)[^/@]*@")
_QUERY = re.compile(r"[?#].*$")


def is_url(path: PathLike) -> bool:
    """Return whether a path is an address that fsspec opens, such as s3://bucket/table."""
    return isinstance(path, str) and _URL.match(path) is not None


def shown_path(path: PathLike) -> str:
    """Return a path for messages: without user, password or signature."""
    return _QUERY.sub("", _USER.sub(r"\1", str(path))) if is_url(path) else str(path)


class Storage:
    """Files of one folder by name. It can be sent to other processes."""

    def __init__(self, path: PathLike, options: Mapping[str, Any] | None = None) -> None:
        self.path = str(path).rstrip("/") if is_url(path) else str(path)
        self.shown = shown_path(self.path)
        self.options = dict(options or {})
        """For fsspec; they may hold credentials and are never shown."""
        self._opened: tuple[Any, str] | None = None
        if self.options and not is_url(path):
            raise InputError(f"storage options belong to an address such as s3://bucket/table; found {self.shown}.")

    def __repr__(self) -> str:
        """Show the path without credentials."""
        return f"<Storage {self.shown}>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open connection out: another process opens its own."""
        return {**self.__dict__, "_opened": None}

    @property
    def is_local(self) -> bool:
        """Whether this is a folder of this machine."""
        return not is_url(self.path)

    def read(self, name: str) -> bytes:
        """Return the content of a file; FileNotFoundError where there is none."""
        if self.is_local:
            return (Path(self.path) / name).read_bytes()
        files, root = self._files()
        content: bytes = self._try(lambda: files.cat_file(f"{root}/{name}"), f"read {name}")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file, which appears complete or not at all."""
        if self.is_local:
            with whole_file(Path(self.path) / name) as file:
                file.write(content)
            return
        files, root = self._files()
        self._try(lambda: files.pipe_file(f"{root}/{name}", content), f"write {name}")

    def size(self, name: str) -> int | None:
        """Return the number of bytes of a file; None where there is none."""
        try:
            if self.is_local:
                return (Path(self.path) / name).stat().st_size
            files, root = self._files()
            size: int = self._try(lambda: files.info(f"{root}/{name}")["size"], f"find {name}")
        except FileNotFoundError:
            return None
        return size

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self.is_local:
            (Path(self.path) / name).unlink(missing_ok=True)
        elif self.size(name) is not None:
            files, root = self._files()
            self._try(lambda: files.rm_file(f"{root}/{name}"), f"remove {name}")

    def names(self) -> list[str]:
        """Return the names in the folder, in order; an empty list where there is no such folder."""
        if self.is_local:
            folder = Path(self.path)
            return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        files, root = self._files()
        try:
            found = self._try(lambda: files.ls(root, detail=False), "list the folder")
        except FileNotFoundError:
            return []
        return sorted(str(name).rstrip("/").rsplit("/", 1)[-1] for name in found)

    def make(self) -> None:
        """Make the folder where it does not exist."""
        if self.is_local:
            make_folder(self.path)
        else:
            files, root = self._files()
            self._try(lambda: files.makedirs(root, exist_ok=True), "make the folder")

    def _files(self) -> tuple[Any, str]:
        if self._opened is None:
            try:
                from fsspec.core import url_to_fs
            except ImportError:
                raise MissingExtraError(f"{self.shown}: an object store", "scale") from None
            try:
                files, root = url_to_fs(self.path, **self.options)
            except ImportError as error:
                raise InputError(
                    f"{self.shown}: expected the back end of this address to be installed; found: {error}. "
                    "Install it: s3fs for s3, gcsfs for gs, adlfs for abfs."
                ) from None
            except ValueError as error:
                raise InputError(
                    f"{self.shown}: expected an address that fsspec knows, such as s3://bucket/table; found: "
                    f"{_without(str(error), self.path, self.shown)}. Check its beginning."
                ) from None
            self._opened = files, root
        return self._opened

    def _try(self, work: Any, what: str) -> Any:
        """Do what the back end does, and turn its many errors into ours; a missing file stays one."""
        try:
            return work()
        except (FileNotFoundError, GenmError):
            raise
        except Exception as error:  # noqa: BLE001 - every back end has errors of its own
            text = _without(f"{type(error).__name__}: {error}", self.path, self.shown)
            for secret in self.options.values():
                text = text.replace(str(secret), "...") if len(str(secret)) > 3 else text
            raise TableError(
                f"{self.shown}: could not {what} ({text:.200}). Check the address, the connection and the "
                "credentials."
            ) from None


def _without(text: str, path: str, shown: str) -> str:
    return _USER.sub(r"\1", text.replace(path, shown))
