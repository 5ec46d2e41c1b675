"""Checkpoints: answers of a table that were found, kept in a file so that a fit can be resumed.

The optimisers are deterministic: they ask the same questions in the same order. A fit that starts again after a
crash is therefore given the answers of the passes that were finished, arrives at the same point to the bit, and
continues from there. No optimiser has to store its state. Answers with a number for each query are not kept,
because they are long; a resumed fit asks for them again.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genm._typing import Floats
from genm.errors import ModelError
from genm.io import write_text
from genm.scale.evaluation import Answer, Request
from genm.strict_json import Count, Finite, Strict, check_head, convert, parse_json

CHECKPOINT_VERSION = 1
_HEAD = "genm-checkpoint"
_ADVICE = "Delete the file to start anew."


class _Numbers(Strict, frozen=True):
    shape: tuple[Count, ...]
    values: tuple[Finite, ...]


class _CheckpointFile(Strict, frozen=True):
    """The layout of the file, in the order of its keys."""

    format: str
    version: int
    table: str
    options: dict[str, Any]
    passes: Count
    weights: tuple[Finite, ...]
    answers: dict[str, tuple[_Numbers, ...]]


class Checkpoint:
    """Answers by the hash of their requests; without a path they are forgotten at once.

    `table` is the digest of the table, `options` what else the fit depends on. A file of another table or of other
    options is not used: `mismatch` says so, and the first pass replaces it. The file is written after every pass,
    but not before `interval` seconds have passed since it was last written.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        table: str = "",
        options: Mapping[str, Any] | None = None,
        interval: float = 1.0,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.mismatch = ""
        """Why a file that was found is not used; empty if it is, or if there was none."""
        self.n_resumed = 0
        """Passes whose answers came from the file."""
        self._table, self._interval, self._written = table, interval, -np.inf
        self._options: dict[str, Any] = json.loads(json.dumps(dict(options or {})))
        self._answers: dict[str, Answer] = {}
        self._weights: tuple[float, ...] = ()
        self.n_passes = 0
        if self.path is not None and self.path.is_file():
            self._load(self.path)

    def _load(self, path: Path) -> None:
        place = str(path)
        document = parse_json(path.read_bytes(), place, what="a checkpoint", advice=_ADVICE)
        check_head(document, _HEAD, CHECKPOINT_VERSION, "a checkpoint", place)
        found = convert(document, _CheckpointFile, place)
        if found.table != self._table:
            self.mismatch = "it belongs to another table"
            return
        names = sorted({*found.options, *self._options})
        other = [name for name in names if found.options.get(name) != self._options.get(name)]
        if other:
            self.mismatch = f"it belongs to a fit with other options ({', '.join(other)})"
            return
        for key, arrays in found.answers.items():
            self._answers[key] = tuple(_array(array, place) for array in arrays)
        self._weights, self.n_passes = found.weights, found.passes
        self.n_resumed = found.passes

    def recall(self, key: str) -> Answer | None:
        """Return the answer of this key if it is known."""
        return self._answers.get(key)

    def known(self, request: Request) -> Answer | None:
        """Return the answer to a request if it is known."""
        return self._answers.get(request.digest()) if self._answers else None

    def remember(self, answers: Mapping[str, Answer]) -> None:
        """Keep answers, and write the file if it was not written a moment ago."""
        if self.path is None:
            return
        for key, answer in answers.items():
            if all(np.isfinite(array).all() for array in answer):  # JSON has no other numbers
                self._answers[key] = answer
        if time.monotonic() >= self._written + self._interval:
            self.save()

    def ask(self, requests: Sequence[Request], ask: Callable[[Sequence[Request]], list[Answer]]) -> list[Answer]:
        """Return the answers; those that are not known are asked for in one pass, and kept."""
        if self.path is None:
            self.n_passes += 1
            return ask(requests)
        keys = [request.digest() for request in requests]
        found = {key: self._answers[key] for key in keys if key in self._answers}
        missing = {key: request for key, request in zip(keys, requests, strict=True) if key not in found}
        if missing:
            new = dict(zip(missing, ask(list(missing.values())), strict=True))
            found |= new
            self.n_passes += 1
            last = list(missing.values())[-1]
            self._weights = last.weights or self._weights
            self.remember({key: new[key] for key, request in missing.items() if _is_short(request)})
        return [found[key] for key in keys]

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        document = {
            "format": _HEAD,
            "version": CHECKPOINT_VERSION,
            "table": self._table,
            "options": self._options,
            "passes": self.n_passes,
            "weights": self._weights,
            "answers": {key: [_numbers(array) for array in answer] for key, answer in self._answers.items()},
        }
        write_text(self.path, json.dumps(document, allow_nan=False) + "\n")
        self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the fit is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def checkpoint_path(model_path: str | Path) -> Path:
    """Return the path of a fit's checkpoint: model.checkpoint.json for model.json."""
    path = Path(model_path)
    return path.with_name(f"{path.stem if path.suffix == '.json' else path.name}.checkpoint.json")


def _is_short(request: Request) -> bool:
    return not request.per_query and request.kind != "survey"


def _numbers(array: Floats) -> dict[str, Any]:
    return {"shape": list(array.shape), "values": np.ravel(array).tolist()}


def _array(numbers: _Numbers, place: str) -> Floats:
    if int(np.prod(numbers.shape)) != len(numbers.values):
        raise ModelError(f"{place}: expected {numbers.shape} numbers; found {len(numbers.values)}. {_ADVICE}")
    return np.array(numbers.values, np.float64).reshape(numbers.shape)
