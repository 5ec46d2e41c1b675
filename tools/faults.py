"""Faults: kill, interrupt and starve commands, and look at what they leave behind.

    python tools/faults.py --tries 40        the short form, for every change
    python tools/faults.py --tries 1000      the long form; --jobs 8 sends signals to eight commands at a time

Signals: each try starts a command and sends SIGKILL, SIGINT or SIGTERM at a random moment. Afterwards every output
is absent, as it was before, or exactly what an undisturbed command writes; the exit code is a documented one; no
traceback of genm is printed; and once the command has run again, no temporary file is left. Before the signals come
a full disk, a limit on file sizes, folders that vanish or must not be written, files from the past and the future,
and several processes that share one home folder.
"""

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import genm

RUNS = ["bm25.trec", "dense.trec"]
QRELS = ["--qrels", "qrels.txt"]
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "fit": (["fit", *QRELS, *RUNS, "-o", "out/model.json"], ["out/model.json", "out/model.evidence.json"]),
    "fuse": (["fuse", "--method", "rrf", *RUNS, "-o", "out/fused.trec"], ["out/fused.trec"]),
    "fuse, packed": (["fuse", "--model", "online.json", *RUNS, "-o", "out/fused.trec.gz"], ["out/fused.trec.gz"]),
    "update": (["update", "--model", "online.json", *QRELS, *RUNS, "-o", "out/updated.json"], ["out/updated.json"]),
    "report": (["report", "--model", "online.json", *QRELS, *RUNS, "-o", "out/report.html"], ["out/report.html"]),
    "export": (
        ["export", "--to", "redis", "--approximate", "online.json", "-o", "out/redis.json"],
        ["out/redis.json"],
    ),
    "rank": (
        ["rank", "docs.tsv", "--queries", "queries.tsv", "--rankers", "tfidf,lsa", "-o", "out"],
        ["out/tfidf.trec", "out/lsa.trec"],
    ),
    "pull": (
        ["pull", "pull.toml", "-o", "out/pulled", "--resume"],
        ["out/pulled/words.trec", "out/pulled/pull.json"],
    ),
    "pool": (["pool", *QRELS, *RUNS, "-n", "20", "-o", "out/pairs.tsv"], ["out/pairs.tsv"]),
    "clicks": (["clicks", "clicks.csv", "-o", "out/clicks.csv"], ["out/clicks.csv"]),
    "reproduce": (
        [
            "reproduce",
            "--collections",
            "med",
            "--splits",
            "1",
            "--no-figures",
            "--paper-rankers",
            "-o",
            "out/paper",
        ],
        ["out/paper/results.json", "out/paper/tables/bar.md"],
    ),
    "judge export": (["judge", "export", "judgments.sqlite", "-o", "out/judged.qrels"], ["out/judged.qrels"]),
}
"""The words of each command, and the files that it writes; all of them are the same from run to run."""
PULL = """engine = "sqlite"
address = "docs.db"
queries = "queries.tsv"
[rankers.words]
search = "SELECT id, -bm25(docs) FROM docs WHERE docs MATCH $words ORDER BY bm25(docs), id LIMIT $depth"
"""

CODES = {
    signal.SIGKILL: {0, -signal.SIGKILL},
    signal.SIGINT: {0, 130, -signal.SIGINT},  # the last one before Python has come to genm
    signal.SIGTERM: {0, 143, -signal.SIGTERM},
}


PATIENCE = 120
"""Seconds that a command may take to end after a signal; a busy machine lets it wait."""
PROGRESS_SECONDS = 60


@dataclass
class Outcome:
    """What was tried, and what went wrong."""

    tries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def check(self, right: bool, text: str) -> None:  # noqa: FBT001
        """Note a failure."""
        if not right:
            self.failures.append(text)
            print(f"FAILED {text}", flush=True)


def make_sample(folder: Path) -> None:
    """Write what the commands read."""
    genm.collections.write_sample(folder)
    runs = {name: genm.read_run(folder / f"{name}.trec", name=name) for name in ("bm25", "dense")}
    genm.train(runs, genm.read_qrels(folder / "qrels.txt"), method="online").save(folder / "online.json")
    words = ["ship", "sail", "port", "storm", "train", "track", "wheel", "steam", "cloud", "rain", "wind", "sun"]
    draw = random.Random(0)  # noqa: S311
    docs = "".join(f"d{i}\t{' '.join(draw.choices(words, k=12))}\n" for i in range(60))
    (folder / "docs.tsv").write_text(docs)
    (folder / "queries.tsv").write_text("".join(f"q{i}\t{word}\n" for i, word in enumerate(words)))
    data = folder / "data" / "med"  # a collection of that name, small enough for the experiment to take seconds
    data.mkdir(parents=True)
    (data / "MED.ALL").write_text(
        "".join(f".I {i}\n.W\n{' '.join(draw.choices(words, k=12))}\n" for i in range(1, 61))
    )
    (data / "MED.QRY").write_text(
        "".join(f".I {i}\n.W\n{word} {words[i % 12]}\n" for i, word in enumerate(words, 1))
    )
    relevant = [(query, doc) for query in range(1, 13) for doc in draw.sample(range(1, 61), 8)]
    (data / "MED.REL").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc in relevant))
    (folder / "out" / "pulled").mkdir(parents=True)
    (folder / "out" / "paper" / "tables").mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(folder / "docs.db")) as database:
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, text)")
        database.executemany("INSERT INTO docs VALUES (?, ?)", [line.split("\t") for line in docs.splitlines()])
        database.commit()
    (folder / "pull.toml").write_text(PULL)
    shown = "".join(f"ship,d{i},{i + 1},{int(i == n % 3)}\n" for n in range(40) for i in range(5))
    (folder / "clicks.csv").write_text(f"query,doc_id,position,clicked\n{shown}")
    with genm.judge.JudgmentStore(folder / "judgments.sqlite") as store:
        for i in range(30):
            store.add("ann", f"q{i % 3}", f"d{i}", i % 4, key=str(i))


def start(folder: Path, words: list[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a command in the folder, with a home of its own."""
    env = {
        **os.environ,
        "HOME": str(folder),
        "GENM_CACHE": str(folder / "cache"),
        "GENM_DATA": str(folder / "data"),
        **options.pop("env", {}),
    }
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    before = streams.pop("before", [])
    return subprocess.Popen([*before, sys.executable, "-m", "genm", *words], cwd=folder, env=env, **streams)


def outputs(folder: Path, names: list[str]) -> dict[str, bytes | None]:
    """Return the content of the files, None where there is none."""
    return {name: (folder / name).read_bytes() if (folder / name).exists() else None for name in names}


def litter(folder: Path) -> list[str]:
    """Return temporary files."""
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if ".part" in path.name or ".tmp." in path.name
    ]


def is_traceback(err: bytes) -> bool:
    """Whether genm printed a traceback; one from the start of Python, before genm, is not ours.

    That includes the import of the package's root, a millisecond: a library sets no handlers when it is imported.
    """
    return b"Traceback" in err and b"/genm/" in err.replace(b"/genm/__init__.py", b"")


def send_signals_from(jobs: int, tries: int, seed: int, outcome: Outcome) -> None:
    """Interrupt commands from several threads, each in a folder of its own with a generator of its own."""
    shares = [(tries * (job + 1)) // jobs - (tries * job) // jobs for job in range(jobs)]
    outcomes = [Outcome() for _ in range(jobs)]
    draws = [random.Random(f"{seed} {job}") for job in range(jobs)]  # noqa: S311
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(send_signals, shares, draws, outcomes))
    for one in outcomes:
        outcome.tries += one.tries
        outcome.failures += one.failures


def send_signals(tries: int, draw: random.Random, outcome: Outcome) -> None:
    """Interrupt commands at random moments."""
    with sample() as folder:
        expected, seconds = {}, {}
        for name, (words, files) in COMMANDS.items():
            for _ in range(2):  # the second time nothing is compiled or fitted
                began = time.monotonic()
                done = start(folder, words)
                _, err = done.communicate()
                seconds[name] = time.monotonic() - began
            outcome.check(done.returncode == 0, f"{name}: exit code {done.returncode}: {err[-300:]!r}")
            expected[name] = outputs(folder, files)
        said = time.monotonic()
        for number in range(tries):
            if time.monotonic() > said + PROGRESS_SECONDS:
                said = time.monotonic()
                print(f"{number:,} of {tries:,} signals, {len(outcome.failures)} failures", flush=True)
            name = draw.choice(list(COMMANDS))
            words, files = COMMANDS[name]
            kind = draw.choice(list(CODES))
            before = draw.choice([None, b"old"])
            for file in files:
                (folder / file).unlink(missing_ok=True)
                if before is not None:
                    (folder / file).write_bytes(before)
            # What an earlier SIGKILL left stays until a command comes to writing; one that ends before leaves it.
            earlier = set(litter(folder / "out"))
            process = start(folder, words)
            time.sleep(draw.uniform(0.0, seconds[name] * 1.05))
            process.send_signal(kind)
            try:
                _, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                outcome.failures.append(f"{name}: still there {PATIENCE} s after {kind.name}")
                continue
            what = f"{name} after {kind.name}"
            outcome.tries[what] += 1
            codes = CODES[kind] | ({1} if kind is signal.SIGINT and not is_traceback(err) else set())  # before genm
            outcome.check(process.returncode in codes, f"{what}: exit code {process.returncode}: {err[-300:]!r}")
            outcome.check(not is_traceback(err), f"{what}: {err[-600:].decode(errors='replace')}")
            for file, content in outputs(folder, files).items():
                whole = content in (before, expected[name][file])
                outcome.check(whole, f"{what}: {file} is neither old nor new")
            left = sorted({*litter(folder / "out")} - earlier) if kind is not signal.SIGKILL else []
            outcome.check(not left, f"{what}: left {left}")
        for name, (words, files) in COMMANDS.items():
            done = start(folder, words)
            _, err = done.communicate()
            outcome.check(done.returncode == 0, f"{name}, at the end: exit code {done.returncode}: {err[-300:]!r}")
            outcome.check(outputs(folder, files) == expected[name], f"{name}, at the end: other files than before")
        left = litter(folder / "out")
        outcome.check(not left, f"at the end: left {left}")


@contextlib.contextmanager
def sample() -> Iterator[Path]:
    """Give a folder with the inputs."""
    folder = Path(tempfile.mkdtemp(prefix="genm-faults-"))
    try:
        make_sample(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def expect_fault(outcome: Outcome, what: str, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Check that a command ended with code 2 and one line, and left nothing behind."""
    _, err = process.communicate(timeout=120)
    lines = [line for line in err.decode(errors="replace").splitlines() if line.startswith("genm: ")]
    outcome.tries[what] += 1
    outcome.check(process.returncode == 2, f"{what}: exit code {process.returncode}: {err[-300:]!r}")
    outcome.check(len(lines) == 1 and b"Traceback" not in err, f"{what}: {err[-600:].decode(errors='replace')}")
    outcome.check(not litter(folder), f"{what}: left {litter(folder)}")


def starve(outcome: Outcome) -> None:
    """Take away the disk."""

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # Python ignores the signal and gets an error

    # Python itself, before 3.12.8, keeps bytecode that was cut short by the limit, and cannot import it ever after.
    no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}
    with sample() as folder:
        for name, (words, files) in COMMANDS.items():
            start(folder, words).communicate()
            before = outputs(folder, files)
            process = start(folder, words, preexec_fn=small_files, env=no_bytecode)
            expect_fault(outcome, f"{name}: files of at most 100 bytes", process, folder / "out")
            outcome.check(outputs(folder, files) == before, f"{name}: another output under a limit of file size")
        for name in ("fuse", "export"):
            words = [*COMMANDS[name][0][:-1], "/dev/full"]
            if Path("/dev/full").exists():
                expect_fault(outcome, f"{name}: a full device", start(folder, words), folder / "out")
                with open("/dev/full", "wb") as full:
                    process = start(folder, [*words[:-1], "-"], stdout=full)
                    expect_fault(outcome, f"{name}: standard output on a full device", process, folder / "out")


def take_folders(outcome: Outcome) -> None:
    """Let folders vanish, or be of a kind that cannot be written."""
    with sample() as folder:
        start(folder, COMMANDS["fuse"][0]).communicate()
        shutil.rmtree(folder / "out")
        expect_fault(outcome, "fuse: no folder", start(folder, COMMANDS["fuse"][0]), folder)
        (folder / "out").mkdir()
        process = start(folder, COMMANDS["report"][0])
        time.sleep(0.3)
        shutil.rmtree(folder / "out")
        expect_fault(outcome, "report: the folder vanishes", process, folder)
        (folder / "out").write_text("a file")
        expect_fault(outcome, "fuse: a file in place of the folder", start(folder, COMMANDS["fuse"][0]), folder)
        (folder / "out").unlink()
        (folder / "out").mkdir()
        (folder / "cache").write_text("a file in place of the cache")
        done = start(folder, COMMANDS["rank"][0])
        _, err = done.communicate()
        outcome.tries["rank: no cache"] += 1
        outcome.check(done.returncode == 0, f"rank: no cache: exit code {done.returncode}: {err[-300:]!r}")
        outcome.check(b"the cache cannot be written" in err, f"rank: no cache: {err[-300:]!r}")


def forbid(outcome: Outcome) -> None:
    """Run as an ordinary user in a folder that must not be written, on a file that must not be read."""
    with sample() as folder:
        user: dict[str, Any] = {}
        if os.geteuid() == 0:  # without these capabilities root must not do more than others
            user = {"before": ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]}
            if shutil.which("setpriv") is None:
                outcome.skipped.append("permissions: this is root, and setpriv is not installed")
                return
        (folder / "out").chmod(0o555)
        expect_fault(
            outcome, "fuse: a folder that must not be written", start(folder, COMMANDS["fuse"][0], **user), folder
        )
        (folder / "bm25.trec").chmod(0o000)
        expect_fault(
            outcome, "fuse: a file that must not be read", start(folder, COMMANDS["fuse"][0], **user), folder
        )
        (folder / "out").chmod(0o755)


def shift_clocks(outcome: Outcome) -> None:
    """Give files times of the past and the future, as after a jump of the clock."""
    with sample() as folder:
        words, files = COMMANDS["rank"]
        start(folder, words).communicate()
        expected = outputs(folder, files)
        for moment in (0, 4_102_444_800):  # 1970 and 2100
            for path in folder.rglob("*"):
                os.utime(path, (moment, moment))
            done = start(folder, words)
            _, err = done.communicate()
            outcome.tries["rank: files of another time"] += 1
            outcome.check(done.returncode == 0, f"rank: files of {moment}: {err[-300:]!r}")
            outcome.check(outputs(folder, files) == expected, f"rank: files of {moment}: another output")


def share(outcome: Outcome, n: int = 3) -> None:
    """Let several processes write the same outputs and the same cache, as machines with one home folder do."""
    with sample() as folder:
        for name in ("rank", "fuse"):
            words, files = COMMANDS[name]
            processes = [start(folder, words) for _ in range(n)]
            for process in processes:
                _, err = process.communicate()
                outcome.tries[f"{name}: {n} at once"] += 1
                outcome.check(process.returncode == 0, f"{name}: at once: {err[-300:]!r}")
            once = outputs(folder, files)
            start(folder, words).communicate()
            outcome.check(outputs(folder, files) == once, f"{name}: at once: another output than alone")
        outcome.check(not litter(folder), f"at once: left {litter(folder)}")


def main() -> int:
    """Try everything, print what was tried, and return 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=40, help="signals to send")
    parser.add_argument("--jobs", type=int, default=1, help="commands that get signals at the same time")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    for kind in (signal.SIGINT, signal.SIGTERM):  # a shell lets what it starts in the background ignore SIGINT
        signal.signal(kind, signal.default_int_handler)
    print(f"seed {given.seed}", flush=True)
    outcome = Outcome()
    steps: tuple[Callable[[Outcome], None], ...] = (starve, take_folders, forbid, shift_clocks, share)
    for step in steps:
        step(outcome)
        print(f"{step.__name__}: {len(outcome.failures)} failures so far", flush=True)
    send_signals_from(given.jobs, given.tries, given.seed, outcome)
    for what, n in sorted(outcome.tries.items()):
        print(f"{n:>5}  {what}")
    for text in outcome.skipped:
        print(f"skipped: {text}")
    for text in outcome.failures:
        print(f"FAILED {text}")
    print(f"{sum(outcome.tries.values())} tries, {len(outcome.failures)} failures")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
