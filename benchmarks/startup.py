"""CPU time of starting the command, beside starting Python alone: `python -m benchmarks.startup [--repeats 10]`."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "genm --version": ("-m", "genm", "--version"),
    "genm --help": ("-m", "genm", "--help"),
    "genm fit --help": ("-m", "genm", "fit", "--help"),
}
AT_MOST = 0.3
"""Seconds that a user does not notice."""


def cpu_seconds(words: tuple[str, ...], environment: dict[str, str]) -> float:
    """Run Python with these words and return the CPU time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:  # modules are compiled once, as for a user, whatever is set here
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        for name, words in COMMANDS.items():
            cpu_seconds(words, environment)
            spent = sorted(cpu_seconds(words, environment) for _ in range(repeats))
            note = f"  (more than {AT_MOST} s)" if spent[0] > AT_MOST else ""
            print(f"{name:16} {spent[0]:.3f} s at best, {spent[len(spent) // 2]:.3f} s in the middle{note}")


if __name__ == "__main__":
    main()
