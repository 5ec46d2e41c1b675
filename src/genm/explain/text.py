"""What the figures mean, in sentences that claim no more than the figures do."""

from dataclasses import replace

from genm.explain.losses import about_ranker, not_all_together
from genm.explain.subset_choice import Choice
from genm.explain.worth import Worth
from genm.formatting import listed


def sentences(worth: Worth) -> list[str]:
    """Say what to keep, what to leave out, what is undecided, and which rankers rank alike."""
    ordered = sorted(worth.rankers, key=lambda part: -part.loss.value)
    said = [about_ranker(worth, part) for part in ordered]
    said += not_all_together(replace(worth, rankers=tuple(ordered)))
    agreement = worth.agreement
    for a, b in agreement.alike():
        i, j = agreement.rankers.index(a), agreement.rankers.index(b)
        if agreement.correlation[i, j] > 0.9995 and (agreement.overlap[:, i, j] > 0.9995).all():
            said.append(f"{a} and {b} rank alike, document by document: one of them can carry the weight of both.")
            continue
        said.append(
            f"{a} and {b} rank almost alike: rank correlation {agreement.correlation[i, j]:.2f}, "
            f"{agreement.overlap[0, i, j]:.0%} of their top {agreement.depths[0]} in common."
        )
    choices = [choice for choice in (worth.exhaustive, worth.greedy) if choice is not None]
    if len(choices) > 1 and choices[0].rankers == choices[1].rankers:
        choices = choices[:1]
    return said + [about_choice(worth, choice) for choice in choices]


def about_choice(worth: Worth, choice: Choice) -> str:
    """Say which rankers will do, and what may be lost."""
    level = f"{1.0 - worth.confidence:.2g}"
    if len(choice.rankers) == len(worth.rankers):
        everyone = "Both" if len(worth.rankers) == 2 else f"All {len(worth.rankers)}"
        n_smaller = choice.n_looks - (choice.how == "greedy")  # which looks at the whole, too
        return (
            f"{everyone} stay: each of the {n_smaller} smaller choices looked at, taken by itself, is "
            f"significantly worse (paired Wilcoxon or t-test at {level}, {choice.how} search)."
        )
    is_shown, alone = choice.bound <= worth.margin, len(choice.rankers) == 1
    enough = ("alone " if alone else "") + (("is" if alone else "are") if is_shown else "may be") + " enough"
    head = (
        f"{listed(choice.rankers)} {enough}: {worth.measure} {choice.value:.4f} against {worth.value:.4f} of "
        f"all, not significantly worse (paired Wilcoxon and t-test, p = {choice.p:.2g} at {level}, "
        f"{choice.how} search)"
    )
    looks = f"chosen out of {choice.n_looks} subsets"
    if is_shown:
        return f"{head}; {looks}, it loses at most {max(choice.bound, 0.0):.4f}."
    return f"{head}; but {looks}, it may lose up to {choice.bound:.4f}: more queries would tell."
