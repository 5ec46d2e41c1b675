"""`genm fit --target`: train under an engine's own rules, and say whether the result goes there as it is."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import say, say_notes
from genm.cli.export import target_names
from genm.cli.options import per_ranker
from genm.errors import InputError

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evidence import Evidence
    from genm.learn import Fuser
    from genm.model import Model
    from genm.progress import Progress
    from genm.records import Run

TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Train under this engine's rules (see genm export --list).",
        metavar="NAME",
        autocompletion=target_names,
    ),
]
Techniques = Annotated[
    list[str] | None,
    typer.Option("--technique", help="With --target: its normaliser, or NAME=WORD for each.", metavar="WORD"),
]
WindowSize = Annotated[
    int | None,
    typer.Option("--window", help="With --target: how many documents it looks at.", metavar="N", min=1),
]


def check_target(
    target: str | None,
    technique: list[str] | None,
    window: int | None,
    normalize: list[str] | None,
    depth: list[str] | None,
    method: str | None,
) -> None:
    """Refuse, before anything is read, an unknown engine and options that contradict it."""
    if target is None:
        for option, value in (("--technique", technique), ("--window", window)):
            if value:
                raise InputError(f"{option} belongs to an engine. Name it with --target, or leave {option} out.")
        return
    from genm.export import find_target

    found = find_target(target)
    if normalize:
        raise InputError(f"--normalize: --target {target} sets the normaliser. Leave one out, or use --technique.")
    if depth:
        raise InputError(f"--depth: --target {target} sets the depth. Leave one out, or use --window.")
    if found.weights.equal and method is not None:
        raise InputError(f"--method {method}: {found.title} takes equal weights only. Leave --method out.")


def target_rules(
    target: str, runs: "dict[str, Run]", technique: list[str] | None, window: int | None
) -> dict[str, Any]:
    """Return how to align, and tell under which rules the training goes."""
    from genm.export import find_target, training_rules

    words = per_ranker("--technique", technique or [])
    techniques = {"*": words} if isinstance(words, str) else words
    rules = training_rules(target, runs, techniques=techniques, window=window)
    kinds = ", ".join(f"{name} by {normalizer.kind}" for name, normalizer in rules.normalizers.items())
    cut = "whole lists" if rules.depth is None else f"the top {rules.depth} of each ranker"
    say(f"training under the rules of {find_target(target).title}: {kinds}; {cut}")
    say_notes(rules.notes)
    return {"normalize": rules.normalizers, "depth": rules.depth}


def takes_equal_only(target: str | None) -> bool:
    """Whether the engine leaves nothing to learn."""
    if target is None:
        return False
    from genm.export import find_target

    return find_target(target).weights.equal


def fit_equal(
    aligned: "Aligned", measure: str, level: int, folds: int, seed: int, progress: "Progress"
) -> "tuple[Fuser, Evidence | None]":
    """Give every ranker the same weight; with judgments, measure that as any learned weights would be."""
    from genm.evaluate import parse_measure
    from genm.evidence import gather_evidence
    from genm.export.equal import EqualFuser
    from genm.learn.scorer import with_level

    say("the engine takes equal weights only: nothing is learned")
    if not aligned.labelled:
        return EqualFuser(level=level).fit(aligned), None
    wanted = with_level(parse_measure(measure), level)
    return gather_evidence(
        aligned, lambda: EqualFuser(level=level), wanted, folds=folds, seed=seed, progress=progress
    )


def for_target(model: "Model", target: str, aligned: "Aligned") -> "Model":
    """Return the model with its engine's name; tell if the engine does not take it, or its runs, as they are."""
    from genm.export import find_target, obstacles

    found, missing = find_target(target), 1.0 - float(aligned.retrieved.mean()) if aligned.retrieved.size else 0.0
    if found.window.rerank and missing:
        say(
            f"note: {found.title} scores every candidate by every ranker, and {missing:.1%} of the scores are "
            f"missing in these runs. Write runs that all hold the same documents."
        )
    for reason in obstacles(model)[target]:
        say(f"note: {target} does not take this model exactly: {reason}.")
    return replace(model, target=target)
