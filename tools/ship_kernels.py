"""Compile what the usual commands need, and write it for a wheel: `python tools/ship_kernels.py build/kernels`.

The commands run on made-up queries with an empty cache of kernels. What they compiled is written without machine
code (see `genm._math.shipped_kernels`). On x86-64 LLVM optimises for `PROCESSOR`; older ones run it nevertheless.
"""

import os
import platform
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

PROCESSOR = "x86-64-v3"
"""Most processors since 2013. Results do not depend on it, speed on an older one a little."""
DEPTHS = (20, 300)
"""Documents per list: short and long lists are stored by different kernels."""
COMMANDS = (
    "fit --qrels qrels.txt a.trec b.trec c.trec -o model.json",
    "fit --qrels qrels.txt a.trec b.trec -m nDCG@10 -o second.json",
    "fit --qrels qrels.txt a.trec b.trec --method newton -o third.json",
    "fit --qrels qrels.txt a.trec b.trec --normalize zscore --folds 2 -o fourth.json",
    "evaluate qrels.txt a.trec b.trec c.trec -m AP,nDCG@10,P@10,RR",
    "fuse --model model.json a.trec b.trec c.trec -o fused.trec",
    "fuse --method rrf a.trec b.trec c.trec -o fused.trec",
    "report --model model.json --qrels qrels.txt a.trec b.trec c.trec -o page.html",
    "explain --model model.json --qrels qrels.txt a.trec b.trec c.trec",
    "inspect --qrels qrels.txt a.trec b.trec c.trec",
)


def write_queries(depth: int) -> None:
    """Write judgments and runs of three rankers into the working folder."""
    draw = random.Random(depth)  # noqa: S311 - made-up scores
    lines: dict[str, list[str]] = {name: [] for name in ("qrels.txt", "a.trec", "b.trec", "c.trec")}
    for query in range(1, 13):
        grades = {f"d{doc:03}": int(draw.random() < 0.2) for doc in range(2 * depth)}
        lines["qrels.txt"] += [f"{query} 0 {doc} {grade}\n" for doc, grade in grades.items()]
        for name in ("a", "b", "c"):
            scores = {doc: grade + draw.gauss(0.0, 0.8) for doc, grade in grades.items()}
            best = sorted(scores, key=scores.__getitem__, reverse=True)[:depth]
            lines[f"{name}.trec"] += [
                f"{query} Q0 {doc} {rank} {scores[doc]:.6f} {name}\n" for rank, doc in enumerate(best, 1)
            ]
    for name, content in lines.items():
        Path(name).write_text("".join(content), encoding="utf-8")


def run_commands() -> None:
    """Run every command on every sort of list, in this process."""
    from genm.cli.main import run

    for depth in DEPTHS:
        write_queries(depth)
        for command in COMMANDS:
            sys.argv = ["genm", *command.split()]
            try:
                run()
            except SystemExit as end:
                if end.code:
                    raise SystemExit(f"genm {command}: exit {end.code}") from end


def ship_to(folder: Path) -> None:
    """Let every kernel that Python calls, of modules imported from now on, be written to the folder when compiled.

    Parts are not written: they are inside the kernels that call them.
    """
    from genm._math import parallel, shipped_kernels

    class ShippingCache(parallel.KernelCache):
        """The cache of a kernel, with a second place."""

        def keep(self, key: Any, form: tuple[list[str], Any]) -> None:
            super().keep(key, form)
            if self.has_entry_point:
                shipped_kernels.ship(folder, self._py_func, key, form)

    parallel.KernelCache = ShippingCache


def main() -> None:
    """Set the environment before numba is imported, and begin with nothing compiled."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/ship_kernels.py FOLDER")
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"NUMBA_CACHE_DIR": cache, "GENM_THREADS": "1"}
        if platform.machine() in ("x86_64", "AMD64"):
            os.environ |= {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": ""}
        compile_and_ship(folder)


def compile_and_ship(folder: Path) -> None:
    """Fill the folder anew."""
    from genm._math import shipped_kernels
    from genm.cli import compilation

    shipped_kernels.FOLDER = folder / "none"  # what an earlier wheel carries is not shipped again
    shutil.rmtree(folder, ignore_errors=True)
    own = folder / shipped_kernels.versions()
    own.mkdir(parents=True)
    ship_to(own)
    compilation._is_cached = lambda _: True  # no other process compiles a part of them
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            run_commands()
        finally:
            os.chdir(before)
    n_kernels = len(list(own.iterdir()))
    size = sum(path.stat().st_size for path in own.iterdir())
    print(f"{n_kernels} kernels, {size / 1e6:.1f} MB, in {own}")


if __name__ == "__main__":
    main()
