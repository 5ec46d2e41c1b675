"""`genm explain`: what each ranker contributes to the measure, to a query, to a document."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

import genm
from genm.cli import console, options
from genm.cli import query_weights as by_query
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.formatting import p_text
from genm.io import write_text

_BAR, _STRIP = 16, 25
_MOST_PAIRS = 10

TEXT = """Show what each ranker contributes: its share of the measure, and what is lost without it.

Every subset of the rankers is trained again and measured on held-out queries. All subsets of up to 12 rankers are
evaluated; for more rankers, --orders are sampled. With --query, the model's weights explain one query: what each
ranker gained or lost, and each document's score as the sum of the rankers' contributions.

With --groups, or --queries and --group-by, the question is another: whether groups of queries differ at all.
Weights by group are learned beside the global ones and compared with them on held-out queries. A model with rules
or a column needs --queries alone."""
EXAMPLES = (
    "genm explain --model model.json --qrels qrels.txt bm25=b.trec dense=d.trec",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --plot worth.svg",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --query 12 --top 5",
    "genm explain --model m.json a.trec b.trec --query 12 --doc d034",
    "genm explain --model m.json --qrels q.txt --groups g.tsv a.trec b.trec",
)


def as_json(model: "genm.Model", found: "genm.explain.Explanation") -> dict[str, Any]:
    """Return everything that is shown, as a JSON object, query by query."""
    worth, gains = found.worth, found.gains
    weights = dict(zip(model.rankers, model.weights, strict=True))
    values = zip(gains.queries, gains.value.tolist(), gains.gain.tolist(), strict=True)
    return {
        "measure": str(worth.measure),
        "method": worth.method,
        "queries": worth.n_queries,
        "folds": worth.folds,
        "subsets": worth.n_subsets,
        "orders": worth.n_orders,
        "confidence": worth.confidence,
        "margin": worth.margin,
        "held_out": worth.value,
        "held_out_of_fit": found.fit_held_out,
        "rankers": {
            part.name: {
                "weight": weights[part.name],
                "verdict": genm.explain.verdict_of(part.loss, worth.margin),
                "alone": part.alone,
                "shapley": _figure(part.shapley),
                "sampling_error": part.sampling_error,
                "loss_without": {**_figure(part.loss), "p_corrected": part.p},
            }
            for part in worth.rankers
        },
        "pairs": [
            {"rankers": [a, b], "rank_correlation": r, "overlap": {"10": top, "100": more}}
            for a, b, r, top, more in _pairs(worth)
        ],
        "greedy": _choice(worth.greedy),
        "exhaustive": None if worth.exhaustive is None else _choice(worth.exhaustive),
        "by_query": {
            query: {"value": value, "gain": dict(zip(gains.rankers, gain, strict=True))}
            for query, value, gain in values
        },
        "sentences": genm.explain.sentences(worth),
    }


def as_tsv(model: "genm.Model", found: "genm.explain.Explanation") -> Iterator[tuple[str, ...]]:
    """Yield the figure's name, the ranker it belongs to, and its value."""
    worth, gains = found.worth, found.gains
    yield "held_out", str(worth.measure), f"{worth.value:.6f}"
    if found.fit_held_out is not None:
        yield "held_out_of_fit", str(worth.measure), f"{found.fit_held_out:.6f}"
    for part, weight in zip(worth.rankers, model.weights, strict=True):
        yield "weight", part.name, repr(weight)
        yield "alone", part.name, f"{part.alone:.6f}"
        for name, figure in (("shapley", part.shapley), ("loss", part.loss)):
            yield name, part.name, f"{figure.value:.6f}"
            yield f"{name}.low", part.name, f"{figure.low:.6f}"
            yield f"{name}.high", part.name, f"{figure.high:.6f}"
            yield f"{name}.joint_low", part.name, f"{figure.joint_low:.6f}"
            yield f"{name}.joint_high", part.name, f"{figure.joint_high:.6f}"
        yield "shapley.sampling_error", part.name, f"{part.sampling_error:.6f}"
        yield "loss.p", part.name, f"{part.p:.6g}"
        left_out = genm.explain.verdict_of(part.loss, worth.margin) in ("hurts", "not needed")
        yield "leave_out", part.name, str(int(left_out))
    for a, b, correlation, top, more in _pairs(worth):
        yield "rank_correlation", f"{a}/{b}", f"{correlation:.6f}"
        yield "overlap.10", f"{a}/{b}", f"{top:.6f}"
        yield "overlap.100", f"{a}/{b}", f"{more:.6f}"
    for choice in (worth.greedy, worth.exhaustive):
        if choice is not None:
            yield f"smallest.{choice.how}", ",".join(choice.rankers), f"{choice.value:.6f}"
    for query, row in zip(gains.queries, gains.gain.tolist(), strict=True):
        for name, gain in zip(gains.rankers, row, strict=True):
            yield f"gain.{query}", name, f"{gain:.6f}"


def tables(model: "genm.Model", found: "genm.explain.Explanation") -> None:
    """Print the tables with small charts, and sentences that say what they mean."""
    worth, gains, known = found.worth, found.gains, found.fit_held_out
    measure = str(worth.measure)
    seen = f"{worth.n_subsets} subsets" if worth.n_orders is None else f"{worth.n_orders} orders"
    differs = known is not None and f"{known:.4f}" != f"{worth.value:.4f}"
    console.print_lines([
        f"{measure} {worth.value:.4f} held out, {len(worth.rankers)} rankers by '{worth.method}'; "
        f"{seen}, {worth.n_queries:,} queries, {worth.folds} folds",
        *([f"{measure} {known:.4f} held out as genm fit measured it, learning more thoroughly"] if differs else []),
        "",
    ])  # fmt: skip
    _shares(model, worth)
    _losses(worth)
    rows = [(f"{a} and {b}", f"{r:+.2f}", f"{top:.0%}", f"{more:.0%}") for a, b, r, top, more in _pairs(worth)]
    left_out = f"; the {_MOST_PAIRS} most similar of {len(rows)} pairs" if len(rows) > _MOST_PAIRS else ""
    header = ["pair", "rank correlation", "top 10 shared", "top 100 shared"]
    console.print_table(f"Similarity of the rankings{left_out}", header, rows[:_MOST_PAIRS])
    _by_query(gains)
    for sentence in genm.explain.sentences(worth):
        console.print_text(sentence)


def _shares(model: "genm.Model", worth: "genm.explain.Worth") -> None:
    weights = dict(zip(model.rankers, model.weights, strict=True))
    most = max(1e-12, *(part.shapley.value for part in worth.rankers))
    level = f"{worth.confidence:.6g} interval".removeprefix("0")
    header = ["ranker", "weight", "alone", "Shapley", level, " " * _BAR]
    sampled = worth.n_orders is not None
    rows = []
    for part in sorted(worth.rankers, key=lambda part: -part.shapley.value):
        value = f"{part.shapley.value:.4f}" + (f" ±{part.sampling_error:.4f}" if sampled else "")
        cells = (
            f"{weights[part.name]:.4f}",
            f"{part.alone:.4f}",
            value,
            _between(part.shapley.low, part.shapley.high),
        )
        rows.append((part.name, *cells, _bar(part.shapley.value / most)))
    note = "; ± is the standard error of sampling" if sampled else ""
    console.print_table(f"Shapley values: shares of the measure, which sum to it{note}", header, rows)


def _losses(worth: "genm.explain.Worth") -> None:
    low = min(0.0, *(part.loss.joint_low for part in worth.rankers))
    high = max(0.0, *(part.loss.joint_high for part in worth.rankers))
    header = ["ranker", "lost", "joint interval", "wilcox", " " * _STRIP]
    rows = []
    for part in sorted(worth.rankers, key=lambda part: -part.loss.value):
        mark = "*" if genm.explain.verdict_of(part.loss, worth.margin) in ("keep", "hurts") else " "
        between, strip = (part.loss.joint_low, part.loss.joint_high), _strip(part.loss, low, high)
        rows.append(
            (
                part.name,
                f"{_signed(part.loss.value)}{mark}",
                _between(*between),
                p_text(part.p),
                strip,
            )
        )
    console.print_table("Loss without the ranker, with the others trained again", header, rows)


def _by_query(gains: "genm.explain.QueryGains") -> None:
    header = ["ranker", "mean", "helped", "hurt", "equal", "helped most", "hurt most"]
    rows, gain, ids = [], gains.gain, list(gains.queries)
    for k, (name, mean) in enumerate(zip(gains.rankers, gains.mean_gain().tolist(), strict=True)):
        column = gain[:, k]
        counts = [f"{int(n):,}" for n in ((column > 0).sum(), (column < 0).sum(), (column == 0).sum())]
        best, worst = int(column.argmax()), int(column.argmin())
        ends = [
            f"{ids[q]} {column[q]:+.3f}" if column[q] * sign > 0 else "" for q, sign in ((best, 1), (worst, -1))
        ]
        rows.append((name, _signed(mean), *counts, *ends))
    title = f"On these queries, with the model's weights: {gains.measure} with the ranker minus without it"
    console.print_table(title, header, rows)


def query_json(model: "genm.Model", found: "genm.explain.QueryExplanation") -> dict[str, Any]:
    """Return one query's explanation as a JSON object."""
    gains = found.gains
    judged: dict[str, Any] = {}
    if gains is not None:
        judged = {
            "measure": str(gains.measure),
            "value": float(gains.value[0]),
            "gain": dict(zip(gains.rankers, gains.gain[0].tolist(), strict=True)),
        }
    return {
        "query": found.query_id,
        "weights": dict(zip(model.rankers, found.weights, strict=True)),
        **judged,
        "documents": [
            {
                "doc": one.doc_id,
                "rank": one.rank,
                "score": one.score,
                "relevance": one.relevance,
                "contributions": dict(zip(model.rankers, one.contributions, strict=True)),
                "ranks": dict(zip(model.rankers, one.ranks, strict=True)),
            }
            for one in found.documents
        ],
    }


def query_tsv(model: "genm.Model", found: "genm.explain.QueryExplanation") -> Iterator[tuple[str, ...]]:
    """Yield one query's explanation: the figure's name, the ranker or document, its value."""
    gains = found.gains
    if gains is not None:
        yield f"value.{gains.measure}", found.query_id, f"{gains.value[0]:.6f}"
        for name, gain in zip(gains.rankers, gains.gain[0].tolist(), strict=True):
            yield "gain", name, f"{gain:.6f}"
    for one in found.documents:
        yield "score", one.doc_id, repr(one.score)
        for name, part in zip(model.rankers, one.contributions, strict=True):
            yield f"contribution.{one.doc_id}", name, repr(part)


def query_tables(model: "genm.Model", found: "genm.explain.QueryExplanation") -> None:
    """Print what each ranker contributed to one query and to its documents."""
    query, gains = found.query_id, found.gains
    if gains is not None:
        header = ["ranker", "weight", f"{gains.measure} without it", "gained"]
        rows = [
            (name, f"{weight:.4f}", f"{gains.without[0, k]:.4f}", _signed(gains.gain[0, k]))
            for k, (name, weight) in enumerate(zip(model.rankers, found.weights, strict=True))
        ]
        value = f"{gains.measure} {gains.value[0]:.4f}"
        title = f"Query {query}: {value}; without a ranker, the other weights keep their proportions"
        console.print_table(title, header, rows)
    header = ["", "document", "grade", "score", *(f"{name} (rank)" for name in model.rankers)]
    documents: list[tuple[str, ...]] = []
    for one in found.documents:
        parts = [
            f"{part:.4f} ({'-' if rank is None else rank})"
            for part, rank in zip(one.contributions, one.ranks, strict=True)
        ]
        grade = "" if one.relevance is None else f"{one.relevance}"
        documents.append((f"{one.rank}", one.doc_id, grade, f"{one.score:.4f}", *parts))
    console.print_table(
        f"Query {query}: the score is the sum of the rankers' contributions", header, documents, left=2
    )
    if any(rank is None for one in found.documents for rank in one.ranks):
        console.print_text("(-): the ranker did not return the document; the model's rule for that applies.")


def _figure(figure: "genm.explain.Figure") -> dict[str, Any]:
    return {
        "value": figure.value,
        "interval": [figure.low, figure.high],
        "joint_interval": [figure.joint_low, figure.joint_high],
    }


def _choice(choice: "genm.explain.Choice") -> dict[str, Any]:
    return {
        "rankers": list(choice.rankers),
        "held_out": choice.value,
        "difference": choice.difference,
        "p": choice.p,
        "loses_at_most": choice.bound,
        "looks": choice.n_looks,
    }


def _pairs(worth: "genm.explain.Worth") -> list[tuple[str, str, float, float, float]]:
    """Return the similarity of each pair of rankers, the most similar first."""
    agreement, names = worth.agreement, worth.agreement.rankers
    near, far = agreement.overlap
    pairs = [
        (names[a], names[b], float(agreement.correlation[a, b]), float(near[a, b]), float(far[a, b]))
        for a in range(len(names))
        for b in range(a + 1, len(names))
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


def _signed(value: float) -> str:
    return genm.explain.losses.signed(value)


def _between(low: float, high: float) -> str:
    return f"{_signed(low)} {_signed(high)}"


def _bar(share: float) -> str:
    """Return a bar as long as the share, to an eighth of a letter."""
    eighths = round(max(share, 0.0) * _BAR * 8)
    if not console.can_print("█▏"):
        return ("#" * round(eighths / 8)).ljust(_BAR)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()).ljust(_BAR)


def _strip(figure: "genm.explain.Figure", low: float, high: float) -> str:
    """Return the joint interval on a line from low to high, with its value and where 0 is."""
    fine = console.can_print("├─┤●│")
    left, line, right, dot, zero = "├─┤●│" if fine else "|-|o:"
    scale = (_STRIP - 1) / max(high - low, 1e-12)

    def place(x: float) -> int:
        return min(max(round((x - low) * scale), 0), _STRIP - 1)

    cells = [" "] * _STRIP
    cells[place(0.0)] = zero
    begin, end = place(figure.joint_low), place(figure.joint_high)
    for c in range(begin, end + 1):
        if cells[c] == " ":
            cells[c] = line
    cells[begin], cells[end] = left, right
    cells[place(figure.value)] = dot
    return "".join(cells)


def explain(
    runs: options.Runs,
    model: Annotated[str, typer.Option(help="A model file of genm fit.", metavar="FILE")],
    qrels: Annotated[str | None, typer.Option(help="Judgments; optional with --query.", metavar="FILE")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Explain this query.", metavar="QUERY")] = None,
    doc: Annotated[
        str | None, typer.Option("--doc", help="With --query: explain this document.", metavar="DOC")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="With --query: explain the top N (10).", metavar="N", min=1)
    ] = None,
    groups: options.GroupFile = None,
    queries: options.QueryFile = None,
    group_by: options.GroupBy = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", help="Measure; default: the model's.", metavar="MEASURE"),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method; default: the model's.", metavar="NAME")] = None,
    query_weights: Annotated[
        str | None, typer.Option(help="Query weights, if genm fit used them.", metavar="FILE")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Folds of the cross-validation; default: the model's.", metavar="N", min=2)
    ] = None,
    orders: Annotated[int | None, typer.Option(help="Number of orders to sample.", metavar="N")] = None,
    confidence: Annotated[float, typer.Option(help="Level of intervals and tests.", metavar="SHARE")] = 0.95,
    margin: Annotated[float, typer.Option(help="A loss below this is negligible.", metavar="NUMBER")] = 0.005,
    seed: Annotated[
        int | None, typer.Option(help="Seed of folds and orders; default: the model's.", metavar="N", min=0)
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Draw the figures into this SVG.", metavar="FILE")] = None,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
) -> None:
    """Read, align as the model does, explain, print and draw."""
    _check_options(qrels, query, doc, top, plot)
    by_group = query is None and any(given is not None for given in (groups, queries, group_by))
    _check_groups(query, group_by, plot, by_group=by_group)
    names = options.named_paths(runs, qrels, query_weights, groups, queries)
    if plot == options.STDIN:
        raise InputError("--plot -: a picture is written to a file. Name one, such as worth.svg.")
    options.check_output(plot, (*names.values(), qrels, query_weights, model, groups, queries))
    learned = genm.load_model(model)
    genm.model.check_rankers(learned, tuple(names), place=model)
    if plot is not None:
        genm.plotting.new_figure(1.0, 1.0)  # a missing extra is an error before the long work, not after it
    with console.progress_bars() as progress:
        judged = (
            None
            if qrels is None
            else options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        )
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = genm.align_runs(
            {name: loaded[name] for name in learned.rankers},
            judged,
            normalize=learned.normalizers,
            depth=learned.depths,
            query_weights=None if query_weights is None else genm.read.read_query_weights(query_weights),
            progress=progress,
        )
        for run in loaded.values():
            console.say_notes(run.notes)
        console.say_notes((*(() if judged is None else judged.notes), *aligned.notes))
        group_of, columns = options.read_query_files(groups, queries)
        if by_group:
            compared = genm.explain.explain_groups(
                learned,
                aligned,
                groups=group_of,
                queries=columns,
                group_by=group_by,
                measure=measure,
                method=method,
                folds=5 if folds is None else folds,
                seed=seed or 0,
                progress=progress,
            )
            console.say_notes(compared.notes)
            console.show(
                output,
                json=lambda: by_query.as_json(compared.model, compared.evidence),
                tsv=lambda: by_query.as_tsv(compared.model, compared.evidence),
                table=lambda: by_query.table(compared.model, compared.evidence),
            )
            return
        if query is not None:
            one = genm.explain.explain_query(
                learned,
                aligned,
                query,
                doc_id=doc,
                top=10 if top is None else top,
                measure=measure,
                queries=columns,
                groups=group_of,
            )
            console.say_notes(one.notes)
            console.show(
                output,
                json=lambda: query_json(learned, one),
                tsv=lambda: query_tsv(learned, one),
                table=lambda: query_tables(learned, one),
            )
            return
        found = genm.explain.explain_model(
            learned,
            aligned,
            measure=measure,
            method=method,
            folds=folds,
            orders=orders,
            confidence=confidence,
            margin=margin,
            seed=seed,
            progress=progress,
        )
        console.say_notes(found.notes)
        console.show(
            output,
            json=lambda: as_json(learned, found),
            tsv=lambda: as_tsv(learned, found),
            table=lambda: tables(learned, found),
        )
        if plot is not None:
            write_text(plot, genm.explain.draw_worth(found.worth))
            console.say(f"wrote {plot}")


def _check_options(
    qrels: str | None, query: str | None, doc: str | None, top: int | None, plot: str | None
) -> None:
    """Refuse options that contradict each other, or that nothing would read."""
    if query is None and (doc is not None or top is not None):
        option = "--doc" if doc is not None else "--top"
        raise InputError(f"{option} explains documents of one query. Name it: --query QUERY.")
    if doc is not None and top is not None:
        raise InputError("--doc explains one document and --top several. Leave one of them out.")
    if query is not None and plot is not None:
        raise InputError("--plot draws figures over all queries. Leave --query out.")
    if query is None and qrels is None:
        raise InputError("expected --qrels FILE: contributions are measured on judgments. Give them, or --query.")


def _check_groups(query: str | None, group_by: list[str] | None, plot: str | None, *, by_group: bool) -> None:
    """Refuse options that the comparison of groups does not read."""
    if by_group and plot is not None:
        raise InputError("--plot draws what rankers are worth, not groups. Leave it out.")
    if query is not None and group_by:
        raise InputError("--group-by compares groups over all queries. Leave --query out, or --group-by.")


command = make_verb(explain, TEXT, EXAMPLES)
