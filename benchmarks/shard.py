"""How `genm shard` grows: CPU time, peak memory and disk for runs of several sizes, in a limited address space.

    python -m benchmarks.shard --folder /tmp --gigabytes 0.5,1 --limit 4G [--memory 1G] [--packed] [--kill]

Makes TREC runs of so many gigabytes in all (4 rankers, 1,000 documents per query; every second run has the queries
in another order) and judgments, and runs `genm shard` in a process that may not use more than --limit of address
space. --kill also kills it (SIGKILL) ten times on the way, goes on each time, and compares the bytes with those of
the uninterrupted command. --packed packs every second run by zstandard, which leaves room on the disk for large
sizes; sizes are those of the unpacked text. What was made is removed at the end.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard

from benchmarks._bars import hold

N_RANKERS, N_DOCS, POOL = 4, 1000, 1500
LINE = 45
UNITS = {"M": 2**20, "G": 2**30}


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which packs what it gets where its name ends with .zst."""
    with path.open("wb") as file:
        if path.suffix != ".zst":
            yield file
            return
        with zstandard.ZstdCompressor(level=1).stream_writer(file) as packer:
            yield packer


def make_runs(folder: Path, n_bytes: float, *, packed: bool) -> tuple[list[Path], Path, int, int]:
    """Write runs of about so many bytes in all, and judgments.

    Return both, the number of queries, and the bytes of the unpacked runs.
    """
    import polars as pl

    n_queries, n_written = max(1, int(n_bytes / (N_RANKERS * N_DOCS * LINE))), 0
    step, ends = 200, (".trec", ".trec.zst" if packed else ".trec")
    paths = [folder / f"r{k}{ends[k % 2]}" for k in range(N_RANKERS)]
    for k, path in enumerate(paths):
        with written(path) as file:
            firsts = range(0, n_queries, step)
            for first in firsts if k % 2 == 0 else reversed(firsts):
                rng = np.random.default_rng((k, first))
                query = np.repeat(np.arange(first, min(first + step, n_queries)), N_DOCS)
                base = np.random.default_rng(first).integers(0, 8_000_000, 1 + (len(query) // N_DOCS))
                picks = np.argsort(rng.random((len(query) // N_DOCS, POOL), np.float32), axis=1)[:, :N_DOCS]
                docs = (base[: len(picks), None] + picks * 7).ravel()
                frame = pl.DataFrame(
                    {
                        "query": pl.Series(query).cast(pl.String).str.zfill(7),
                        "q0": pl.repeat("Q0", len(query), eager=True),
                        "doc": "D" + pl.Series(docs).cast(pl.String).str.zfill(8),
                        "rank": np.tile(np.arange(1, N_DOCS + 1), len(picks)),
                        "score": np.sort(rng.normal(10, 4, (len(picks), N_DOCS)), axis=1)[:, ::-1].ravel().round(6),
                        "tag": pl.repeat(f"r{k}", len(query), eager=True),
                    }
                )
                n_written += file.write(frame.write_csv(include_header=False, separator=" ").encode())
    qrels = folder / "qrels.txt"
    with qrels.open("w", encoding="utf-8") as lines:
        for first in range(0, n_queries, step):
            base = np.random.default_rng(first).integers(0, 8_000_000, 1 + min(step, n_queries - first))
            for q in range(first, min(first + step, n_queries)):
                lines.writelines(f"{q:07} 0 D{base[q - first] + 7 * d:08} {d % 3}\n" for d in range(0, 100, 10))
    return paths, qrels, n_queries, n_written


def command(paths: list[Path], qrels: Path, to: Path, memory: str, shard_size: str) -> list[str]:
    sizes = ["--memory", memory, "--shard-size", shard_size]
    files = [*map(str, paths), "--qrels", str(qrels), "-o", str(to)]
    return [sys.executable, "-m", "genm", "shard", *files, *sizes]


def limited(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(call: list[str], limit: int) -> dict[str, float]:
    """Run a command to its end, and return its CPU time, wall time and peak resident memory."""
    started = time.monotonic()
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, preexec_fn=lambda: limited(limit))  # noqa: PLW1509
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the command failed with status {status}")
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "wall_s": round(time.monotonic() - started, 1),
        "peak_gb": round(used.ru_maxrss / 2**20, 2),
    }


def kill_on_the_way(call: list[str], wall: float, times: int, limit: int) -> int:
    """Kill the command again and again at random moments, and let it end; return how often it was killed."""
    rng, killed = np.random.default_rng(0), 0
    for _ in range(times):
        process = subprocess.Popen(
            call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: limited(limit),  # noqa: PLW1509
        )  # fmt: skip
        try:
            process.wait(timeout=float(rng.uniform(1.0, max(2.0, wall / 3))))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    run(call, limit)
    return killed


def digest(folder: Path) -> str:
    """Return a digest of all files of a table."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--gigabytes", default="0.25,0.5")
    parser.add_argument("--limit", default="4G", help="address space, such as 4G")
    parser.add_argument("--memory", default="1G", help="option of genm shard")
    parser.add_argument("--shard-size", default="64M", help="option of genm shard")
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    limit = int(float(given.limit[:-1]) * UNITS[given.limit[-1]])
    for gigabytes in map(float, given.gigabytes.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="genm-shard-", dir=given.folder))
        try:
            paths, qrels, n_queries, size = make_runs(folder, gigabytes * 1e9, packed=given.packed)
            found = run(command(paths, qrels, folder / "table", given.memory, given.shard_size), limit)
            facts = json.loads((folder / "table" / "manifest.json").read_text(encoding="utf-8"))
            on_disk = sum(path.stat().st_size for path in (folder / "table").iterdir())
            line = {
                "input_gb": round(size / 1e9, 2), "queries": n_queries, "rows": facts["rows"],
                "shards": len(facts["shards"]), "table_gb": round(on_disk / 1e9, 2), **found,
                "cpu_s_per_gb": round(found["cpu_s"] / (size / 1e9), 1),
            }  # fmt: skip
            if given.kill:
                call = command(paths, qrels, folder / "killed", given.memory, given.shard_size)
                line["killed"] = kill_on_the_way(call, found["wall_s"], 10, limit)
                line["same_bytes"] = digest(folder / "killed") == digest(folder / "table")
            print(json.dumps(line), flush=True)
            what = f"genm shard: peak of {line['input_gb']} GB of input, --memory {given.memory}"
            hold(what, found["peak_gb"], limit / 2**30, unit="GB")
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
