"""Every command of docs/quickstart.md is run, on the sample that its figures belong to."""

import os
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
FIGURE = re.compile(r"[-+<]?\d*\.?\d+(?:e-?\d+)?\*?")


def steps(page):
    """Return (command, what the page shows after it) in order."""
    found = []
    for block in BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(shown).strip()) for command, shown in found]


def run(genm, command):
    words, pipe, count = command.partition(" | head -")
    done = genm(*shlex.split(words)[1:])
    lines = (done.out + done.err).splitlines() if done.code else done.out.splitlines()
    lines = [line for line in lines if not line.startswith("note: ")]
    return done, "\n".join(lines[: int(count)] if pipe else lines).strip()


def blurred(text):
    """Return the text without its figures: learners get better, and the page need not follow each digit."""
    return re.sub(r"[─\s]+", " ", FIGURE.sub("#", text))


@pytest.fixture(scope="module")
def outcomes(genm, made_up, tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    for path in made_up.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    before = Path.cwd()
    os.chdir(folder)
    try:
        return [(command, shown, *run(genm, command)) for command, shown in steps(PAGE.read_text(encoding="utf-8"))]
    finally:
        os.chdir(before)


def test_commands_succeed_or_show_that_they_do_not(outcomes):
    assert len(outcomes) >= 12
    for command, shown, done, _ in outcomes:
        assert done.code == (2 if shown.startswith("genm: ") else 0), (command, done.err)


def test_the_page_shows_what_is_printed(outcomes):
    if os.environ.get("GENM_WRITE_DOCS"):
        write(outcomes)
    for command, shown, _, printed in outcomes:
        if command.startswith(
            ("genm fit", "genm update", "genm evaluate qrels.txt bm25.trec dense.trec rrf.trec learned")
        ):
            assert blurred(printed) == blurred(shown), f"{command}\n{printed}"
        else:
            assert printed == shown, f"{command}\n{printed}"


def test_the_page_begins_with_the_sample(made_up):
    page = PAGE.read_text(encoding="utf-8")
    for name in ("bm25.trec", "dense.trec", "qrels.txt"):
        first = (made_up / name).read_text().splitlines()[0]
        assert re.search(rf"^    {name} +{re.escape(first)}(  |$)", page, re.MULTILINE), first


def test_it_leads_from_runs_to_a_measured_fusion(outcomes):
    verbs = [command.split()[1] for command, *_ in outcomes]
    assert list(dict.fromkeys(verbs)) == ["inspect", "evaluate", "fuse", "compare", "fit", "update"]


def write(outcomes):
    """Put what was printed into the page."""
    left = iter(outcomes)

    def filled(block):
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        parts = [f"{line}\n{printed}".rstrip() for line, (_, _, _, printed) in zip(commands, left)]  # noqa: B905
        return "```console\n" + "\n".join(parts) + "\n```\n"

    PAGE.write_text(BLOCK.sub(filled, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
