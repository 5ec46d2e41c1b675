"""The sections of the report's page. Every number in a chart that a script draws stands in a table as well."""

from collections.abc import Sequence

from genm.formatting import NONE, measure_name, n_queries, p_value, percent
from genm.report.html import bar, between, decimals, escape, facts, folded, isolated, signed, table, with_minus
from genm.report.payload import Gain, Report, System, WeightLine, WeightRow

_TAGS = {
    "better": ("▲", "Significant gain", "good"),
    "perhaps better": ("◆", "Not proven", "warn"),
    "equal": ("■", "No difference", "plain"),
    "perhaps worse": ("■", "No significant gain", "plain"),
    "worse": ("▼", "Significant loss", "bad"),
}
_LUCK = {
    "better": "significant",
    "perhaps better": "not significant",
    "equal": "no query differs",
    "perhaps worse": "not significant",
    "worse": "significantly worse",
}
_LEVELS = {"warning": "Warning", "info": "Note"}
_EVIDENCE = {"read": "read from the file beside the model", "computed": "computed for this report"}
_DATA = {
    True: "the same that the model was learned from",
    False: "<strong>not</strong> those that the model was learned from",
}

_STATIC_ROWS = 100


def headline(report: Report) -> str:
    """Say first how much better the fusion is, and whether that is more than luck."""
    head, name = report["headline"], measure_name(report["measure"])
    gain = head["gains"][0]
    sign, tag, colour = _TAGS[gain["outcome"]]
    subject = "Equal weights" if report["made"]["method"] == "equal" else "The learned weights"
    difference = f"{signed(gain['difference'])}\u00a0{escape(name)}"
    told = f" ({difference})" if float(f"{gain['difference']:.4f}") else ""
    words = {
        "better": f"{subject} are better: {difference} over the {escape(gain['over'])}",
        "perhaps better": f"No significant gain{told}: keep what you have, or judge more",
        "equal": "No difference: keep what you have",
        "perhaps worse": f"No significant gain{told}: keep what you have",
        "worse": f"{subject} are worse{told}: keep what you have",
    }[gain["outcome"]]
    low, high = head["interval"]
    spread = (
        "" if low is None or high is None else f" ({percent(head['confidence'])} interval {low:.4f} to {high:.4f})"
    )
    return (
        '<section id="result" aria-labelledby="result-title" class="hero">'
        f'<p class="tag {colour}"><span aria-hidden="true">{sign}</span> {tag}</p>'
        f'<h1 id="result-title">{words}</h1>'
        f'<p class="verdict">{escape(with_minus(head["verdict"]))}</p>'
        f'<div class="cards">{"".join(_gain_card(gain, name, head["confidence"]) for gain in head["gains"])}</div>'
        f'<p class="note">Held-out {escape(name)} of the fusion: '
        f"<strong>{decimals(head['held_out'])}</strong>{spread}, each query measured by weights learned from the "
        f"other folds ({head['folds']} folds, {n_queries(report['n_queries'])}). On the queries they were learned "
        f"from, the weights reach {decimals(head['train'])}. "
        f"Best single ranker on all queries: {isolated(head['best_single'])}.</p>"
        "</section>"
    )


def _gain_card(gain: Gain, name: str, confidence: float) -> str:
    total = gain["n_better"] + gain["n_equal"] + gain["n_worse"]
    pieces = [("good", gain["n_better"]), ("flat", gain["n_equal"]), ("bad", gain["n_worse"])]
    return (
        f'<article class="card"><h2>Over {isolated(gain["over"])}</h2>'
        f'<p class="figure">{signed(gain["difference"])} <small>{escape(name)}</small></p>'
        f"<p>{percent(confidence)} interval {between(gain['low'], gain['high'])}<br>"
        f"{p_value(gain['p'])}, {_LUCK[gain['outcome']]}</p>"
        f"{bar(pieces, total)}"
        f'<p class="note">{n_queries(gain["n_better"])} better, {gain["n_worse"]} worse, {gain["n_equal"]} equal'
        "</p></article>"
    )


def weights(report: Report) -> str:
    """Show each weight with its spread over refits and how far it may move without loss."""
    spread = report["spread"]
    held = any(row["before"] for row in spread["rows"])
    drawn = {"bootstrap": "refits", "folds": "folds", "none": ""}[spread["kind"]]
    head = ["Ranker", "Weight", f"95% of {drawn}" if drawn else "Spread", "Plateau", "Lost without it"]
    if held:
        head.insert(3, "Before holding back")
    rows = [_weight_row(row, held=held) for row in spread["rows"]]
    return (
        '<section id="weights" aria-labelledby="weights-title"><h2 id="weights-title">Weights</h2>'
        "<p>How much each ranker counts, and how sure that is. A weight whose spread is wide, or whose plateau is "
        "long, is not known better than that.</p>"
        '<figure class="chart" id="chart-weights"></figure>'
        f"{table(_weights_caption(report, held=held), head, rows, numbers=set(range(1, len(head))))}"
        f'<p class="note">{escape(spread["note"])}</p></section>'
    )


def _weights_caption(report: Report, *, held: bool) -> str:
    spread, name = report["spread"], escape(measure_name(report["measure"]))
    said = ["Weights."]
    if spread["plateau_loss"] is not None:
        said.append(
            f"Plateau: between these the weight may stand, the others in proportion, and training {name} falls by "
            f"at most {spread['plateau_loss']:g}."
        )
    if held:
        said.append(
            f"Before holding back: 95% of what the refits had learned before they, like the fit itself, were moved "
            f"{percent(spread['held_back'])} of the way to simple weights."
        )
    if any(row["gain"] is not None for row in spread["rows"]):
        said.append(f"Lost without it: training {name} that the others alone, in proportion, do not reach.")
    return " ".join(said)


def _weight_row(row: WeightRow, *, held: bool) -> Sequence[str]:
    cells = [_range(row["quantiles"]), _range(row["plateau"]), signed(row["gain"])]
    if held:
        cells.insert(1, _range(row["before"]))
    return (isolated(row["ranker"]), decimals(row["weight"]), *cells)


def _range(values: Sequence[float] | None) -> str:
    return f"{values[0]:.3f} to {values[-1]:.3f}" if values else NONE


def measures(report: Report) -> str:
    """Show the means of every measure for every ranker, rule and fusion."""
    found = report["measures"]
    fair = [system for system in found["systems"] if system["held_out"]]
    best = [max((round(s["values"][i], 4) for s in fair), default=None) for i in range(len(found["measures"]))]
    rows, marked = [], {}
    for number, system in enumerate(found["systems"]):
        rows.append((_system_cell(system), *(_value(system, i, best[i]) for i in range(len(best)))))
        if system["kind"] == "fused":
            marked[number] = "chosen" if system["held_out"] else "aside"
    n_all, n_main = found["n_queries"], found["main_n_queries"]
    over = f"Means over {n_queries(n_main)}" if n_all == n_main else (
        f"Means over {n_all} of {n_main} queries; the first column over all"
    )  # fmt: skip
    caption = (
        f"{over}. Best in bold with a star, among those measured on queries that had no part in choosing them."
    )
    head = ("", *(escape(measure_name(m)) for m in found["measures"]))
    numbers = set(range(1, len(head)))
    return (
        '<section id="measures" aria-labelledby="measures-title"><h2 id="measures-title">All measures</h2>'
        f"{table(caption, head, rows, numbers=numbers, marked=marked, identity='measures-table')}"
        f"{sampled(report, 'measures')}</section>"
    )


def _system_cell(system: System) -> str:
    kind = {"ranker": "ranker", "rule": "needs no learning", "best-single": "", "fused": "fusion"}[system["kind"]]
    told = kind if system["held_out"] else "not held out"
    return isolated(system["label"]) + (f' <span class="kind">{told}</span>' if told else "")


def _value(system: System, column: int, best: float | None) -> str:
    value = system["values"][column]
    if system["held_out"] and best is not None and round(value, 4) == best:
        return f'<strong>{decimals(value)}<span class="star" title="best">★</span></strong>'
    return decimals(value)


def data(report: Report) -> str:
    """Show what the runs cover and what a reader should know about the data."""
    found = report["coverage"]
    head = ("Ranker", "Normaliser", "Depth", "Lowest", "Median", "Highest", "Missing", "Tied", "Unjudged in top 10")
    rows = [
        (
            isolated(row["ranker"]),
            escape(row["normalizer"]),
            "all" if row["depth"] is None else f"{row['depth']:,}",
            with_minus(f"{row['low']:.4g}"),
            with_minus(f"{row['median']:.4g}"),
            with_minus(f"{row['high']:.4g}"),
            percent(row["missing"], 1),
            percent(row["ties"], 1),
            percent(row["unjudged"], 1),
        )
        for row in found["rankers"]
    ]
    notes = [
        f'<li class="{warning["level"]}"><strong>{_LEVELS[warning["level"]]}:</strong> '
        f"{escape(warning['text'])}</li>"
        for warning in sorted(found["warnings"], key=lambda warning: warning["level"] != "warning")
    ]
    notes += [
        f'<li class="info"><strong>Sampled:</strong> {escape(s["sentence"])}</li>' for s in report["sampling"]
    ]
    told = f'<ul class="notes">{"".join(notes)}</ul>' if notes else "<p>Nothing to warn about.</p>"
    fused = found["unjudged_fused"]
    caption = (
        "Coverage. Missing: share of all documents that any ranker returned but this one did not; tied: share with "
        "the score of another document of the same query."
    )
    return (
        '<section id="data" aria-labelledby="data-title"><h2 id="data-title">Data</h2>'
        f"{told}{table(caption, head, rows, numbers={2, 3, 4, 5, 6, 7, 8})}"
        f'<p class="note">{n_queries(found["n_queries"])}; {found["n_without_documents"]} without documents, '
        f"{found['n_without_relevant']} without a relevant document."
        f"{'' if fused is None else f' In the top 10 of the fusion {percent(fused, 1)} are unjudged.'}</p>"
        f"{_overlap(report)}</section>"
    )


def sampled(report: Report, *parts: str) -> str:
    """Say where a part of the report shows some of the queries only."""
    told = [f'<p class="note">{escape(s["sentence"])}</p>' for s in report["sampling"] if s["part"] in parts]
    return "".join(told)


def _overlap(report: Report) -> str:
    names, shares = [isolated(name) for name in report["rankers"]], report["coverage"]["overlap"]
    if len(names) < 2 or not shares:
        return ""
    rows = [
        (
            name,
            *(
                NONE if i == j else f'<span class="heat h{round(10 * s)}">{percent(s)}</span>'
                for j, s in enumerate(row)
            ),
        )
        for i, (name, row) in enumerate(zip(names, shares, strict=True))
    ]
    caption = "Overlap of the top 10: documents that both rankers return, of those that either does."
    return table(caption, ("", *names), rows, numbers=set(range(1, len(names) + 1)))


def made(report: Report) -> str:
    """Show how the report was made, so that it can be made again."""
    found = report["made"]
    pairs = [
        ("Command", f"<pre><code>{escape(found['command'])}</code></pre>"),
        ("Method", f"{escape(found['method'])}, measure {escape(report['measure'])}, seed {found['seed']}"),
        ("Relevance", f"grade {found['relevance_level']} and above"),
        ("Versions", escape(", ".join(f"{name} {version}" for name, version in found["versions"].items()))),
        ("Model fitted with", f"genm {escape(found['fitted_with'])}"),
        ("Evidence", _EVIDENCE[found["evidence"]]),
        ("Data", _DATA[found["matches_training"]]),
        ("Fingerprint", f"<code>{escape(found['fingerprint'])}</code>"),
    ]  # fmt: skip
    pairs += [("Sharpness (beta)", f"{found['beta']:g}")] if found["beta"] is not None else []
    pairs += [("Search engine", escape(found["target"]))] if found["target"] else []
    rows = [
        (
            escape(file["role"]),
            isolated(file["name"]),
            NONE if file["n_bytes"] is None else f"{file['n_bytes']:,}",
            f'<code class="hash">{escape(file["sha256"] or NONE)}</code>',
        )
        for file in found["files"]
    ]
    files = table("Files.", ("Role", "Name", "Bytes", "SHA-256"), rows, numbers={2}) if rows else ""
    return (
        '<section id="made" aria-labelledby="made-title"><h2 id="made-title">How this was made</h2>'
        f"{facts(pairs)}{files}</section>"
    )


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


def _steps_in_words(lines: Sequence[WeightLine]) -> str:
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
