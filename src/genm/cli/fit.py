"""`genm fit`: learn the weights, and show what they are worth."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from genm.cli.app import make_verb
from genm.cli.compilation import compile_in_background
from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_table,
    print_text,
    print_tsv,
    progress_bars,
    say,
    say_notes,
    weight_text,
)
from genm.cli.export import target_names
from genm.cli.options import (
    Depth,
    DuplicateRule,
    Duplicates,
    Lenient,
    Level,
    Runs,
    check_output,
    check_rules,
    depths,
    named_paths,
    normalizers,
    per_ranker,
    read_judgments,
    read_runs,
)
from genm.errors import InputError
from genm.formatting import p_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from genm.align import Aligned
    from genm.evidence import Evidence
    from genm.learn import Fuser
    from genm.model import Model
    from genm.progress import Progress
    from genm.records import Qrels, Run

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

LEARNED = "learned weights"

METHODS = ("auto", "bat", "ip", "on", "uns", "enm", "exact")
TEXT = """Learn one weight per ranker and show what the weights reach on queries they have not seen.

Without --qrels the weights are learned with no judgments at all (UnsEnM), on z-scores unless told otherwise.
Methods: auto (the default), the paper's bat, ip, on, uns, enm, and exact (the best on the training queries).
The model file holds everything that `genm fuse --model` needs to repeat the training's rules; with judgments,
model.evidence.json beside it holds what `genm report` shows. With --target the training follows a search engine's
rules (its normaliser, window and rule for missing documents), so that `genm export` can write the weights as that
engine takes them."""
EXAMPLES = (
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fit --qrels qrels.txt --measure nDCG@10 a.trec b.trec --format json",
    "genm fit --qrels qrels.txt --normalize auto bm25=b.trec dense=d.trec",
    "genm fit --method exact --certify --qrels qrels.txt b.trec d.trec",
    "genm fit bm25=b.trec dense=d.trec sparse=s.trec -o model.json",
    "genm fit --target opensearch --qrels qrels.txt b.trec d.trec -o model.json",
)


class PointName(StrEnum):
    """Which weights of the plateau become the model's."""

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


def check_target(
    target: str | None,
    technique: list[str] | None,
    window: int | None,
    normalize: list[str] | None,
    depth: list[str] | None,
    method: str | None,
) -> None:
    """Refuse, before anything is read, an unknown engine and options that contradict it."""
    if target is None:
        for option, value in (("--technique", technique), ("--window", window)):
            if value:
                raise InputError(f"{option} belongs to an engine. Name it with --target, or leave {option} out.")
        return
    from genm.export import find_target

    found = find_target(target)
    if normalize:
        raise InputError(f"--normalize: --target {target} sets the normaliser. Leave one out, or use --technique.")
    if depth:
        raise InputError(f"--depth: --target {target} sets the depth. Leave one out, or use --window.")
    if found.weights.equal and method is not None:
        raise InputError(f"--method {method}: {found.title} takes equal weights only. Leave --method out.")


def target_rules(
    target: str, runs: "dict[str, Run]", technique: list[str] | None, window: int | None
) -> dict[str, Any]:
    """Return how to align, and tell under which rules the training goes."""
    from genm.export import find_target, training_rules

    words = per_ranker("--technique", technique or [])
    techniques = {"*": words} if isinstance(words, str) else words
    rules = training_rules(target, runs, techniques=techniques, window=window)
    kinds = ", ".join(f"{name} by {normalizer.kind}" for name, normalizer in rules.normalizers.items())
    cut = "whole lists" if rules.depth is None else f"the top {rules.depth} of each ranker"
    say(f"training under the rules of {find_target(target).title}: {kinds}; {cut}")
    say_notes(rules.notes)
    return {"normalize": rules.normalizers, "depth": rules.depth}


def takes_equal_only(target: str | None) -> bool:
    """Whether the engine leaves nothing to learn."""
    if target is None:
        return False
    from genm.export import find_target

    return find_target(target).weights.equal


def fit_equal(
    aligned: "Aligned", measure: str, level: int, folds: int, seed: int, progress: "Progress"
) -> "tuple[Fuser, Evidence | None]":
    """Give every ranker the same weight; with judgments, measure that as any learned weights would be."""
    from genm.evaluate import parse_measure
    from genm.evidence import gather_evidence
    from genm.learn.base import EqualFuser
    from genm.learn.objectives import with_level

    say("the engine takes equal weights only: nothing is learned")
    if not aligned.labelled:
        return EqualFuser(level=level).fit(aligned), None
    wanted = with_level(parse_measure(measure), level)
    return gather_evidence(
        aligned, lambda: EqualFuser(level=level), wanted, folds=folds, seed=seed, progress=progress
    )


def for_target(model: "Model", target: str, aligned: "Aligned") -> "Model":
    """Return the model with its engine's name; tell if the engine does not take it, or its runs, as they are."""
    from genm.export import find_target, obstacles

    found, missing = find_target(target), 1.0 - float(aligned.retrieved.mean()) if aligned.retrieved.size else 0.0
    if found.window.rerank and missing:
        say(
            f"note: {found.title} scores every candidate by every ranker, and {missing:.1%} of the scores are "
            f"missing in these runs. Write runs that all hold the same documents."
        )
    for reason in obstacles(model)[target]:
        say(f"note: {target} does not take this model exactly: {reason}.")
    return replace(model, target=target)


def warn_zero_weights(model: "Model", aligned: "Aligned") -> None:
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


def warn_test_queries_seen(judged: "Qrels", held: "Qrels") -> None:
    """Tell if the weights were learned from queries that they are tested on."""
    both = set(judged.queries) & set(held.queries)
    if both:
        first = next(query_id for query_id in held.queries if query_id in both)
        say(
            f"note: {len(both):,} of {len(held.queries):,} queries of --test-qrels were also learned from (first: "
            f"{first}): on them the figures are too good. Hold queries back from --qrels."
        )


def suggest_better_rules(evidence: "Evidence", *, may_choose: bool) -> None:
    """Tell how to use the rules that need no learning and yet clearly beat it; the verdict has the figures."""
    from genm.evidence import UNIFORM

    for name in evidence.better_rules:
        use = f"genm fuse --method {'sum' if name == UNIFORM else 'rrf'}"
        say(
            f"note: held out, what needs no learning does better: {name}. "
            f"{'Try --normalize auto, or use it' if may_choose else 'Use it'}: {use}"
        )


class EvidenceRow(NamedTuple):
    """One row of the table: what it is, its value on the training queries, and held out."""

    label: str
    name: str
    train: float
    held_out: float


def evidence_json(evidence: "Evidence") -> dict[str, Any]:
    """Return the evidence as a JSON object, query by query."""
    from genm.evidence import BEST_SINGLE

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
        "baselines": {**means, BEST_SINGLE: evidence.mean(evidence.best_single)},
        "gains": {
            name: {
                "difference": gain.difference,
                "interval": [gain.low, gain.high],
                "p": dict(gain.p_values),
                "better": gain.n_better,
                "worse": gain.n_worse,
            }
            for name, gain in evidence.gains.items()
        },
        "significant": evidence.is_significant,
        "verdict": evidence.verdict(),
    }


def evidence_tsv(evidence: "Evidence") -> Iterator[tuple[str, str, str]]:
    """Yield what is measured, whom it belongs to, and its value."""
    measure = str(evidence.measure)
    for line in _lines(evidence):
        yield f"train.{measure}", line.name, f"{line.train:.6f}"
        yield f"cv.{measure}", line.name, f"{line.held_out:.6f}"
    for name, gain in evidence.gains.items():
        yield "gain", name, f"{gain.difference:.6f}"
        yield "gain.low", name, f"{gain.low:.6f}"
        yield "gain.high", name, f"{gain.high:.6f}"
        yield "gain.p", name, f"{gain.p_values['wilcoxon']:.6g}"


def evidence_table(evidence: "Evidence") -> None:
    """Print the table of who wins and, in a sentence, what it means."""
    lines = _lines(evidence)
    rows = [(s.label, f"{s.train:.4f}", f"{s.held_out:.4f}", _gain(evidence, s.name)) for s in lines]
    best = [max(range(len(lines)), key=lambda r: lines[r][c]) for c in (2, 3)]
    header = [str(evidence.measure), "training", "held out", f"learned - this [{evidence.confidence:.0%}] p"]
    folds = len(evidence.held_out.weights)
    weighted = " weighted" if len(set(evidence.query_weights.tolist())) > 1 else ""
    title = f"{len(evidence.query_ids):,}{weighted} queries, {folds}-fold cross-validation"
    print_table(title, header, rows, best=best)
    print_text(evidence.verdict())


def _lines(evidence: "Evidence") -> list[EvidenceRow]:
    from genm.evidence import BEST_SINGLE

    lines = []
    for name, values in (evidence.singles | evidence.rules).items():
        mean = evidence.mean(values)  # nothing is learned here: seen or unseen is all one
        lines.append(EvidenceRow(name, name, mean, mean))
    best = max(evidence.mean(values) for values in evidence.singles.values())
    lines.append(EvidenceRow("best single, by training", BEST_SINGLE, best, evidence.mean(evidence.best_single)))
    lines.append(EvidenceRow(LEARNED, LEARNED, evidence.mean(evidence.train), evidence.held_out.mean))
    return lines


def _gain(evidence: "Evidence", name: str) -> str:
    if name not in evidence.gains:
        return ""
    gain = evidence.gains[name]
    p = p_text(gain.p_values["wilcoxon"])
    return f"{gain.difference:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] {p:>6}"


def fit(
    runs: Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments to learn from.", metavar="FILE")] = None,
    test_qrels: Annotated[
        str | None, typer.Option(help="Judgments of other queries, to measure on.", metavar="FILE")
    ] = None,
    query_weights: Annotated[
        str | None, typer.Option(help="Lines of query and weight: how much each query counts.", metavar="FILE")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="One of the methods above.", metavar="NAME", autocompletion=lambda: list(METHODS)),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", help="What to maximise, such as AP, nDCG@10, RR@10.", metavar="MEASURE")
    ] = "AP",
    rel: Level = 1,
    normalize: Annotated[
        list[str] | None, typer.Option(help="A normaliser, NAME=KIND for each, or auto.", metavar="KIND")
    ] = None,
    depth: Depth = None,
    target: TargetName = None,
    technique: Techniques = None,
    window: WindowSize = None,
    beta: Annotated[
        str, typer.Option(help="Sharpness of the sigmoid: a number or auto.", metavar="NUMBER")
    ] = "auto",
    certify: Certify = False,
    seconds: Seconds = None,
    gap: Gap = None,
    point: Point = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", metavar="N", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of folds, starts and resamples.", metavar="N", min=0)] = 0,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write the model.", metavar="FILE")
    ] = None,
) -> None:
    """Read, align, learn, cross-validate, save, print."""
    from genm.align import align_runs
    from genm.model import save_model
    from genm.read import read_query_weights

    names = named_paths(runs, qrels, test_qrels, query_weights)
    check_output(model_path, standard=False)
    check_target(target, technique, window, normalize, depth, method)
    proof = exact_options(method, certify, seconds, gap, point)
    kind = normalizers(normalize or (["zscore"] if qrels is None else []))
    cut = depths(depth or [])
    check_rules(kind, cut, names)
    method = method or ("uns" if qrels is None else "auto")
    options = _options(method, measure, rel, _beta(beta) | proof, qrels is not None, kind == "auto")
    with progress_bars() as progress, compile_in_background(exact=certify) as kernels_are_ready:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient, progress=progress)
        held = None if test_qrels is None else read_judgments(test_qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        weights = None if query_weights is None else read_query_weights(query_weights)
        align_as: dict[str, Any] = {"normalize": "minmax" if kind == "auto" else kind, "depth": cut}
        if target is not None:
            align_as = target_rules(target, loaded, technique, window)
        aligned = align_runs(loaded, judged, query_weights=weights, progress=progress, **align_as)
        kernels_are_ready()
        if takes_equal_only(target):
            fuser, evidence = fit_equal(aligned, measure, rel, folds, seed, progress)
        elif judged is None:
            fuser, evidence = _fit_without_labels(aligned, options), None
        else:
            fuser, evidence = _fit_with_labels(aligned, method, measure, rel, options, folds, seed, progress)
    for run in loaded.values():
        say_notes(run.notes)
    say_notes((*(judged.notes if judged else ()), *aligned.notes))
    if weights is not None and evidence is not None:
        say(
            "note: in training and held-out figures each query counts by its weight; genm evaluate counts all alike"
        )
    if len(loaded) == 1:
        say("note: there is one run: its weight is 1, and there is nothing to learn. Give the others as well.")
    model = fuser.to_model()
    warn_zero_weights(model, aligned)
    if evidence is not None:
        from genm.evidence import with_evidence

        model = with_evidence(model, aligned, evidence)
    if target is not None:
        model = for_target(model, target, aligned)
    tested = None
    if held is not None:
        if judged is not None:
            warn_test_queries_seen(judged, held)
        tested = _test(model, loaded, held, measure, rel)
    if model_path is not None:  # before anything is printed: whoever reads may go away, the model stays
        save_model(model, model_path)
    _show(output, model, fuser, evidence, tested)
    if evidence is not None:
        suggest_better_rules(evidence, may_choose=method == "auto" and kind != "auto" and target is None)
    if model_path is not None:
        say(f"wrote {model_path}")
        if evidence is not None and Path(model_path).is_file():  # not beside a pipe or a device
            _keep_evidence(model_path, aligned, without_proof(fuser), evidence, seed)


def _options(
    method: str, measure: str, level: int, given: dict[str, Any], judged: bool, normalize_auto: bool
) -> dict[str, Any]:
    """Return the fuser's options; what it would refuse is refused here, before any file is read."""
    from genm.learn.auto import make_fuser

    if method not in METHODS:
        raise InputError(f"--method {method}: expected one of {', '.join(METHODS)}.")
    if not judged and method != "uns":
        raise InputError(f"--method {method} learns from judgments. Give --qrels, or use --method uns.")
    if normalize_auto and method != "auto":
        raise InputError("--normalize auto chooses inside --method auto. Name a normaliser for other methods.")
    options = (
        given | ({} if method == "uns" else {"level": level}) | ({"normalize": "auto"} if normalize_auto else {})
    )
    make_fuser(method, measure=measure, **options)
    return options


def _keep_evidence(model_path: str, aligned: "Aligned", fuser: "Fuser", evidence: "Evidence", seed: int) -> None:
    """Write beside the model what `genm report` would have to compute anew."""
    from genm.evidence import evidence_path, keep_evidence, save_evidence

    with progress_bars() as progress:
        kept = keep_evidence(aligned, fuser, evidence, seed=seed, progress=progress)
    save_evidence(kept, evidence_path(model_path))
    say(f"wrote {evidence_path(model_path)}")


def _beta(text: str) -> dict[str, float]:
    if text == "auto":
        return {}
    try:
        return {"beta": float(text)}
    except ValueError:
        raise InputError(f"--beta {text}: expected a number or auto.") from None


def _fit_without_labels(aligned: "Aligned", options: dict[str, Any]) -> "Fuser":
    from genm.learn.auto import make_fuser

    say("no judgments: learning without labels (UnsEnM); there is no held-out figure to show")
    return make_fuser("uns", **options).fit(aligned)


def _fit_with_labels(
    aligned: "Aligned",
    method: str,
    measure: str,
    level: int,
    options: dict[str, Any],
    folds: int,
    seed: int,
    progress: "Progress",
) -> "tuple[Fuser, Evidence]":
    from genm.evaluate import parse_measure
    from genm.evidence import gather_evidence
    from genm.learn.objectives import with_level

    make = learner(method, measure, options, progress)
    wanted = with_level(parse_measure(measure), level)
    return gather_evidence(aligned, make, wanted, folds=folds, seed=seed, progress=progress)


def _test(
    model: "Model", runs: "dict[str, Run]", held: "Qrels", measure: str, level: int
) -> tuple[str, dict[str, float]]:
    """Return the measure's name, and its value for the fused run and each ranker, on judgments held back for it."""
    from genm.evaluate import evaluate_run, parse_measure
    from genm.learn.objectives import with_level
    from genm.model import fuse_with_model

    wanted = with_level(parse_measure(measure), level)
    rows = {**runs, LEARNED: fuse_with_model(model, runs)}
    return str(wanted), {name: evaluate_run(run, held, [wanted]).mean(wanted) for name, run in rows.items()}


def _show(
    output: Format,
    model: "Model",
    fuser: "Fuser",
    evidence: "Evidence | None",
    tested: "tuple[str, dict[str, float]] | None",
) -> None:
    weights = dict(zip(model.rankers, model.weights, strict=True))
    measure, on_test = tested or ("", {})
    if output is Format.json:
        proof = {} if evidence is None else evidence_json(evidence)
        print_json(
            {"weights": weights, **exact_json(fuser), **proof, **({"test": {measure: on_test}} if tested else {})}
        )
    elif output is Format.tsv:
        print_tsv(("weight", name, repr(weight)) for name, weight in weights.items())
        exact_tsv(fuser)
        print_tsv(() if evidence is None else evidence_tsv(evidence))
        print_tsv((f"test.{measure}", name, f"{value:.6f}") for name, value in on_test.items())
    else:
        print_table("", ["ranker", "weight"], [(name, weight_text(weight)) for name, weight in weights.items()])
        exact_table(fuser)
        if evidence is not None:
            evidence_table(evidence)
        if tested:
            rows = [(name, f"{value:.4f}") for name, value in on_test.items()]
            print_table("On the test judgments", ["", measure], rows)


command = make_verb(fit, TEXT, EXAMPLES)
