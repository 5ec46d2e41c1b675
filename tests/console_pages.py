"""Pages of the documentation that show commands and what they print: how their examples are run and written anew.

A page holds blocks of ```console with lines that begin with "$ ", each followed by what the command prints.
"""

import os
import re
import shlex
from itertools import takewhile
from pathlib import Path

BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
HASH = re.compile(r"\b[0-9a-f]{64}\b")
VERSION = re.compile(r"\b\d+(?:\.\w+){2,}")
FIGURE = re.compile(r"[-+<]?\d*\.?\d+(?:e-?\d+)?\*?")
IN_TEX = re.compile(r"\$[^$]*\$")
P_VALUE = re.compile(r"\bp (?:=|\\?<|\\textless\{\}) #")


def steps(page: str) -> list[tuple[str, str]]:
    """Return (command, what the page shows after it) in order."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(shown).strip()) for command, shown in found]


def run(genm, command):
    """Run one command and return its outcome and what a page would show of it."""
    words, pipe, count = command.partition(" | head -")
    done = genm(*shlex.split(words)[1:])
    lines = (done.out + done.err).splitlines() if done.code else done.out.splitlines()
    lines = [line for line in lines if not line.startswith("note: ")]
    return done, "\n".join(lines[: int(count)] if pipe else lines).strip()


def run_all(genm, page: Path, folder: Path):
    """Run every command of a page in a folder; return (command, shown, outcome, printed) for each."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return [(command, shown, *run(genm, command)) for command, shown in steps(page.read_text(encoding="utf-8"))]
    finally:
        os.chdir(before)


def blurred(text: str) -> str:
    """Return the text without its figures: learners get better, and the page need not follow each digit.

    Hashes of files that hold figures, and versions of libraries, are figures too.
    """
    for pattern in (HASH, VERSION, IN_TEX, FIGURE):
        text = pattern.sub("#", text)
    return re.sub(r"[─\s]+", " ", P_VALUE.sub("p #", text))


def tables(text: str) -> list[tuple[str, list[str]]]:
    """Return the head of every table, and the names of its rows sorted: figures may decide their order."""
    lines, found = text.splitlines(), []
    for at, line in enumerate(lines):
        if not set(line) <= {"─", " "} or "─" not in line:
            continue
        width = len(line.split("  ")[0])
        rows = takewhile(str.strip, lines[at + 1 :])
        found.append((" ".join(lines[at - 1].split()), sorted(row[:width].strip() for row in rows)))
    return found


def write(page: Path, outcomes) -> None:
    """Put what was printed into the page."""
    left = iter(outcomes)

    def filled(block: re.Match[str]) -> str:
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        parts = [f"{line}\n{printed}".rstrip() for line, (_, _, _, printed) in zip(commands, left)]  # noqa: B905
        return "```console\n" + "\n".join(parts) + "\n```\n"

    page.write_text(BLOCK.sub(filled, page.read_text(encoding="utf-8")), encoding="utf-8")
