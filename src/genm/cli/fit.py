"""`genm fit`: learn the weights, and show what they are worth."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import genm
from genm.cli import console, options
from genm.cli import query_weights as by_query
from genm.cli.app import make_verb
from genm.cli.compilation import compile_in_background
from genm.cli.export import target_names
from genm.errors import InputError
from genm.formatting import p_text
from genm.io import check_outputs

Certify = Annotated[
    bool, typer.Option("--certify", help="With exact: prove how much could be gained at most.", show_default=False)
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="With --certify: stop after so long (60).", metavar="NUMBER")
]
Gap = Annotated[
    float | None, typer.Option("--gap", help="With --certify: stop when no more is left (0).", metavar="NUMBER")
]

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

METHODS = ("auto", "newton", "barrier", "online", "cotrain", "boost", "exact", "expected")
"""Those of `genm.learn`, whose import would make the help slow."""
TEXT = """Learn one weight per ranker and show what the weights reach on queries they have not seen.

Without --qrels the weights are learned with no judgments at all (cotrain), on z-scores unless told otherwise.
Methods: auto (the default), newton, barrier, online, cotrain and boost (the paper's gEnM.BAT, gEnM.IP, gEnM.ON,
UnsEnM and EnM, which are names of them too), exact (the best on the training queries), and
expected (for few judgments: unjudged documents count by their probability of relevance).
The model file holds everything that `genm fuse --model` needs to repeat the training's rules; with judgments,
model.evidence.json beside it holds what `genm report` shows. With --target the training follows a search engine's
rules (its normaliser, window and rule for missing documents), so that `genm export` can write the weights as that
engine takes them.

With --table the weights are learned from a table of genm shard, which may be larger than memory, by the methods
auto, newton, barrier, online, exact (without --certify) and cotrain, the default of a table without judgments;
--cluster evaluates it by Dask, --device cuda on a GPU (auto, newton, barrier). After every pass
model.checkpoint.json is written: the same command, given again after a crash, continues from there.

With --groups, or --queries and --group-by, each group of queries gets weights of its own beside the global ones, as
far from them as its queries justify. Rules are tested in order: NAME: REGEX, words<=N, characters>N, digits, or
COLUMN=VALUE. --per-query (experimental) computes the weights of each query from features of its lists and text."""
EXAMPLES = (
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fit --qrels qrels.txt --measure nDCG@10 a.trec b.trec --format json",
    "genm fit --qrels qrels.txt --normalize auto bm25=b.trec dense=d.trec",
    "genm fit --qrels qrels.txt --current b=0.3,d=0.7 b=b.trec d=d.trec",
    "genm fit --qrels qrels.txt --signs any b=b.trec d=d.trec s=s.trec",
    "genm fit --method exact --certify --qrels qrels.txt b.trec d.trec",
    "genm fit bm25=b.trec dense=d.trec sparse=s.trec -o model.json",
    "genm fit --target opensearch --qrels qrels.txt b.trec d.trec -o model.json",
    "genm fit --table table/ --memory 2GB -o model.json",
    "genm fit --table table/ --cluster local:4 -o model.json",
    "genm fit --table table/ --device cuda -o model.json",
    "genm fit --qrels q.txt --groups groups.tsv b.trec d.trec -o model.json",
    "genm fit --qrels q.txt --queries q.tsv --group-by 'id: ^[A-Z0-9-]+$' b d",
)


SAID_PLAINLY = ("target-rules", "equal-weights", "no-judgments")
"""Notes that say what is done, not what to look out for."""


class SignRule(StrEnum):
    """Which signs weights may have."""

    positive = "positive"
    any = "any"


Signs = Annotated[
    SignRule,
    typer.Option("--signs", help="With auto: positive, or any: weights may be negative.", metavar="RULE"),
]


class PointName(StrEnum):
    """Which of the near-optimal weights become the model's."""

    best = "best"
    centre = "centre"


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
    is_exact = method is not None and method.lower() == "exact"
    given = {"--certify": certify or None, "--seconds": seconds, "--gap": gap, "--weights": point}
    for flag, value in given.items():
        if value is not None and not is_exact:
            raise InputError(f"{flag} belongs to --method exact. Name it, or leave {flag} out.")
        if value is not None and flag in ("--seconds", "--gap") and not certify:
            raise InputError(f"{flag} limits a proof. Ask for one with --certify, or leave {flag} out.")
    if seconds is not None and not seconds > 0.0:
        raise InputError(f"--seconds {seconds:g}: expected a number above 0.")
    if gap is not None and not gap >= 0.0:
        raise InputError(f"--gap {gap:g}: expected a number from 0 on.")
    wanted = {"certify": certify or None, "seconds": seconds, "gap": gap, "weights": point and point.value}
    return {name: value for name, value in wanted.items() if value is not None}


def exact_json(fuser: "genm.learn.Fuser") -> dict[str, Any]:
    """Return what the exact method knows beyond the weights; nothing for other methods."""
    if not isinstance(fuser, genm.ExactFuser):
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


def exact_tsv(fuser: "genm.learn.Fuser") -> None:
    """Print the same as lines of tab-separated values."""
    known = exact_json(fuser).get("exact")
    if known is None:
        return
    console.print_tsv(
        (f"exact.{name}", "", repr(known[name])) for name in ("best", "bound", "left") if known[name] is not None
    )
    console.print_tsv((f"plateau.{end}", name, repr(span[i])) for i, end in enumerate(("low", "high"))
              for name, span in known["plateau"]["weights"].items())  # fmt: skip


def exact_table(fuser: "genm.learn.Fuser") -> None:
    """Print what was reached and what is left, and how far the weights can move."""
    known = exact_json(fuser).get("exact")
    if known is None:
        return
    spans = known["plateau"]["weights"].items()
    loss = known["plateau"]["loss"]
    console.print_text(f"On all training queries: {known['verdict']}.")
    console.print_text(
        f"Weights that lose at most {loss:g}, one ranker at a time, the others in proportion: "
        + ", ".join(f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in spans)
        + "."
    )


def say_training_notes(notes: "tuple[genm.records.Note, ...]") -> None:
    """Tell what reading, aligning and training found."""
    plain = {note.text for note in notes if note.code in SAID_PLAINLY}
    for text in dict.fromkeys(note.text for note in notes):
        console.say(text if text in plain else f"note: {text}")


def suggest_better_rules(evidence: "genm.evidence.Evidence", *, may_choose: bool) -> None:
    """Say how to use the rules that need no learning and clearly beat it; the verdict has the figures."""
    for name in evidence.better_rules:
        if name == genm.evidence.CURRENT:
            console.say("note: held out, the current ranking does better: keep it")
            continue
        use = f"genm fuse --method {'sum' if name == genm.evidence.UNIFORM else 'rrf'}"
        console.say(
            f"note: held out, what needs no learning does better: {name}. "
            f"{'Try --normalize auto, or use it' if may_choose else 'Use it'}: {use}"
        )


class EvidenceRow(NamedTuple):
    """One row of the table: what it is, its value on the training queries, and held out."""

    label: str
    name: str
    train: float
    held_out: float


def evidence_json(evidence: "genm.evidence.Evidence") -> dict[str, Any]:
    """Return the evidence as a JSON object, query by query."""
    held_out, measure = evidence.held_out, str(evidence.measure)
    means = {name: evidence.mean(values) for name, values in (evidence.singles | evidence.rules).items()}
    return {
        "train": {measure: evidence.mean(evidence.train)},
        "cv": {
            "measure": measure,
            "mean": held_out.mean,
            "interval": list(evidence.interval),
            "per_query": dict(zip(evidence.query_ids, held_out.per_query.tolist(), strict=True)),
            "folds": dict(zip(evidence.query_ids, held_out.fold.tolist(), strict=True)),
            "fold_weights": held_out.weights.tolist(),
        },
        "baselines": {**means, genm.evidence.BEST_SINGLE: evidence.mean(evidence.best_single)},
        "best_single": evidence.best_name,
        "strongest": evidence.strongest,
        "unjudged": evidence.unjudged,
        "gains": {
            name: {
                "difference": gain.difference,
                "interval": [gain.low, gain.high],
                "outcome": gain.outcome,
                "p": dict(gain.p_values),
                "better": gain.n_better,
                "worse": gain.n_worse,
            }
            for name, gain in evidence.gains.items()
        },
        "significant": evidence.is_significant,
        "verdict": evidence.verdict(),
    }


def evidence_tsv(evidence: "genm.evidence.Evidence") -> Iterator[tuple[str, str, str]]:
    """Yield what is measured, whom it belongs to, and its value."""
    measure = str(evidence.measure)
    for line in _lines(evidence):
        yield f"train.{measure}", line.name, f"{line.train:.6f}"
        yield f"cv.{measure}", line.name, f"{line.held_out:.6f}"
    for name, gain in evidence.gains.items():
        yield "gain", name, f"{gain.difference:.6f}"
        yield "gain.low", name, f"{gain.low:.6f}"
        yield "gain.high", name, f"{gain.high:.6f}"
        yield "gain.significant", name, str(int(gain.outcome in ("better", "worse")))
        yield "gain.p", name, f"{gain.p_values['wilcoxon']:.6g}"


LEGEND = "* The interval leaves out 0. p (Wilcoxon) ignores learning and decides nothing."
"""What the marks of the table mean: one criterion decides, and a small p beside no star is no contradiction."""


def evidence_table(evidence: "genm.evidence.Evidence") -> None:
    """Print the table of who wins and, in a sentence, what it means."""
    lines = _lines(evidence)
    rows = [(s.label, f"{s.train:.4f}", f"{s.held_out:.4f}", _gain(evidence, s.name)) for s in lines]
    best = [max(range(len(lines)), key=lambda r: lines[r][c]) for c in (2, 3)]
    header = [str(evidence.measure), "training", "held out", f"learned - this [{evidence.confidence:.0%}] p"]
    folds = len(evidence.held_out.weights)
    weighted = " weighted" if len(set(evidence.query_weights.tolist())) > 1 else ""
    title = f"{len(evidence.query_ids):,}{weighted} queries, {folds}-fold cross-validation"
    console.print_table(title, header, rows, best=best)
    console.print_text(LEGEND)
    console.print_text(f"{evidence.verdict()} {evidence.caveat}".rstrip())


def _lines(evidence: "genm.evidence.Evidence") -> list[EvidenceRow]:
    lines = []
    ids = genm.evidence.ranker_ids(list(evidence.singles))
    own = zip(ids, evidence.singles, evidence.singles.values(), strict=True)
    for name, label, values in (*own, *((rule, rule, values) for rule, values in evidence.rules.items())):
        mean = evidence.mean(values)  # nothing is learned here, so seen and unseen queries give the same
        lines.append(EvidenceRow(label, name, mean, mean))
    lines.append(
        EvidenceRow(
            genm.evidence.LEARNED, genm.evidence.LEARNED, evidence.mean(evidence.train), evidence.held_out.mean
        )
    )
    return lines


def _gain(evidence: "genm.evidence.Evidence", name: str) -> str:
    """Return the gain over a row and its interval; a star marks an interval that leaves out 0."""
    if name not in evidence.gains:
        return ""
    gain = evidence.gains[name]
    mark, p = "*" if gain.outcome in ("better", "worse") else " ", p_text(gain.p_values["wilcoxon"])
    return f"{gain.difference:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]{mark} {p:>6}"


Memory = Annotated[
    str | None,
    typer.Option("--memory", help="With --table: how much of it to keep in memory, such as 2GB.", metavar="SIZE"),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="With --table: local:N, or a Dask scheduler tls://HOST:PORT.", metavar="WHERE"),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="With --table: cuda for a GPU, or cuda:NUMBER.", metavar="NAME"),
]
TlsCa = Annotated[
    str | None, typer.Option("--tls-ca", help="With --cluster tls://: who signs certificates.", metavar="FILE")
]
TlsCert = Annotated[
    str | None, typer.Option("--tls-cert", help="With --cluster tls://: our certificate.", metavar="FILE")
]
TlsKey = Annotated[
    str | None, typer.Option("--tls-key", help="With --cluster tls://: the key of --tls-cert.", metavar="FILE")
]


def _table_settings(
    table: str | None,
    memory: str | None,
    cluster: str | None,
    device: str | None,
    tls: tuple[str | None, str | None, str | None],
) -> dict[str, Any]:
    """Return how a table is evaluated; refuse options that belong to a table where there is none."""
    given = {"--memory": memory, "--cluster": cluster, "--device": device}
    given |= dict(zip(("--tls-ca", "--tls-cert", "--tls-key"), tls, strict=True))
    for flag, value in given.items():
        if value is not None and table is None:
            raise InputError(f"{flag} belongs to a table. Give one by --table, or leave {flag} out.")
        if value is not None and flag.startswith("--tls") and not (cluster or "").startswith("tls:"):
            raise InputError(f"{flag} belongs to --cluster tls://HOST:PORT. Give that, or leave {flag} out.")
    where = None if cluster is None else genm.scale.ClusterAddress(cluster, *tls)
    if where is not None:
        where.check()
    n_bytes = None if memory is None else genm.scale.bytes_of(memory)
    return {"memory": n_bytes, "cluster": where, "device": device}


def fit(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs as NAME=FILE, or FILE (named after itself).", metavar="RUN", show_default=False),
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="Judgments to learn from.", metavar="FILE")] = None,
    test_qrels: Annotated[
        str | None, typer.Option(help="Judgments of other queries, to measure on.", metavar="FILE")
    ] = None,
    query_weights: Annotated[
        str | None, typer.Option(help="Lines of query and weight: how much each query counts.", metavar="FILE")
    ] = None,
    current: Annotated[
        str | None,
        typer.Option(help="What you use today, to compare with: NAME=WEIGHT,... or a run.", metavar="WHAT"),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="One of the methods above.", metavar="NAME", autocompletion=lambda: list(METHODS)),
    ] = None,
    measure: Annotated[
        str,
        typer.Option("--measure", "-m", help="What to maximise, such as AP, nDCG@10, RR@10.", metavar="MEASURE"),
    ] = "AP",
    rel: options.Level = 1,
    normalize: Annotated[
        list[str] | None, typer.Option(help="A normaliser, NAME=KIND for each, or auto.", metavar="KIND")
    ] = None,
    depth: options.Depth = None,
    target: TargetName = None,
    technique: Techniques = None,
    window: WindowSize = None,
    beta: Annotated[
        str, typer.Option(help="Sharpness of the sigmoid: a number or auto.", metavar="NUMBER")
    ] = "auto",
    signs: Signs = SignRule.positive,
    certify: Certify = False,
    seconds: Seconds = None,
    gap: Gap = None,
    point: Point = None,
    batch: Annotated[
        int | None, typer.Option("--batch", help="With online: queries that share a step (1).", metavar="N", min=1)
    ] = None,
    groups: options.GroupFile = None,
    queries: options.QueryFile = None,
    group_by: options.GroupBy = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Learn weights for each query from its features (experimental).")
    ] = False,
    table: options.Table = None,
    memory: Memory = None,
    cluster: Cluster = None,
    device: Device = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", metavar="N", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of folds, starts and resamples.", metavar="N", min=0)] = 0,
    grades: options.Grades = options.WHOLE_GRADES,
    lenient: options.Lenient = False,
    duplicates: options.Duplicates = options.DuplicateRule.error,
    output: console.Output = console.Format.table,
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write the model.", metavar="FILE")
    ] = None,
) -> None:
    """Read, train, save, print."""
    runs = runs or []
    if bool(runs) == (table is not None):
        found = "both" if runs else "neither"
        raise InputError(f"expected runs, or a table by --table; found {found}. Give one of them.")
    evaluated = _table_settings(table, memory, cluster, device, (tls_ca, tls_cert, tls_key))
    present = _current_weights(current)
    current_path = None if present is not None else current
    names = options.named_paths(runs, qrels, test_qrels, query_weights, current_path, groups, queries)
    inputs = (*names.values(), qrels, test_qrels, query_weights, current_path, groups, queries)
    options.check_output(model_path, inputs, standard=False)
    if model_path is not None:
        check_outputs([genm.evidence.evidence_path(model_path)], inputs)
    settings: dict[str, Any] = {
        "method": method,
        "measure": measure,
        "level": rel,
        "normalize": options.normalizers(normalize) if normalize else None,
        "depth": options.depths(depth or []),
        "target": target,
        "techniques": options.per_ranker("--technique", technique or []),
        "window": window,
        **({} if batch is None else {"batch": batch}),
        **({"signs": signs.value} if signs is not SignRule.positive else {}),
        **exact_options(method, certify, seconds, gap, point),
        **_beta(beta),
    }
    scores = None if table is None else genm.scale.ScoreTable.open(table)
    if scores is not None:
        evaluated["checkpoint"] = None if model_path is None else genm.scale.checkpoint_path(model_path)
    genm.training.check_training(
        tuple(names) if scores is None else scores.rankers,
        judged=qrels is not None if scores is None else scores.labelled,
        current=present or current_path,
        **settings,
    )
    genm.training.check_query_weights(
        judged=qrels is not None,
        has_groups=groups is not None,
        has_queries=queries is not None,
        group_by=group_by,
        per_query=per_query,
    )
    with console.progress_bars() as progress, compile_in_background(exact=certify) as kernels_are_ready:
        judged = (
            None
            if qrels is None
            else options.read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
        )
        test = (
            None
            if test_qrels is None
            else options.read_judgments(test_qrels, lenient=lenient, grades=grades, progress=progress)
        )
        loaded = options.read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        weights = None if query_weights is None else genm.read.read_query_weights(query_weights)
        group_of, columns = options.read_query_files(groups, queries)
        if current_path is not None:
            (present,) = options.read_runs(
                [f"current={current_path}"], lenient=lenient, duplicates=duplicates, progress=progress
            ).values()
        kernels_are_ready()
        trained = genm.train(
            loaded if scores is None else scores,
            judged,
            test_qrels=test,
            query_weights=weights,
            current=present,
            groups=group_of,
            group_by=group_by,
            queries=columns,
            per_query=per_query,
            folds=folds,
            seed=seed,
            progress=progress,
            **evaluated,
            **settings,
        )
    say_training_notes(trained.notes)
    if model_path is not None:  # before anything is printed: a reader that goes away does not cost the model
        genm.save_model(trained.model, model_path)
        if scores is not None:
            genm.scale.checkpoint_path(model_path).unlink(missing_ok=True)
    with console.progress_bars() as progress:
        losses = trained.losses(progress=progress)
    learned = trained.evidence is not None and genm.learn.is_method(trained.model.method)
    if learned and losses is None and trained.aligned is not None and len(names) > 1:
        console.say(f"note: {genm.explain.why_no_losses(trained.model, trained.aligned)}")
    _show(output, trained, losses)
    if trained.evidence is not None:
        may_choose = trained.model.method == "auto" and settings["normalize"] != "auto" and target is None
        suggest_better_rules(trained.evidence, may_choose=may_choose)
    if model_path is not None:
        console.say(f"wrote {model_path}")
        with console.progress_bars() as progress:
            beside = trained.save_evidence(model_path, progress=progress)
        if beside is not None:
            console.say(f"wrote {beside}")


def _current_weights(text: str | None) -> "dict[str, float] | genm.Run | None":
    """Return weights written as NAME=WEIGHT,...; None where the text names a file, or there is none."""
    if text is None or Path(text).exists() or "=" not in text:
        return None
    weights = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"--current {text}: expected NAME=WEIGHT,... or the path of a run; found {part!r}.")
    return weights


def _beta(text: str) -> dict[str, float]:
    if text == "auto":
        return {}
    try:
        return {"beta": float(text)}
    except ValueError:
        raise InputError(f"--beta {text}: expected a number or auto.") from None


def _show(output: console.Format, trained: "genm.Trained", losses: "genm.explain.Losses | None") -> None:
    """Print weights, evidence and, where they could be measured, the verdicts on the rankers."""
    fuser, evidence, weights = trained.fuser, trained.evidence, trained.weights
    measure, on_test = ("", {}) if trained.tested is None else (str(trained.tested.measure), trained.tested.values)
    if output is console.Format.json:
        proof = {} if evidence is None else evidence_json(evidence)
        advice = {} if losses is None else {"verdicts": losses.verdicts, "advice": losses.advice()}
        groups = by_query.as_json(trained.model, trained.by_query)
        tested = {"test": {measure: on_test}} if on_test else {}
        console.print_json({"weights": weights, **exact_json(fuser), **proof, **advice, **groups, **tested})
    elif output is console.Format.tsv:
        console.print_tsv(("weight", name, repr(weight)) for name, weight in weights.items())
        exact_tsv(fuser)
        console.print_tsv(() if evidence is None else evidence_tsv(evidence))
        if losses is not None:
            console.print_tsv(("loss", part.name, f"{part.loss.value:.6f}") for part in losses.rankers)
            console.print_tsv(("leave_out", name, str(int(name in losses.leave_out))) for name in weights)
        console.print_tsv(by_query.as_tsv(trained.model, trained.by_query))
        console.print_tsv((f"test.{measure}", name, f"{value:.6f}") for name, value in on_test.items())
    else:
        console.print_table(
            "", ["ranker", "weight"], [(name, console.weight_text(weight)) for name, weight in weights.items()]
        )
        exact_table(fuser)
        if evidence is not None:
            evidence_table(evidence)
        for sentence in [] if losses is None else losses.advice():
            console.print_text(sentence)
        by_query.table(trained.model, trained.by_query)
        if on_test:
            rows = [(name, f"{value:.4f}") for name, value in on_test.items()]
            console.print_table("On the test judgments", ["", measure], rows)


command = make_verb(fit, TEXT, EXAMPLES)
