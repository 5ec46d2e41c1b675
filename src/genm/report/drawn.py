"""The sections whose charts a script draws: every number in them stands in a table as well."""

from collections.abc import Sequence

from genm.report.html import escape, isolated
from genm.report.markup import between, decimals, folded, signed, table, with_minus
from genm.report.payload import Line, Report
from genm.report.sections import sampled
from genm.report.words import NONE, measure_name

_STATIC_ROWS = 100


def curves(report: Report) -> str:
    """Show precision against recall."""
    if not report["curves"]:
        return ""
    labels = {system["id"]: system["label"] for system in report["measures"]["systems"]}
    head = ("Recall", *(f"{level / 10:.1f}" for level in range(11)))
    rows = [
        (isolated(labels.get(curve["system"], curve["system"])), *(decimals(p, 3) for p in curve["precision"]))
        for curve in report["curves"]
    ]
    numbers = table("Interpolated precision, mean over queries.", head, rows, numbers=set(range(1, 12)))
    inside = f'<figure class="chart"></figure>{folded("Numbers", numbers)}{sampled(report, "curves")}'
    return _drawn("curves", "Precision and recall", "", inside)


def lines(report: Report) -> str:
    """Show the measure along each weight, with its exact steps."""
    if not report["lines"]:
        return ""
    name = escape(_name(report))
    rows = [
        (
            isolated(line["ranker"]),
            decimals(line["weight"]),
            decimals(line["value"]),
            f"{line['best'][0]:.4f} to {line['best'][1]:.4f}",
            decimals(line["best"][2]),
            f"{line['n_steps']:,}",
            "all shown" if line["tolerance"] == 0 else f"joined within {line['tolerance']:.1g}",
        )
        for line in report["lines"]
    ]
    head = ("Ranker", "Weight", f"{name} there", "Best between", f"Best {name}", "Steps", "Drawn")
    intro = (
        f"Training {name} as one weight moves from 0 to 1 and the others keep their proportions."
        + _steps_in_words(report["lines"])
    )
    numbers = table("Along each weight.", head, rows, numbers={1, 2, 3, 4, 5})
    inside = f'<div class="grid"></div>{folded("Numbers", numbers)}{sampled(report, "lines")}'
    return _drawn("lines", f"{name} along each weight", intro, inside)


def _steps_in_words(lines: Sequence[Line]) -> str:
    joined = max(line["tolerance"] for line in lines)
    drawn = f"; neighbours within {joined:.1g} are drawn as one" if joined > 0 else ""
    return (
        " It moves in steps, because a ranking changes only where two documents swap; these are the exact steps, "
        f"not samples{drawn}."
    )


def ternary(report: Report) -> str:
    """Show the measure over all blends of three rankers."""
    found = report["ternary"]
    if found is None:
        return ""
    best = ", ".join(
        f"{isolated(r)} {w:.2f}" for r, w in zip(found["rankers"], found["weights"][found["best"]], strict=True)
    )
    name = escape(_name(report))
    intro = (
        f"Training {name} for every blend of the three rankers: each corner is one ranker alone. Best point of the "
        f"grid: {best}, {name} {decimals(found['values'][found['best']])}; at the learned weights "
        f"{decimals(found['chosen_value'])}."
    )
    return _drawn(
        "ternary", "Map of all weights", intro, f'<figure class="chart"></figure>{sampled(report, "ternary")}'
    )


def learning(report: Report) -> str:
    """Show what more judgments would bring."""
    found = report["learning"]
    if found is None or not found["points"]:
        return ""
    rows = [
        (
            f"{point['n_queries']:.0f}",
            decimals(point["mean"]),
            NONE if point["low"] is None else f"{decimals(point['low'])} to {decimals(point['high'])}",
            signed(point["difference"]),
            between(point["difference_low"], point["difference_high"]),
        )
        for point in found["points"]
    ]
    head = ("Queries learned from", f"Held-out {escape(_name(report))}", "Interval", "Against the last", "Interval")
    numbers = table("Learning curve.", head, rows, numbers={0, 1, 2, 3, 4})
    inside = f'<figure class="chart"></figure>{folded("Numbers", numbers)}'
    return _drawn("learning", "Would more judgments help?", escape(with_minus(found["sentence"])), inside)


def queries(report: Report) -> str:
    """Show on which queries the fusion helps and hurts; without scripts, the extremes as a table."""
    found = report["queries"]
    order = sorted(range(len(found["delta"])), key=lambda i: (-abs(found["delta"][i]), i))[:_STATIC_ROWS]
    order.sort(key=lambda i: (-found["delta"][i], i))
    fused, rival = found["values"]["learned weights"], found["values"][found["rival"]]
    rows = [
        (
            _query_cell(found["query_ids"][i], found["texts"][i] if found["texts"] else ""),
            decimals(fused[i]),
            decimals(rival[i]),
            signed(found["delta"][i]),
            str(found["n_relevant"][i]),
        )
        for i in order
    ]
    name = escape(report["measure"])
    few = (
        f" The {len(rows)} largest differences of {len(found['delta'])}." if len(rows) < len(found["delta"]) else ""
    )
    head = ("Query", f"Fusion ({name})", escape(found["rival"]).capitalize(), "Difference", "Relevant")
    static = table(f"Gains and losses query by query, held out.{few}", head, rows, numbers={1, 2, 3, 4})
    intro = (
        f"Held-out {name} of the fusion minus that of the {escape(found['rival'])}, one bar per query. "
        "Open a query to see what each ranker and the fusion put on top."
    )
    told = sampled(report, "queries", "details")
    inside = f'<figure class="chart"></figure><div id="query-table">{static}</div>{told}'
    return _drawn("queries", "Where it helps and where it hurts", intro, inside)


def _query_cell(query_id: str, text: str) -> str:
    return isolated(query_id) + (f' <span class="text">{isolated(text)}</span>' if text else "")


def _drawn(identity: str, title: str, intro: str, inside: str) -> str:
    """Return a section whose charts a script draws; the tables are there without it."""
    told = f"<p>{intro}</p>" if intro else ""
    off = '<noscript><p class="note">The chart needs JavaScript; its numbers are in the tables.</p></noscript>'
    return (
        f'<section id="{identity}" aria-labelledby="{identity}-title"><h2 id="{identity}-title">{title}</h2>'
        f"{told}{off}{inside}</section>"
    )


def _name(report: Report) -> str:
    return measure_name(report["measure"])
