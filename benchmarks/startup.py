"""CPU time of short commands, beside the import of the libraries they stand on: `python -m benchmarks.startup`.

The floor is `python -c "import numpy, numba, polars, typer"`. Commands read 30 queries x 4 runs of 100 documents.
Bytecode is cached; each figure is the least of several, floor and command in turns. First-ever commands begin with
an empty folder of kernels. From a checkout they compile everything they need; their CPU time includes the process
that compiles beside them. From a wheel that carries kernels (`make wheel`) they make machine code of them.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks._bars import hold

ROOT = Path(__file__).parents[1]
FLOOR = ("-c", "import numpy, numba, polars, typer")
QUERIES, DEPTH, RANKERS, RELEVANT = 30, 100, 4, 10
SHORT = {
    "python -c pass": ("-c", "pass"),
    "genm --version": ("-m", "genm", "--version"),
    "genm --help": ("-m", "genm", "--help"),
    "genm fit --help": ("-m", "genm", "fit", "--help"),
}
AT_MOST = 0.3
"""Seconds that a user does not notice."""
WARM = {"evaluate": 1.3, "fuse --model": 1.5, "fit": 2.5, "report": 2.5}
"""Verbs, and the bars of their time over that of the floor."""
FIRST_FIT, FIRST_THREE = 6.0, 12.0
"""Bars of the CPU seconds of the first `genm fit` ever, and of the first fit, report and evaluate."""


def write_files(folder: Path) -> None:
    """Write made-up runs of four rankers and judgments."""
    draw = random.Random(1)
    runs: list[list[str]] = [[] for _ in range(RANKERS)]
    judged = []
    for query in range(1, QUERIES + 1):
        docs = draw.sample(range(1, 2 * DEPTH), int(1.3 * DEPTH))
        relevant = set(draw.sample(docs, RELEVANT))
        judged += [f"{query} 0 d{doc} 1\n" for doc in sorted(relevant)]
        hidden = {doc: draw.gauss(1.0 if doc in relevant else 0.0, 1.0) for doc in docs}
        for k, lines in enumerate(runs):
            scores = {doc: hidden[doc] + draw.gauss(0.0, 1.0 + 0.3 * k) for doc in docs}
            best = sorted(scores, key=scores.__getitem__, reverse=True)[:DEPTH]
            lines += [f"{query} Q0 d{doc} {rank} {scores[doc]:.6f} r{k}\n" for rank, doc in enumerate(best, 1)]
    (folder / "qrels.txt").write_text("".join(judged))
    for k, lines in enumerate(runs):
        (folder / f"r{k}.trec").write_text("".join(lines))


def verbs(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the words of each command; `fit` writes the model that others read."""
    runs = [f"r{k}={folder / f'r{k}.trec'}" for k in range(RANKERS)]
    qrels, model = str(folder / "qrels.txt"), str(folder / "model.json")
    genm = ("-m", "genm")
    return {
        "fit": (*genm, "fit", "--qrels", qrels, *runs, "-o", model),
        "report": (*genm, "report", "--model", model, "--qrels", qrels, *runs, "-o", str(folder / "page.html")),
        "evaluate": (*genm, "evaluate", qrels, *runs),
        "fuse --model": (*genm, "fuse", "--model", model, *runs, "-o", str(folder / "fused.trec")),
    }


def cpu_seconds(words: tuple[str, ...], environment: dict[str, str]) -> float:
    """Run Python with these words and return the CPU time that it and its processes took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nothing = subprocess.DEVNULL
    subprocess.run([sys.executable, *words], check=True, stdout=nothing, stderr=nothing, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_ever(folder: Path, environment: dict[str, str], which: str) -> None:
    """Time fit, report and evaluate in this order from an empty folder of kernels."""
    with tempfile.TemporaryDirectory() as kernels:
        environment = {**environment, "NUMBA_CACHE_DIR": kernels}
        spent = {verb: cpu_seconds(verbs(folder)[verb], environment) for verb in ("fit", "report", "evaluate")}
        n_kernels = len(list(Path(kernels).rglob("*.nbc")))
    figures = ", ".join(f"{verb} {x:.1f} s" for verb, x in spent.items())
    print(f"first ever, {which}: {figures}; {n_kernels} kernels kept")
    hold(f"first genm fit ever, {which}, CPU", spent["fit"], FIRST_FIT, unit="s")
    hold(f"first fit, report and evaluate ever, {which}, CPU", sum(spent.values()), FIRST_THREE, unit="s")


def unpack_wheel(folder: Path) -> Path:
    """Build a wheel that carries kernels, and return a folder with its content."""
    kernels = str(folder / "kernels")
    for words in (
        ("tools/ship_kernels.py", kernels),
        ("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)),
    ):
        environment = {**os.environ, "GENM_KERNELS": kernels}
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "installed")
    return folder / "installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm", action="store_true", help="leave out the commands that compile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:  # modules are compiled once, as for a user, whatever is set here
        folder = Path(name)
        write_files(folder)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        for title, words in SHORT.items():
            cpu_seconds(words, environment)
            spent = sorted(cpu_seconds(words, environment) for _ in range(options.repeats))
            note = f"  (more than {AT_MOST} s)" if spent[0] > AT_MOST else ""
            print(f"{title:16} {spent[0]:.3f} s at best, {spent[len(spent) // 2]:.3f} s in the middle{note}")
        commands = {"floor": FLOOR, **verbs(folder)}
        for words in commands.values():  # compiles bytecode and kernels
            cpu_seconds(words, environment)
        turns = [
            {verb: cpu_seconds(w, environment) for verb, w in commands.items()} for _ in range(options.repeats)
        ]
        least = {verb: min(turn[verb] for turn in turns) for verb in commands}
        print(f"import floor     {least['floor']:.3f} s at best")
        for verb, bar in WARM.items():
            note = f"{least[verb]:.2f} s, floor {least['floor']:.2f} s"
            hold(f"genm {verb}, 30 x 4 runs, CPU over the floor", least[verb] / least["floor"], bar, note=note)
        if not options.warm:
            first_ever(folder, environment, "checkout")
            installed = {**environment, "PYTHONPATH": str(unpack_wheel(folder))}
            for words in verbs(folder).values():  # compiles bytecode
                cpu_seconds(words, {**installed, "NUMBA_CACHE_DIR": str(folder / "other")})
            first_ever(folder, installed, "wheel with kernels")


if __name__ == "__main__":
    main()
