"""`genm judge`: judgments by people on a page, or by a language model; and what they are worth."""

import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import genm
from genm.cli import console, options
from genm.cli.app import SETTINGS, GroupWithDefault, add_verb, described
from genm.cli.serve import needs_serve_extra
from genm.errors import InputError
from genm.io import opened

if TYPE_CHECKING:
    from genm.judge.llm import LanguageModel
    from genm.judge.session import Pair
    from genm.judge.store import JudgmentStore

TEXT = """Judge documents on a page, one at a time, the most useful one first. `genm judge RUNS` is short for
`genm judge page RUNS`, and with --llm for `genm judge llm RUNS`.

The page shows the query and the document, never scores or rankers. Keys: 0 to 3 grade, u not enough information,
s skip, n note, z undo. Every judgment is on disk before the page says so; start the command again to go on.

Needs the extra serve: pip install 'genm[serve]'"""
EXAMPLES = (
    "genm judge bm25=b.trec dense=d.trec --texts docs.tsv --queries q.tsv",
    "genm judge export judgments.sqlite -o qrels.txt",
    "genm judge agreement judgments.sqlite",
)
LLM = """Ask a language model behind any OpenAI-compatible address. The command first says what it would send, how
much and at what cost, and sends nothing without --yes. Answers are kept: nothing is asked or paid twice.

A key is read from the environment variable that --llm-key names, and is never stored or printed."""

STORE = "judgments.sqlite"

Texts = Annotated[
    str, typer.Option("--texts", help="Texts of the documents: id TAB text, or JSON.", metavar="FILE")
]
Queries = Annotated[str, typer.Option("--queries", help="Texts of the queries, likewise.", metavar="FILE")]
StorePath = Annotated[str, typer.Option("--store", help="The file that keeps the judgments.", metavar="FILE")]
ExistingStore = Annotated[str, typer.Argument(help="The file that keeps the judgments.", metavar="STORE")]
Before = Annotated[
    str | None,
    typer.Option("--qrels", help="Judgments that exist already; they are not asked for.", metavar="FILE"),
]
Compare = Annotated[
    str | None,
    typer.Option("--compare", help="Two systems to tell apart, as A,B; else the weights.", metavar="A,B"),
]


class JudgeVerbs(GroupWithDefault):
    """The verbs of judging; what is no verb is a run to judge, on the page or, with --llm, by a language model."""

    default = "page"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb in front of runs."""
        by_model = any(word == "--llm" or word.startswith("--llm=") for word in args)
        if by_model and args[0] not in self.commands:
            args = ["llm", *args]
        return super().parse_args(ctx, args)


class ExportFormat(StrEnum):
    """What judgments are written as."""

    trec = "trec"
    csv = "csv"
    jsonl = "jsonl"


def _load(
    runs: list[str], texts: str, queries: str, qrels: str | None, store: str
) -> "tuple[dict[str, genm.Run], dict[str, str], dict[str, str], genm.Qrels | None]":
    """Read runs, texts of documents and queries, and earlier judgments; say what is missing."""
    named = options.named_paths(runs, texts, queries, qrels)
    options.check_output(store, (*named.values(), texts, queries, qrels), standard=False)
    with console.progress_bars() as progress:
        loaded = options.read_runs(runs, lenient=False, duplicates="error", progress=progress)
        documents = genm.read.read_texts(texts, progress=progress)
        asked = genm.read.read_texts(queries, progress=progress)
        before = None if qrels is None else options.read_judgments(qrels, lenient=False, progress=progress)
    for run in loaded.values():
        console.say_notes(run.notes)
    wanted = {query for run in loaded.values() for query in run}
    known = wanted & set(asked)
    if not known:
        raise InputError(f"{queries}: expected the text of a query of the runs; found none of {len(wanted):,}.")
    if len(known) < len(wanted):
        console.say(f"note: {len(wanted) - len(known):,} queries of the runs have no text in {queries}; left out.")
    keep = {
        name: genm.Run.from_dict({q: run[q] for q in run if q in known}, name=name) for name, run in loaded.items()
    }
    shown = {doc for run in keep.values() for query in run for doc in run[query]}
    if without := len(shown - set(documents)):
        console.say(
            f"note: {without:,} of {len(shown):,} documents of the runs have no text in {texts}; not shown."
        )
    return keep, documents, asked, before


def page(
    runs: options.Runs,
    texts: Texts,
    queries: Queries,
    store: StorePath = STORE,
    qrels: Before = None,
    compare: Compare = None,
    overlap: Annotated[
        float, typer.Option(help="Share of pairs that two judges see.", metavar="SHARE", min=0.0, max=1.0)
    ] = 0.1,
    level: options.Level = 1,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0: any.", metavar="PORT", min=0, max=65535)] = 0,
    tokens: Annotated[
        str | None, typer.Option(help="The file of tokens; needed beyond this machine.", metavar="FILE")
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--tls-cert", help="The certificate, for HTTPS.", metavar="FILE")
    ] = None,
    private_key: Annotated[str | None, typer.Option("--tls-key", help="Its private key.", metavar="FILE")] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Read, serve until a signal comes."""
    with needs_serve_extra():
        from genm.judge.session import Session
        from genm.judge.standing import assess, order_for
        from genm.judge.store import JudgmentStore
        from genm.serve.judging import serve_judging

    loaded, documents, asked, before = _load(runs, texts, queries, qrels, store)
    systems = None if compare is None else options.split_list([compare])

    def ready(address: str) -> None:
        console.say(f"judge on {address}; Ctrl-C stops. Judgments are kept in {store}")
        if browse:
            webbrowser.open(address)

    with JudgmentStore(store) as kept:
        session = Session(
            kept,
            order_for(loaded, compare=systems, level=level, before=before),
            asked,
            documents,
            assess=partial(assess, loaded, compare=systems or ("learned", "equal"), level=level, before=before),
            overlap=overlap,
            level=level,
        )
        serve_judging(
            session,
            host=host,
            port=port,
            tokens=tokens,
            certificate=certificate,
            private_key=private_key,
            ready=ready,
        )


def llm(
    runs: options.Runs,
    texts: Texts,
    queries: Queries,
    url: Annotated[str, typer.Option("--llm", help="Base address of the API.", metavar="URL")],
    model: Annotated[str, typer.Option("--model", help="Name of the model.", metavar="NAME")],
    key: Annotated[
        str | None, typer.Option("--llm-key", help="Environment variable with the key.", metavar="VARIABLE")
    ] = None,
    n: Annotated[int, typer.Option("--pairs", "-n", help="How many pairs to judge.", metavar="N", min=1)] = 200,
    store: StorePath = STORE,
    qrels: Before = None,
    compare: Compare = None,
    price_in: Annotated[
        float, typer.Option(help="Price of a million tokens sent.", metavar="PRICE", min=0.0)
    ] = 0.0,
    price_out: Annotated[
        float, typer.Option(help="Price of a million tokens received.", metavar="PRICE", min=0.0)
    ] = 0.0,
    budget: Annotated[float | None, typer.Option(help="The most to spend.", metavar="PRICE", min=0.0)] = None,
    concurrency: Annotated[int, typer.Option(help="Requests at a time.", metavar="N", min=1, max=64)] = 4,
    level: options.Level = 1,
    yes: Annotated[bool, typer.Option("--yes", help="Send it; without it, only the plan is shown.")] = False,
    output: console.Output = console.Format.table,
) -> None:
    """Read, plan, say, ask if told to, compare with people."""
    with needs_serve_extra():
        from genm.judge.llm import LanguageModel, judge_by_model, plan_judging
        from genm.judge.standing import order_for, weights_by_source
        from genm.judge.store import JudgmentStore

    settings = LanguageModel(
        url, model, key, price_in=price_in, price_out=price_out, budget=budget, concurrency=concurrency
    )
    settings.check()
    loaded, documents, asked, before = _load(runs, texts, queries, qrels, store)
    systems = None if compare is None else options.split_list([compare])
    with JudgmentStore(store) as kept:
        order = order_for(loaded, compare=systems, level=level, before=before)
        pairs = _chosen(order(kept.judgments(level=level)), kept, settings, documents, n)
        plan = plan_judging(settings, pairs, asked, documents, kept)
        console.say(plan.sentence())
        if not yes:
            console.say("nothing was sent; add --yes to send it")
            return
        with console.progress_bars() as progress:
            outcome = judge_by_model(settings, pairs, asked, documents, kept, progress=progress)
        for pair, reason in list(outcome.failures.items())[:5]:
            console.say(f"note: {' '.join(pair)}: {reason}")
        if outcome.suspicious:
            some = ", ".join(" ".join(pair) for pair in outcome.suspicious[:5])
            console.say(
                f"note: {len(outcome.suspicious):,} documents speak to their reader as an instruction would; their "
                f"grades count with a confidence of at most 0.5. Let a person judge them: {some}"
            )
        if outcome.is_over_budget:
            console.say("note: stopped before the budget would be passed; run it again with more to go on.")
        rows = [
            ("judged", f"{outcome.n_judged:,}"), ("known already", f"{outcome.n_known:,}"),
            ("failed", f"{len(outcome.failures):,}"), ("spent", f"{outcome.spent:.4f}"),
        ]  # fmt: skip
        console.show(
            output,
            json=lambda: asdict(outcome) | {
                "failures": [{"query": q, "document": d, "reason": r} for (q, d), r in outcome.failures.items()]
            },
            tsv=lambda: rows,
            table=lambda: console.print_table("", ["answers", "number"], rows),
        )  # fmt: skip
        weights = weights_by_source(loaded, kept.opinions(), level=level)
        if weights and output is console.Format.table:
            names = list(next(iter(weights.values())))
            cells = [
                (source, *(console.weight_text(by_ranker[name]) for name in names))
                for source, by_ranker in weights.items()
            ]
            console.print_table("weights learned from the pairs that both judged", ["judge", *names], cells)
        if outcome.failures and not outcome.n_judged:
            raise InputError(f"--llm {url}: no pair could be judged. See the notes above.")


def _chosen(
    pairs: "Sequence[Pair]",
    store: "JudgmentStore",
    settings: "LanguageModel",
    documents: Mapping[str, str],
    n: int,
) -> "list[Pair]":
    """Return the pairs to ask about: those that people judged, for the calibration, then the most useful ones."""
    opinions = store.opinions()
    asked = {one.pair for one in opinions if one.source == settings.source}
    people = [one.pair for one in opinions if one.source == "person" and one.grade is not None]
    wanted = [pair for pair in dict.fromkeys((*people, *pairs)) if pair not in asked and pair[1] in documents]
    return wanted[:n]


def export(
    store: ExistingStore,
    path: options.OutputFile = "-",
    form: Annotated[
        ExportFormat, typer.Option("--format", help="trec, csv or jsonl (every opinion).", metavar="FORMAT")
    ] = ExportFormat.trec,
    level: options.Level = 1,
) -> None:
    """Open, settle, write."""
    from genm.judge.store import JudgmentStore, judgments_as

    options.check_output(path, (store,))
    with JudgmentStore(store, create=False) as kept:
        content, judged = judgments_as(kept, form.value, level=level), kept.judgments()
    n, disputed = len(judged), sum(one.is_disputed for one in judged)
    by_model = [one for one in judged if one.source not in ("person", "decided")]
    if by_model and form is ExportFormat.trec:
        console.say(
            f"note: {len(by_model):,} grades are of language models and are written as if certain; --format csv "
            "keeps their probabilities."
        )
    if disputed:
        console.say(
            f"note: people disagree on {disputed:,} pairs; the lower median grade counts until one is decided."
        )
    if path == options.STDIN:
        console.print_lines(content.decode().removesuffix("\n").split("\n"))
    else:
        with opened(path) as file:
            file.write(content)
        console.say(f"wrote {path}: {n:,} judgments")


def agreement(
    store: ExistingStore, level: options.Level = 1, output: console.Output = console.Format.table
) -> None:
    """Open, compare, print."""
    from genm.judge.agreement import agreement_of
    from genm.judge.calibration import calibration_of
    from genm.judge.store import JudgmentStore

    with JudgmentStore(store, create=False) as kept:
        opinions = kept.opinions()
    found, models = agreement_of(opinions), calibration_of(opinions, level=level)
    rows = [
        *((f"Cohen's kappa, {a} and {b}", _coefficient(value)) for (a, b), value in found.cohen.items()),
        ("Fleiss' kappa", _coefficient(found.fleiss)),
        ("Krippendorff's alpha, ordinal", _coefficient(found.alpha)),
        *((f"Cohen's kappa, people and {one.model}", _coefficient(one.kappa)) for one in models),
        *((f"the same, relevant or not, {one.model}", _coefficient(one.kappa_relevant)) for one in models),
    ]

    def table() -> None:
        title = f"{found.n_judges} judges, {found.n_shared:,} pairs judged by two or more"
        console.print_table(title, ["agreement", "value"], rows)
        for one in models:
            header = ["people \\ model", *(f"{grade}" for grade in range(4))]
            cells = [(f"{grade}", *map(str, row)) for grade, row in enumerate(one.confusion)]
            console.print_table(f"grades of people and of {one.model}, {one.n:,} pairs", header, cells)
        apart = [one for one in found.disagreements if not one.is_decided]
        if apart:
            pairs = [
                (one.query, one.document, ", ".join(f"{j} {g}" for j, g in one.grades.items())) for one in apart
            ]
            console.print_table("disagreements to decide", ["query", "document", "grades"], pairs[:20], left=3)

    console.show(
        output,
        json=lambda: {
            "judges": found.n_judges,
            "shared": found.n_shared,
            "cohen": [{"judges": pair, "kappa": value} for pair, value in found.cohen.items()],
            "fleiss": found.fleiss,
            "alpha": found.alpha,
            "models": [asdict(one) for one in models],
            "disagreements": [asdict(one) for one in found.disagreements],
        },
        tsv=lambda: rows,
        table=table,
    )


def _coefficient(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


group = typer.Typer(
    cls=JudgeVerbs,
    help=described(TEXT, EXAMPLES),
    no_args_is_help=True,
    context_settings=SETTINGS,
    add_completion=False,
    rich_markup_mode=None,
)
add_verb(
    group, "page", page, summary="Judge on a page.", text=TEXT,
    examples=("genm judge bm25=b.trec dense=d.trec --texts docs.tsv --queries q.tsv",),
)  # fmt: skip
add_verb(
    group, "llm", llm, summary="Judge by a language model.", text=LLM,
    examples=("genm judge llm b.trec --texts d.tsv --queries q.tsv --llm URL --model M",),
)  # fmt: skip
add_verb(
    group, "export", export, summary="Write judgments as qrels, CSV or JSON lines.",
    text="""Write the judgments: TREC qrels; CSV with source and confidence; or JSON lines with every opinion.

A decision stands for all; otherwise the lower median of people's grades; a model's where no person judged. CSV also
has the probability that people find the document relevant (--rel): a model's grades are calibrated against the
pairs that people judged too. `genm fit --method expected --grades probability` learns from it.""",
    examples=("genm judge export judgments.sqlite -o qrels.txt",),
)  # fmt: skip
add_verb(
    group, "agreement", agreement, summary="Show how far judges agree.",
    text="""Show Cohen's and Fleiss' kappa, Krippendorff's alpha, and the pairs on which people disagree; for a
language model its kappa with people and the table of both grades.""",
    examples=("genm judge agreement judgments.sqlite",),
)  # fmt: skip
command = typer.main.get_command(group)
