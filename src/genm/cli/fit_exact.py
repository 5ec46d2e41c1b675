"""`genm fit --method exact`: how far to prove the optimum, and what is said of it."""

import copy
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import print_text, print_tsv
from genm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from genm.learn import Fuser
    from genm.progress import Progress


class PointName(StrEnum):
    """Which weights of the plateau become the model's."""

    best = "best"
    centre = "centre"


Certify = Annotated[
    bool, typer.Option("--certify", help="With exact: prove how much could be gained at most.", show_default=False)
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="With --certify: stop after so long (60).", metavar="NUMBER")
]
Gap = Annotated[
    float | None, typer.Option("--gap", help="With --certify: stop when no more is left (0).", metavar="NUMBER")
]
Point = Annotated[
    PointName | None,
    typer.Option(
        "--weights",
        help="With exact: best, or the centre of the weights that lose at most .001.",
        metavar="POINT",
    ),
]


def exact_options(
    method: str | None, certify: bool, seconds: float | None, gap: float | None, point: PointName | None
) -> dict[str, Any]:
    """Return the fuser's options; refuse flags that belong to another method, and limits without a proof."""
    given = {"--certify": certify or None, "--seconds": seconds, "--gap": gap, "--weights": point}
    for flag, value in given.items():
        if value is not None and method != "exact":
            raise InputError(f"{flag} belongs to --method exact. Name it, or leave {flag} out.")
        if value is not None and flag in ("--seconds", "--gap") and not certify:
            raise InputError(f"{flag} limits a proof. Ask for one with --certify, or leave {flag} out.")
    if seconds is not None and not seconds > 0.0:
        raise InputError(f"--seconds {seconds:g}: expected a number above 0.")
    if gap is not None and not gap >= 0.0:
        raise InputError(f"--gap {gap:g}: expected a number from 0 on.")
    wanted = {"certify": certify or None, "seconds": seconds, "gap": gap, "weights": point and point.value}
    return {name: value for name, value in wanted.items() if value is not None}


def learner(method: str, measure: str, options: dict[str, Any], progress: "Progress") -> "Callable[[], Fuser]":
    """Return what makes fusers; only the first, which learns from all queries, proves its weights."""
    from genm.learn.auto import make_fuser

    if not options.get("certify"):
        return lambda: make_fuser(method, measure=measure, **options)
    proving = [make_fuser(method, measure=measure, progress=progress, **options)]
    plain = {name: value for name, value in options.items() if name not in ("certify", "seconds", "gap")}
    return lambda: proving.pop() if proving else make_fuser(method, measure=measure, **plain)


def without_proof(fuser: "Fuser") -> "Fuser":
    """Return a fuser that can be fitted again and again: a proof is wanted once."""
    from genm.learn import ExactFuser

    if not isinstance(fuser, ExactFuser):
        return fuser
    other = copy.copy(fuser)
    other.certify = False
    return other


def exact_json(fuser: "Fuser") -> dict[str, Any]:
    """Return what the exact method knows beyond the weights; nothing for other methods."""
    from genm.learn import ExactFuser

    if not isinstance(fuser, ExactFuser):
        return {}
    rows = zip(fuser.rankers_, fuser.plateau_.low.tolist(), fuser.plateau_.high.tolist(), strict=True)
    return {
        "exact": {
            "verdict": fuser.verdict(),
            "best": fuser.best_value_,
            "best_weights": dict(zip(fuser.rankers_, fuser.best_weights_.tolist(), strict=True)),
            "bound": fuser.bound_,
            "left": fuser.gap_,
            "plateau": {"loss": fuser.plateau_.loss, "weights": {name: [low, high] for name, low, high in rows}},
        }
    }


def exact_tsv(fuser: "Fuser") -> None:
    """Print the same as lines of tab-separated values."""
    known = exact_json(fuser).get("exact")
    if known is None:
        return
    print_tsv(
        (f"exact.{name}", "", repr(known[name])) for name in ("best", "bound", "left") if known[name] is not None
    )
    print_tsv((f"plateau.{end}", name, repr(span[i])) for i, end in enumerate(("low", "high"))
              for name, span in known["plateau"]["weights"].items())  # fmt: skip


def exact_table(fuser: "Fuser") -> None:
    """Print what was reached and what is left, and how far the weights can move."""
    known = exact_json(fuser).get("exact")
    if known is None:
        return
    spans = known["plateau"]["weights"].items()
    loss = known["plateau"]["loss"]
    print_text(f"On all training queries: {known['verdict']}.")
    print_text(
        f"Weights that lose at most {loss:g}, one ranker at a time, the others in proportion: "
        + ", ".join(f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in spans)
        + "."
    )
