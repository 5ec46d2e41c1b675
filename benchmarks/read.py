"""Read a TREC run of seven million lines: ours, polars with the same checks, and a bare polars.read_csv.

`python -m benchmarks.read [--scale 0.1] [--repeats 5] [--digits 6]`; the scale is the share of the 7,000 queries,
`--digits 17` writes scores in full. Ours gives a Run: ids as integers, duplicates checked, rows ranked. "strict"
makes the same arrays with polars and refuses what ours refuses, as far as checks of columns can; "polars" is a bare
read that gives columns. Each reading has its own process, in turns, so that memory can be told apart. Kernels are
compiled before the clock starts, and compiling is timed by itself with an empty cache.

`--ids` times tables of ids instead, `genm.ids` against polars String series: unite, find, sort, and turning the doc
column into codes (intern).
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks._bars import hold

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

SEED = 20240611
QUERIES, DEPTH, COLLECTION = 7000, 1000, 8_841_823
READERS = ("polars", "strict", "genm")


def write_file(path: Path, n_queries: int, digits: int) -> None:
    rng = np.random.default_rng(SEED)
    query_ids = np.sort(rng.choice(10_000_000, n_queries, replace=False)).tolist()
    with path.open("w") as file:
        for query_id in query_ids:
            docs = rng.choice(COLLECTION, DEPTH, replace=False).tolist()
            scores = np.sort(rng.gamma(3.0, 4.0, DEPTH))[::-1].tolist()
            file.writelines(
                f"{query_id} Q0 {doc} {rank} {score:.{digits}{'g' if digits > 10 else 'f'}} bm25\n"
                for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
            )


def read_with_polars(path: Path) -> tuple[object, ...]:
    """Read a run with polars, check it as genm does, and return queries, docs, starts, codes and scores, ranked.

    Ids stay polars series, so that nothing is converted only for this comparison. Files that are not separated by
    single spaces, and errors with the line they are on, would need a second parser.
    """
    import polars as pl

    from genm._math.sorting import rank_order, ranked_as_given
    from genm.read.rows import _repeats

    data = np.memmap(path, np.uint8, "r")
    control = np.ones(256, np.bool_)
    control[10], control[13], control[32:] = False, False, False
    for begin in range(0, len(data), 1 << 22):
        if control[data[begin : begin + (1 << 22)]].any():
            raise ValueError("a control character")
    names = ("query", "q0", "doc", "rank", "score", "tag")
    schema = dict.fromkeys(names, pl.String) | {"rank": pl.Int64, "score": pl.Float64}
    frame = pl.read_csv(path, separator=" ", has_header=False, quote_char=None, schema=schema)
    checks = frame.select(
        pl.any_horizontal(pl.all().is_null().any()).alias("null"),
        (~pl.col("score").is_finite()).any().alias("infinite"),
        pl.col("query").str.starts_with("#").any().alias("comment"),
        ((pl.col("doc") == "") | (pl.col("query") == "") | (pl.col("tag") == "")).any().alias("empty"),
    ).row(0)
    if any(checks):
        raise ValueError(f"null, infinite, comment, empty: {checks}")
    same = (frame["query"] == frame["query"].shift(1)).fill_null(value=False)
    up, higher = frame["rank"].diff(), frame["score"].diff()
    against = int((same & (((up > 0) & (higher > 0)) | ((up < 0) & (higher < 0)))).sum() or 0)
    begins = np.flatnonzero(~same.to_numpy())
    starts = np.append(begins, len(frame))
    queries = frame["query"].gather(begins)
    if queries.n_unique() != len(queries):
        raise ValueError("a query in two places")
    docs, codes = interned_by_polars(frame["doc"])
    score = frame["score"].to_numpy()
    if _repeats(starts, codes).any():
        raise ValueError("a document twice")
    state = ranked_as_given(starts, score)
    if (state > 0).any():
        place = np.empty(len(docs), np.int32)
        place[docs.arg_sort().to_numpy()] = np.arange(len(docs), dtype=np.int32)
        order = rank_order(starts, score, -place[codes])
        codes, score = codes[order], score[order]
    return queries, docs, starts, codes, score, against


def interned_by_polars(column: "pl.Series") -> "tuple[pl.Series, NDArray[np.int32]]":
    """Return the different values in order of first appearance, and the code of each row.

    A join is the fastest way found; an Enum, a Categorical and a dense rank take longer.
    """
    import polars as pl

    different = column.unique(maintain_order=True)
    table = pl.DataFrame({"id": different, "code": np.arange(len(different), dtype=np.int32)})
    codes = pl.DataFrame({"id": column}).join(table, on="id", how="left", maintain_order="left")["code"]
    return different, np.require(codes.to_numpy(), np.int32, ("C", "W"))


def reader(what: str) -> Callable[[Path], object]:
    if what == "polars":
        import polars as pl

        return lambda path: pl.read_csv(path, separator=" ", has_header=False)
    if what == "strict":
        return read_with_polars
    from genm.read import read_run

    return read_run


def measure(what: str, path: Path) -> None:
    """Read once and print what it took; the memory is what the reading adds to the process."""
    read = reader(what)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.run"
        small.write_text("q Q0 a 1 2.0 t\nq Q0 b 2 2.0 t\nq Q0 c 2 3.0 t\n")
        cpu = time.process_time()
        read(small)
        first = time.process_time() - cpu
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    result = read(path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_bytes": peak, "first_cpu_s": first}))
    del result


def measured(what: str, path: Path, **environment: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.read", "--measure", what, "--file", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def time_ids(n: int, repeats: int) -> None:
    """Print wall and CPU seconds of each operation on tables of the ids of `n` lines; the best of the repeats."""
    import polars as pl

    from genm.ids import Ids, byte_order, encode, find, intern, unite

    rng = np.random.default_rng(SEED)
    lines = [f"doc-{number}" for number in rng.integers(0, COLLECTION, n).tolist()]
    others = [f"doc-{number}" for number in rng.integers(0, COLLECTION, n).tolist()]
    column = pl.Series(lines)
    a, b = encode(lines)[0], encode(others)[0]
    text, starts = Ids.of(lines).text, Ids.of(lines).starts
    at, length = starts[:-1].copy(), np.diff(starts).astype(np.int32)
    first, second = pl.Series(list(a)), pl.Series(list(b))
    del lines, others

    def united_by_polars() -> object:
        tables = [
            pl.DataFrame({"id": ids, name: np.arange(len(ids), dtype=np.int32)})
            for name, ids in (("first", first), ("second", second))
        ]
        both = tables[0].join(tables[1], on="id", how="full", coalesce=True).sort("id")
        codes = []
        for name, ids in (("first", first), ("second", second)):
            rows = both[name].is_not_null().arg_true().to_numpy()
            code = np.empty(len(ids), np.int32)
            code[both[name].drop_nulls().to_numpy()] = rows
            codes.append(code)
        return both["id"], codes

    def found_by_polars() -> object:
        table = pl.DataFrame({"id": first, "code": np.arange(len(first), dtype=np.int32)})
        wanted = pl.DataFrame({"id": second})
        return wanted.join(table, on="id", how="left", maintain_order="left")["code"].fill_null(-1).to_numpy()

    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "intern": (lambda: intern(text, at, length), lambda: interned_by_polars(column)),
        "sort": (lambda: byte_order(a), first.arg_sort),
        "find": (lambda: find(a, b), found_by_polars),
        "unite": (lambda: unite([a, b]), united_by_polars),
    }
    for what, (ours, theirs) in pairs.items():
        best = {"genm": (np.inf, np.inf), "polars": (np.inf, np.inf)}
        for _ in range(repeats):
            for who, work in (("genm", ours), ("polars", theirs)):
                wall, cpu = time.perf_counter(), time.process_time()
                work()
                taken = time.perf_counter() - wall, time.process_time() - cpu
                best[who] = (min(best[who][0], taken[0]), min(best[who][1], taken[1]))
        figures = {
            f"{who}_{unit}": round(x, 3)
            for who, both in best.items()
            for unit, x in zip(("wall_s", "cpu_s"), both, strict=True)
        }
        ratios = [round(best["genm"][i] / best["polars"][i], 2) for i in (0, 1)]
        print(
            json.dumps(
                {
                    "lines": n,
                    "ids": len(a),
                    "work": what,
                    **figures,
                    "wall_ratio": ratios[0],
                    "cpu_ratio": ratios[1],
                }
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--ids", action="store_true", help="time tables of ids instead of reading")
    parser.add_argument("--measure", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.file)
        return
    if options.ids:
        time_ids(int(QUERIES * DEPTH * options.scale), options.repeats)
        return
    n_queries = max(int(QUERIES * options.scale), 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bm25.run"
        write_file(path, n_queries, options.digits)
        size = path.stat().st_size
        print(
            json.dumps(
                {
                    "machine": platform.processor() or platform.machine(),
                    "cores": len(os.sched_getaffinity(0)),
                    "load": os.getloadavg()[0],
                    "seed": SEED,
                    "lines": n_queries * DEPTH,
                    "bytes": size,
                    "versions": {name: version(name) for name in ("genm", "numba", "numpy", "polars")},
                }
            )
        )
        turns = [{what: measured(what, path) for what in READERS} for _ in range(options.repeats)]
        best = {
            what: {key: min(turn[what][key] for turn in turns) for key in ("wall_s", "cpu_s", "peak_bytes")}
            for what in READERS
        }
        for what, figures in best.items():
            print(json.dumps({"reader": what} | {k: round(v, 3) for k, v in figures.items()}))
        compiled = measured("genm", path, NUMBA_CACHE_DIR=folder)["first_cpu_s"]
        wall = sorted(turn["genm"]["wall_s"] / turn["polars"]["wall_s"] for turn in turns)
        print(
            json.dumps(
                {
                    "wall_ratio": round(best["genm"]["wall_s"] / best["polars"]["wall_s"], 2),
                    "wall_ratio_of_turns": [round(x, 2) for x in wall],
                    "cpu_ratio": round(best["genm"]["cpu_s"] / best["polars"]["cpu_s"], 2),
                    "wall_ratio_at_equal_checks": round(best["genm"]["wall_s"] / best["strict"]["wall_s"], 2),
                    "cpu_ratio_at_equal_checks": round(best["genm"]["cpu_s"] / best["strict"]["cpu_s"], 2),
                    "peak_memory_over_file": round(best["genm"]["peak_bytes"] / size, 2),
                    "first_read_with_empty_cache_cpu_s": round(compiled, 1),
                    "limits": {"peak_memory_over_file": 4.0},
                }
            )
        )
        for clock in ("wall", "cpu"):
            ratio = best["genm"][f"{clock}_s"] / best["polars"][f"{clock}_s"]
            note = f"{best['genm'][f'{clock}_s']:.2f} s, polars {best['polars'][f'{clock}_s']:.2f} s"
            lines = f"{n_queries * DEPTH:,} lines"
            hold(f"read {lines}, over polars.read_csv ({clock})", ratio, 1.0, note=note)


if __name__ == "__main__":
    main()
