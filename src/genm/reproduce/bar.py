"""Tables that judge: the paper's best cells, single rankers, EnM, and what needs no labels."""

from collections.abc import Sequence
from typing import NamedTuple

from genm.evidence import BEST_SINGLE, UNIFORM
from genm.reproduce.cells import Cell, Table, figures, words
from genm.reproduce.methods import BOOSTING, ENM, RULES, SUPERVISED, UNS, UNS_Z
from genm.reproduce.paper import TABLE_3, best_printed
from genm.reproduce.results import MEASURES, CollectionResult
from genm.reproduce.tables import contrast, spread_rows

Found = Sequence[CollectionResult]


def bar_table(found: Found) -> Table | None:
    """Return the best learned method against the paper's best cell, row by row; None without such a row."""
    rows, above = [], 0
    for one in found:
        for m, (measure, _) in enumerate(MEASURES):
            if (one.title, measure) not in TABLE_3:
                continue
            theirs = best_printed(one.title, measure)
            best = max((one.methods[name] for name in (*SUPERVISED, UNS)), key=lambda method: method.mean[m])
            ours = float(best.mean[m])
            above += ours > theirs
            figure = figures([theirs, ours, ours - theirs])[:2] + figures([ours - theirs], "+.4f")
            rows.append((*words(one.title, measure), *figure, *words(best.name, "yes" if ours > theirs else "no")))
    if not rows:
        return None
    return Table(
        "bar",
        f"The paper's best cell and ours: above in {above} of {len(rows)} rows",
        ("Collection", "Measure", "paper's best", "ours", "difference", "method", "above"),
        tuple(rows),
        (
            "Ours is the mean over the splits of the best learned method of the row (gEnM.BAT, gEnM.ON, "
            "gEnM.IP, auto, UnsEnM), as the paper's is the best of its columns. The rankers are our own, so "
            "this compares whole systems, not algorithms.",
        ),
    )


def rivals_table(found: Found) -> Table:
    """Return the supervised methods against the best single ranker, EnM's boosting stage and full EnM."""
    rows = []
    for one in found:
        for name in SUPERVISED:
            method = one.methods[name]
            cells: list[Cell] = [*words(one.title, name), *figures([float(method.mean[0])])]
            for rival in (BEST_SINGLE, BOOSTING):
                test = contrast(method, one.methods[rival])
                p = test.p_values["wilcoxon"]
                cells += figures([test.difference], "+.4f", strong=[0] if test.difference > 0 and p < 0.05 else [])
                cells += figures([p], ".2g")
            test = contrast(method, one.methods[ENM])
            cells += figures([test.difference], "+.4f")
            cells += [Cell(f"{test.low:+.4f} to {test.high:+.4f}", number=True)]
            cells += figures([test.p_values["wilcoxon"]], ".2g")
            rows.append(tuple(cells))
    columns = (
        "Collection", "Method", "MAP", "over best single ranker", "p", "over boosting stage", "p ",
        "over full EnM", "95 % interval", "p  ",
    )  # fmt: skip
    return Table(
        "rivals",
        "Supervised methods against single rankers and EnM: differences of held-out MAP",
        columns,
        tuple(rows),
        (
            "Per-query values averaged over the splits; p by the two-sided Wilcoxon signed-rank test, not "
            "corrected for the number of rows; interval by the bootstrap over queries. Bold: above, at 95 %. "
            "The single ranker is the best of the training fold, so it is as honest as what it is compared "
            "with.",
        ),
    )


class AgainstRules(NamedTuple):
    """How a method stands against the best rule of fusion, in MAP."""

    rule: str
    difference: float

    @property
    def as_good(self) -> bool:
        """Whether it is at least as good, to the four places that are shown."""
        return round(self.difference, 4) >= 0.0


def against_rules(one: CollectionResult, name: str) -> AgainstRules:
    """Compare a method with the rule that turned out best on this collection."""
    reached = {rule: float(one.methods[rule].mean[0]) for rule in RULES if rule in one.methods}
    best = max(reached, key=reached.__getitem__)
    return AgainstRules(best, float(one.methods[name].mean[0]) - reached[best])


def unsupervised_table(found: Found) -> Table:
    """Return UnsEnM against the rules that need no labels either."""
    rows = []
    for one in found:
        shown = [float(one.methods[name].mean[0]) for name in (UNS, UNS_Z, *RULES, UNIFORM)]
        raw, standard = against_rules(one, UNS), against_rules(one, UNS_Z)
        test = contrast(one.methods[UNS_Z], one.methods[standard.rule])
        rows.append((
            *words(one.title), *figures(shown), *words(standard.rule),
            *figures([raw.difference, standard.difference], "+.4f"),
            *figures([test.p_values["wilcoxon"]], ".2g"), *words("yes" if standard.as_good else "no"),
        ))  # fmt: skip
    return Table(
        "unsupervised",
        "Without labels: UnsEnM against rules of fusion, MAP",
        (
            "Collection", f"{UNS}, raw", UNS_Z, *RULES, UNIFORM, "best rule", "raw, difference",
            "z-scores, difference", "p", "at least as good",
        ),
        tuple(rows),
        (
            "The best rule is chosen with a look at the labels, which flatters the rules. UnsEnM is fitted on "
            "all queries without their labels, as in the paper: on raw cosines like the other rows of the paper's "
            "table, and on z-scores, as genm fit does without judgments; p and the last column are of the latter. "
            "Its constants were chosen on these collections, see docs/unsupervised.md. Uniform weights on raw "
            "cosines are no rule of that kind: they owe what they reach to how far apart each ranker's cosines "
            "happen to lie.",
        ),
    )  # fmt: skip


def more_table(found: Found, names: Sequence[str]) -> Table | None:
    """Return what an ensemble with further rankers reaches; None where there is none."""
    found = [one for one in found if one.more]
    if not found:
        return None
    return Table(
        "more-rankers",
        "With BM25 and dense rankers: held-out MAP",
        ("Method", *(one.title for one in found)),
        spread_rows(found, names, 0, lambda one: one.more),
        (
            "Rankers: " + "; ".join(f"{one.title}: {', '.join(one.more_rankers)}" for one in found) + ".",
            "gEnM.BAT climbs from the best binary start of the training fold. BM25's scores are no cosines, so "
            "every list is scaled to 0 to 1 (min-max), for UnsEnM to z-scores, and beta follows the spread of the "
            "scores. Bold: the best of the column. For orientation: published MAP on CACM is .312 for BM25 and "
            ".364 with feedback.",
        ),
    )


def weights_table(found: Found, names: Sequence[str]) -> Table:
    """Return the mean weights that the methods learned."""
    rows = []
    for one in found:
        for name in names:
            weights = one.methods[name].weights
            if weights.size:
                rows.append((*words(one.title, name), *figures(weights.mean(axis=(0, 1)).tolist(), ".3f")))
    rankers = found[0].aligned.rankers if found else ()
    return Table(
        "weights",
        "Weights, averaged over splits and folds",
        ("Collection", "Method", *rankers),
        tuple(rows),
        ("Raw cosines of different rankers have different spreads: a small weight may carry a large part.",),
    )
