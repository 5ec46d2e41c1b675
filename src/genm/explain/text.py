"""What the figures mean, in sentences that claim no more than the figures do."""

from genm.explain.subset_choice import Choice, names_of
from genm.explain.worth import RankerWorth, Worth


def sentences(worth: Worth) -> list[str]:
    """Say what to keep, what to drop, what is undecided, and which rankers rank alike."""
    ordered = sorted(worth.rankers, key=lambda part: -part.loss.value)
    said = [about_ranker(worth, part) for part in ordered]
    droppable = [part.name for part in ordered if can_be_dropped(worth, part)]
    if len(droppable) > 1:
        said.append(
            f"That holds for each of {names_of(droppable)} by itself, not for all together: they may stand in for "
            f"each other."
        )
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


def can_be_dropped(worth: Worth, part: RankerWorth) -> bool:
    """Return whether it is shown, for all rankers together, that leaving this one out costs next to nothing."""
    return part.loss.joint_high <= worth.margin


def is_needed(part: RankerWorth) -> bool:
    """Return whether the loss without this ranker is significant: its joint interval lies above 0."""
    return part.loss.joint_low > 0.0


def about_ranker(worth: Worth, part: RankerWorth) -> str:
    """Say what leaving one ranker out would do, with the interval that the verdict rests on."""
    measure, loss = str(worth.measure), part.loss
    between = f"joint {worth.confidence:.0%} interval {signed(loss.joint_low)} to {signed(loss.joint_high)}"
    others = [other.name for other in worth.rankers if other.name != part.name]
    beside = f"beside {others[0]}" if len(others) == 1 else "beside the others"
    if is_needed(part):
        return f"Keep {part.name}: {beside} it is worth {signed(loss.value)} {measure} ({between})."
    if loss.joint_high < 0.0:
        rest = f"{others[0]} does" if len(others) == 1 else "the others do"
        return f"Drop {part.name}: {rest} better without it, by {-loss.value:.4f} {measure} ({between})."
    if can_be_dropped(worth, part):
        return (
            f"Drop {part.name}: it costs nothing ({signed(loss.value)} {measure}, {between}; "
            f"less than {worth.margin:g} counts as nothing)."
        )
    return (
        f"{part.name}: too few queries to tell what it is worth {beside} ({signed(loss.value)} {measure}, "
        f"{between})."
    )


def signed(value: float) -> str:
    """Return a difference to four digits with its sign; zero is positive."""
    text = f"{value:+.4f}"
    return "+0.0000" if text == "-0.0000" else text


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
        f"{names_of(choice.rankers)} {enough}: {worth.measure} {choice.value:.4f} against {worth.value:.4f} of "
        f"all, not significantly worse (paired Wilcoxon and t-test, p = {choice.p:.2g} at {level}, "
        f"{choice.how} search)"
    )
    looks = f"chosen out of {choice.n_looks} subsets"
    if is_shown:
        return f"{head}; {looks}, it loses at most {max(choice.bound, 0.0):.4f}."
    return f"{head}; but {looks}, it may lose up to {choice.bound:.4f}: more queries would tell."
