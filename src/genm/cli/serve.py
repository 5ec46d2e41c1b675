"""`genm serve` and what goes with it: checks and backups of its store, tokens, and the verbs that talk to it."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.app import SETTINGS, GroupWithDefault, add_verb, described, make_verb
from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_table,
    print_tsv,
    progress_bars,
    say,
    say_notes,
    show,
    weight_text,
)
from genm.cli.options import (
    WHOLE_GRADES,
    DuplicateRule,
    Duplicates,
    Grades,
    Lenient,
    Runs,
    named_paths,
    read_judgments,
    read_runs,
    weights_by_name,
)
from genm.errors import InputError, MissingExtraError, ServiceError, StoreError

if TYPE_CHECKING:
    from genm.client import Client

TEXT = """Serve a model over HTTP: lists come in and the fused list goes out; judgments or clicks come in and the
weights move. What is acknowledged is on disk. `genm serve MODEL` is short for `genm serve run MODEL`.

Needs the extra serve: pip install 'genm[serve]'"""
EXAMPLES = (
    "genm serve model.json",
    "genm serve check --store model.sqlite",
    "genm serve token add search-team --role fuse --role feedback",
)
RUN = """Listen on the loopback interface, or wherever --host says; other machines need a token then.

The store keeps every event and every version of the weights. Started again with the same store, the service
continues where it stopped. The page at / shows weights, quality and events live."""
TOKENS_FILE = "genm-tokens.json"
BATCH = 50

StorePlace = Annotated[
    str, typer.Option("--store", help="The store: a SQLite file, or postgresql://...", metavar="STORE")
]
TokensPath = Annotated[str, typer.Option("--tokens", help="The file of tokens.", metavar="FILE")]
Url = Annotated[str, typer.Option("--url", help="Where the service is.", metavar="URL")]
Token = Annotated[
    str | None, typer.Option("--token", help="A bearer token; GENM_TOKEN if it is not given.", metavar="TOKEN")
]
LOCAL_URL = "http://127.0.0.1:8000"


class ServeVerbs(GroupWithDefault):
    """The verbs of the service; what is no verb is the model to serve."""

    default = "run"


@contextmanager
def needs_serve_extra() -> Iterator[None]:
    """Name the extra where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("starlette", "uvicorn", "httpx", "httptools"):
            raise MissingExtraError("the service", "serve") from None
        raise


def run(
    model: Annotated[
        str | None, typer.Argument(help="The model; the store's own if none.", metavar="MODEL")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="SQLite file or postgresql://...; else the model's name with .sqlite.", metavar="STORE"
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port.", metavar="PORT", min=0, max=65535)] = 8000,
    tokens: Annotated[str | None, typer.Option(help="The file of tokens.", metavar="FILE")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name of this service; repeatable.", metavar="NAME")
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--tls-cert", help="The certificate, for HTTPS.", metavar="FILE")
    ] = None,
    private_key: Annotated[str | None, typer.Option("--tls-key", help="Its private key.", metavar="FILE")] = None,
    max_body: Annotated[float, typer.Option(help="The largest body, in MB.", metavar="MB", min=0.001)] = 16.0,
    rate: Annotated[
        float, typer.Option("--rate", help="Requests a second of one client; 0: any.", metavar="RATE", min=0.0)
    ] = 2000.0,
    influence: Annotated[
        float | None,
        typer.Option(
            help="How far one client may move weights an hour (0 to 1); 0: any.", metavar="SHARE", min=0.0
        ),
    ] = None,
    max_ap_loss: Annotated[
        float | None, typer.Option(help="Loss of AP from which an update is not promoted.", metavar="AP", min=0.0)
    ] = None,
    position_bias: Annotated[
        float | None,
        typer.Option(help="Place r is seen with a chance of r ** -BIAS.", metavar="BIAS", min=0.0, max=10.0),
    ] = None,
    relearn_every: Annotated[
        float,
        typer.Option(
            help="Seconds between two times of learning from all stored feedback, at least; 0: never.",
            metavar="SECONDS",
            min=0.0,
        ),
    ] = 30.0,
    telemetry: Annotated[
        str | None, typer.Option(help="Send spans to this OpenTelemetry collector (OTLP, HTTP).", metavar="URL")
    ] = None,
) -> None:
    """Serve until a signal comes."""
    with needs_serve_extra():
        import msgspec

        from genm.serve.http import Limits
        from genm.serve.learner import Rules
        from genm.serve.server import Settings, serve, stored_rules

    settings = Settings(
        model=model,
        store=store,
        host=host,
        port=port,
        tokens=tokens,
        certificate=certificate,
        private_key=private_key,
        hosts=tuple(allow_host or ()),
        limits=Limits(max_body=int(max_body * 1e6), rate=rate),
        relearn_every=relearn_every,
        telemetry=telemetry,
    )
    given: dict[str, Any] = {"max_ap_loss": max_ap_loss, "position_bias": position_bias}
    changed = {name: value for name, value in given.items() if value is not None}
    if influence is not None:
        changed["influence"] = influence or None
    if changed:
        rules = msgspec.structs.replace(stored_rules(settings) or Rules(), **changed)
        settings = replace(settings, rules=rules)
    serve(settings, ready=lambda place: say(f"serving on {place}; Ctrl-C stops"))


def check(store: StorePlace, output: Output = Format.table) -> None:
    """Replay, compare, print; exit with 2 where something does not fit."""
    with needs_serve_extra():
        from genm.serve.replay import check_store
        from genm.serve.store import existing_store
    with existing_store(store) as opened:
        found = check_store(opened)
    if output is Format.json:
        print_json({"events": found.n_events, "versions": found.n_versions, "champion": found.champion,
                    "faults": list(found.faults)})  # fmt: skip
    elif not found.faults:
        rows = [(store, f"{found.n_events:,}", f"{found.n_versions:,}", f"{found.champion}")]
        print_table("", ["store", "events", "versions", "champion"], rows)
    for fault in found.faults:
        say(fault)
    if found.faults:
        raise StoreError(f"{store}: the replay differs in {len(found.faults)} places. Restore a backup.")


def backup(
    store: StorePlace, target: Annotated[str, typer.Option("--output", "-o", help="The new file.", metavar="FILE")]
) -> None:
    """Copy and tell."""
    with needs_serve_extra():
        from genm.serve.store import copy_to, existing_store
    with existing_store(store) as opened:
        n = copy_to(opened, target)
    say(f"wrote {target}: {n:,} events")


def restore(
    source: Annotated[str, typer.Argument(help="The backup.", metavar="BACKUP")], store: StorePlace
) -> None:
    """Check, copy and tell."""
    with needs_serve_extra():
        from genm.serve.replay import check_store
        from genm.serve.store import copy_to, existing_store
    with existing_store(source) as opened:
        faults = check_store(opened).faults
        if faults:
            raise StoreError(f"{source}: expected a sound backup; found: {faults[0]}. Use an older one.")
        n = copy_to(opened, store)
    say(f"wrote {store}: {n:,} events")


def add_token(
    name: Annotated[str, typer.Argument(help="Whose it is.", metavar="NAME")],
    role: Annotated[
        list[str] | None, typer.Option("--role", help="fuse, feedback or admin; repeatable.", metavar="ROLE")
    ] = None,
    tokens: TokensPath = TOKENS_FILE,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Limit the clients that its events name, not the token.")
    ] = False,
) -> None:
    """Make, print."""
    with needs_serve_extra():
        from genm.serve.security import ROLES, Tokens
    roles = role or ["fuse", "feedback"]
    wrong = [one for one in roles if one not in ROLES]
    if wrong:
        raise InputError(f"--role {wrong[0]}: expected one of {', '.join(ROLES)}.")
    secret = Tokens(tokens).add(name, roles, trusted=trusted)  # type: ignore[arg-type]
    print_tsv([(secret,)])
    say(f"wrote {tokens}; the token is shown only now")


def list_tokens(tokens: TokensPath = TOKENS_FILE, output: Output = Format.table) -> None:
    """Read, print."""
    with needs_serve_extra():
        from genm.serve.security import Tokens
    rows = [(name, " ".join(roles), "yes" if trusted else "no") for name, roles, trusted in Tokens(tokens).names()]
    show(
        output,
        json=lambda: [
            {"name": name, "roles": roles.split(), "trusted": trusted == "yes"} for name, roles, trusted in rows
        ],
        tsv=lambda: rows,
        table=lambda: print_table("", ["name", "roles", "trusted"], rows),
    )


def withdraw_token(
    name: Annotated[str, typer.Argument(help="Whose it is.", metavar="NAME")], tokens: TokensPath = TOKENS_FILE
) -> None:
    """Withdraw, tell."""
    with needs_serve_extra():
        from genm.serve.security import Tokens
    Tokens(tokens).withdraw(name)
    say(f"withdrew {name}")


def _client(url: str, token: str | None) -> "Client":
    with needs_serve_extra():
        from genm.client import Client
    return Client(url, token=token or os.environ.get("GENM_TOKEN") or None)


def feedback(
    runs: Runs,
    qrels: Annotated[str, typer.Option(help="Judgments of the queries.", metavar="FILE")],
    url: Url = LOCAL_URL,
    token: Token = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    grades: Grades = WHOLE_GRADES,
    output: Output = Format.table,
) -> None:
    """Read, send in parts, print what became of the events."""
    named_paths(runs, qrels)
    with _client(url, token) as client:
        from genm.client import judged_events

        with progress_bars() as progress:
            judged = read_judgments(qrels, lenient=lenient, grades=grades, progress=progress)
            loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        say_notes((*judged.notes, *(note for run in loaded.values() for note in run.notes)))
        events = list(judged_events(loaded, judged))
        if not events:
            raise InputError(f"{qrels}: expected judgments of queries that every run holds; found none.")
        outcomes: dict[str, int] = {}
        champion = 0
        for answer in _send_events(client, events):
            champion = answer["champion"]
            for event in answer["events"]:
                outcomes[event["outcome"]] = outcomes.get(event["outcome"], 0) + 1
    if len(events) < len(judged.queries):
        say(f"note: {len(judged.queries) - len(events):,} judged queries are missing from a run and were not sent.")
    if "limited" in outcomes:
        say(
            f"note: {outcomes['limited']:,} events were stored without moving the weights: this client has moved "
            "them as far as it may in an hour. The service's option --influence sets how far."
        )
    rows = [(outcome, f"{n:,}") for outcome, n in sorted(outcomes.items())]
    show(
        output,
        json=lambda: {"events": outcomes, "champion": champion},
        tsv=lambda: rows,
        table=lambda: print_table(f"champion: version {champion}", ["outcome", "events"], rows),
    )


def _send_events(client: "Client", events: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the answers to the events, sent in parts that the service takes; an error names its query."""
    parts = [events[start : start + BATCH] for start in range(0, len(events), BATCH)][::-1]
    while parts:
        part = parts.pop()
        try:
            yield client.feedback(part)
        except ServiceError as error:
            if error.status == 413 and len(part) > 1:  # larger than the service's --max-body
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            named = re.search(r"body\.events\[(\d+)\]", str(error))
            if named is None and error.status != 413:
                raise
            query_id = part[0 if named is None else int(named[1])]["query_id"]
            raise ServiceError(f"query {query_id!r}: {error}", error.status) from None


def weights(
    version: Annotated[int | None, typer.Option(help="An older version.", metavar="N", min=1)] = None,
    set_to: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=NUMBER for each ranker.", metavar="LIST")
    ] = None,
    url: Url = LOCAL_URL,
    token: Token = None,
    output: Output = Format.table,
) -> None:
    """Set if wanted, get, print."""
    with _client(url, token) as client:
        if set_to:
            if version is not None:
                raise InputError("--set and --version: expected one of the two.")
            known: Sequence[str] = list(client.weights()["weights"])
            client.set_weights(weights_by_name(set_to, known))
        found = client.weights(version)
    _print_weights(found, output)


def rollback(
    version: Annotated[int, typer.Argument(help="The version to go back to.", metavar="VERSION", min=1)],
    url: Url = LOCAL_URL,
    token: Token = None,
    output: Output = Format.table,
) -> None:
    """Go back, get, print."""
    with _client(url, token) as client:
        client.rollback(version)
        found = client.weights()
    _print_weights(found, output)


def _print_weights(found: dict[str, Any], output: Format) -> None:
    role = "the champion" if found["version"] == found["champion"] else f"the champion is {found['champion']}"
    title = f"version {found['version']} ({role}), {found['n_seen']:,} queries seen"
    weights = found["weights"].items()
    show(
        output,
        json=lambda: found,
        tsv=lambda: (("weight", name, repr(weight)) for name, weight in weights),
        table=lambda: print_table(title, ["ranker", "weight"], [(name, weight_text(w)) for name, w in weights]),
    )


group = typer.Typer(
    cls=ServeVerbs,
    help=described(TEXT, EXAMPLES),
    no_args_is_help=True,
    context_settings=SETTINGS,
    add_completion=False,
    rich_markup_mode=None,
)
add_verb(
    group, "run", run, summary="Serve.", text=RUN,
    examples=("genm serve model.json", "genm serve model.json --host 0.0.0.0 --tokens genm-tokens.json"),
)  # fmt: skip
add_verb(
    group, "check", check, summary="Replay a store and compare.",
    text="Replay the whole log: every version, outcome and alias must come out the same, to the last bit.",
    examples=("genm serve check --store model.sqlite",),
)  # fmt: skip
add_verb(
    group, "backup", backup, summary="Copy a store, also one in use.",
    text="Copy one consistent state of a store into a new file, while the service goes on.",
    examples=("genm serve backup --store model.sqlite -o backup.sqlite",),
)  # fmt: skip
add_verb(
    group, "restore", restore, summary="Make a store of a backup.",
    text="Check a backup and copy it into a new store, of whatever kind.",
    examples=("genm serve restore backup.sqlite --store model.sqlite",),
)  # fmt: skip
tokens = typer.Typer(
    help=described("Make, list and withdraw tokens. Only a hash of each is kept.", ("genm serve token list",)),
    short_help="Make, list and withdraw tokens.",
    no_args_is_help=True,
    context_settings=SETTINGS,
    add_completion=False,
    rich_markup_mode=None,
)
add_verb(
    tokens, "add", add_token, summary="Make a token.", text="Make a token and print it, once.",
    examples=("genm serve token add search-team --role fuse --role feedback",),
)  # fmt: skip
add_verb(
    tokens, "list", list_tokens, summary="List the tokens.", text="List names and roles.",
    examples=("genm serve token list",),
)  # fmt: skip
add_verb(
    tokens, "withdraw", withdraw_token, summary="Withdraw a token.",
    text="Withdraw a token; a running service refuses it at once.",
    examples=("genm serve token withdraw search-team",),
)  # fmt: skip
group.add_typer(tokens, name="token")
command = typer.main.get_command(group)
commands = {
    "feedback": make_verb(
        feedback,
        """Send every judged query of the runs to a service, which learns from it.

Keys are made of the content, so sending the same files again changes nothing.""",
        ("genm feedback --qrels new.qrels bm25=b.trec dense=d.trec",),
    ),
    "weights": make_verb(
        weights,
        "Show the weights that a service uses, or those of an older version; --set makes others the champion.",
        ("genm weights", "genm weights --version 3", "genm weights --set bm25=0.4,dense=0.6"),
    ),
    "rollback": make_verb(
        rollback,
        "Make an older version the champion of a service; learning goes on from it.",
        ("genm rollback 12",),
    ),
}
"""The verbs that talk to a service."""
