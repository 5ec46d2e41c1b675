"""What a table of weights and figures does not show, and whoever serves the weights must know."""

from typing import TYPE_CHECKING

from genm.cli.console import say

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evidence import Evidence
    from genm.model import Model
    from genm.records import Qrels


def say_what_weight_0_still_does(model: "Model", aligned: "Aligned") -> None:
    """Tell of rankers that count for nothing and yet bring documents: switched off, they would take them along."""
    idle = [k for k, weight in enumerate(model.weights) if weight == 0.0]
    only = aligned.retrieved.any(axis=1) & ~aligned.retrieved[:, [w > 0.0 for w in model.weights]].any(axis=1)
    for k in idle:
        n = int((only & aligned.retrieved[:, k]).sum())
        if n:
            say(
                f"note: {model.rankers[k]} has weight 0, but it brings {n:,} rows of the fused run that no ranker "
                f"with a weight returned. Leave its run out, and they are gone."
            )


def say_what_is_not_held_back(judged: "Qrels", held: "Qrels") -> None:
    """Tell if the weights were learned from queries that they are tested on."""
    both = set(judged.queries) & set(held.queries)
    if both:
        first = next(query_id for query_id in held.queries if query_id in both)
        say(
            f"note: {len(both):,} of {len(held.queries):,} queries of --test-qrels were also learned from (first: "
            f"{first}): on them the figures are too good. Hold queries back from --qrels."
        )


def say_what_does_better(evidence: "Evidence", *, may_choose: bool) -> None:
    """Tell how to use the rules that need no learning and yet clearly beat it; the verdict has the figures."""
    from genm.evidence import UNIFORM

    for name in evidence.better_rules:
        use = f"genm fuse --method {'sum' if name == UNIFORM else 'rrf'}"
        say(
            f"note: held out, what needs no learning does better: {name}. "
            f"{'Try --normalize auto, or use it' if may_choose else 'Use it'}: {use}"
        )
