"""`genm pull`: runs out of a live search engine."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb
from genm.errors import InputError
from genm.io import write_text

TEXT = """Ask a search engine every sub-query of every query, and write a run with raw scores for each ranker.

CONFIG is a TOML file: engine, address, index, credentials by environment variable or key ring, one template per
ranker in the engine's own query language with $query and $vector in it, and where queries come from. --init
writes a commented example; options replace the file's keys. What is finished is kept in the folder, so that
--resume goes on after an interruption. If searches fail, no run is written and the exit code is 2."""
EXAMPLES = (
    "genm pull --init opensearch pull.toml",
    "genm pull pull.toml -o runs/",
    "genm pull pull.toml -o runs/ --resume --rate 20 --concurrency 8",
    "genm pull pull.toml --queries searches.tsv --depth 200 --allow-partial",
)
SHOWN_FAILURES = 10


def engine_names() -> list[str]:
    """Return the engines' names, for completion."""
    from genm.connect.registry import ENGINES  # noqa: PLC0415 - loaded only to complete a word

    return list(ENGINES)


def pull(
    config: Annotated[
        str | None, typer.Argument(help="A TOML file; see --init.", metavar="CONFIG", show_default=False)
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the runs.", metavar="DIR")] = "runs",
    init: Annotated[
        str | None,
        typer.Option(
            help="Write an example for this engine to CONFIG, or print it.",
            metavar="ENGINE",
            autocompletion=engine_names,
        ),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Engine.", metavar="NAME", autocompletion=engine_names)] = None,
    address: Annotated[str | None, typer.Option(help="Where the engine is.", metavar="URL")] = None,
    index: Annotated[str | None, typer.Option(help="Index, collection, core or table.", metavar="NAME")] = None,
    rankers: Annotated[
        list[str] | None,
        typer.Option("--ranker", help="NAME=TEMPLATE, as JSON or SQL; may be repeated.", metavar="RANKER"),
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="Queries: TSV, JSON lines, topics, a BEIR folder.", metavar="FILE")
    ] = None,
    log: Annotated[str | None, typer.Option(help="Queries out of a query log.", metavar="FILE")] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Vectors: a file, or module:function.", metavar="FILE")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Documents per query and ranker.", metavar="N")] = None,
    texts: Annotated[
        list[str] | None, typer.Option(help="Fields whose texts are pulled along, comma-separated.", metavar="LIST")
    ] = None,
    id_field: Annotated[str | None, typer.Option(help="Field that holds the document id.", metavar="NAME")] = None,
    duplicates: Annotated[
        options.DuplicateRule | None,
        typer.Option(help="A document twice in a list: error, or keep max, first or last.", metavar="RULE"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE of the file, such as auth.user=me.", metavar="SETTING"),
    ] = None,
    user: Annotated[str | None, typer.Option(help="User; see --password.", metavar="NAME")] = None,
    password: Annotated[
        str | None, typer.Option(help="env:NAME or keyring:SERVICE/USER.", metavar="REFERENCE")
    ] = None,
    token: Annotated[str | None, typer.Option(help="Likewise, a bearer token.", metavar="REFERENCE")] = None,
    api_key: Annotated[str | None, typer.Option(help="Likewise, an API key.", metavar="REFERENCE")] = None,
    ca: Annotated[str | None, typer.Option(help="Certificate authority to trust.", metavar="FILE")] = None,
    cert: Annotated[str | None, typer.Option(help="This client's certificate.", metavar="FILE")] = None,
    key: Annotated[str | None, typer.Option(help="Its private key.", metavar="FILE")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not check certificates.")] = False,
    proxy: Annotated[str | None, typer.Option(help="Proxy.", metavar="URL")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Searches at once.", metavar="N")] = None,
    rate: Annotated[float | None, typer.Option(help="Searches a second at most.", metavar="X")] = None,
    retries: Annotated[int | None, typer.Option(help="Attempts after the first.", metavar="N")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for an answer.", metavar="X")] = None,
    page_size: Annotated[int | None, typer.Option(help="Documents per request.", metavar="N")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished pull.")] = False,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="Keep answers of a part of the index.")
    ] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Keep lists though the index changed.")
    ] = False,
    skip_failed: Annotated[
        bool, typer.Option("--skip-failed", help="Leave failed queries out of all runs.")
    ] = False,
    form: Annotated[
        console.Format, typer.Option("--format", help="Summary as table, tsv or json.", metavar="FORMAT")
    ] = console.Format.table,
) -> None:
    """Read the configuration, pull, and say what came."""
    if init is not None:
        _write_example(init, config)
        return
    given: dict[str, Any] = {
        "engine": engine, "address": address, "index": index, "queries": queries, "vectors": vectors,
        "depth": depth, "texts": None if texts is None else options.split_list(texts), "id_field": id_field,
        "duplicates": None if duplicates is None else duplicates.value, "proxy": proxy,
        "concurrency": concurrency, "rate": rate, "retries": retries, "timeout": timeout, "page_size": page_size,
        "auth.user": user, "auth.password": password, "auth.token": token, "auth.api_key": api_key,
        "tls.ca": ca, "tls.cert": cert, "tls.key": key, "tls.verify": False if insecure else None,
    }  # fmt: skip
    if log is not None:
        if queries is not None:
            raise InputError("--queries and --log: expected one of them. Leave one out.")
        given["queries"] = {"file": log, "format": "log"}
    document = _document(config, given, rankers or [], settings or [])
    parsed = genm.connect.read_config(document, place=config or "options")
    if not parsed.tls.verify:
        console.say("note: certificates are not checked: a server that pretends to be this one is not noticed.")
    try:
        with console.progress_bars() as progress:
            pulled = genm.connect.pull(
                parsed,
                output=output,
                progress=progress,
                inputs=() if config is None else (config,),
                resume=resume,
                allow_partial=allow_partial,
                allow_changes=allow_changes,
                skip_failed=skip_failed,
            )
    except genm.connect.PullError as error:
        _say_failures(error.failures)
        raise
    console.say_notes(pulled.notes)
    _say_failures(pulled.failures)
    for path in pulled.files:
        console.say(f"wrote {path}")
    _show(pulled, form)


def _write_example(engine: str, path: str | None) -> None:
    text = genm.connect.example_config(engine)
    if path is None or path == "-":
        console.print_lines(text.removesuffix("\n").split("\n"))
        return
    if Path(path).exists():
        raise InputError(f"{path}: expected a new file; found one that exists. Name another, or remove it.")
    write_text(path, text)
    console.say(f"wrote {path}")


def _document(path: str | None, given: dict[str, Any], rankers: list[str], settings: list[str]) -> dict[str, Any]:
    """Return the keys of the file with those of the options in their place."""
    document: dict[str, Any] = {} if path is None else genm.connect.read_toml(path)
    for name, value in given.items():
        if value is not None:
            _put(document, name, value)
    for item in settings:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise InputError(f"--set {item}: expected KEY=VALUE, such as auth.user=me.")
        _put(document, name, _toml_value(text))
    for item in rankers:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise InputError(f"--ranker {item}: expected NAME=TEMPLATE.")
        _put(document, f"rankers.{name}.search", text)
    return document


def _put(document: dict[str, Any], name: str, value: Any) -> None:
    *folders, last = name.split(".")
    for folder in folders:
        inner = document.setdefault(folder, {})
        if not isinstance(inner, dict):
            raise InputError(f"{name}: expected a table {folder}; found a value. See genm pull --init ENGINE")
        document = inner
    document[last] = value


def _toml_value(text: str) -> Any:
    """Return a value as TOML writes it; what TOML does not know is text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # also an integer of thousands of digits
        return text
    return found["value"] if len(found) == 1 else text


def _say_failures(failures: "tuple[genm.connect.Failure, ...]") -> None:
    for failure in failures[:SHOWN_FAILURES]:
        console.say(f"failed: {failure.ranker}, query {failure.query_id}: {failure.reason}")
    if len(failures) > SHOWN_FAILURES:
        console.say(f"failed: and {len(failures) - SHOWN_FAILURES:,} more searches")


def _show(pulled: "genm.connect.Pulled", form: console.Format) -> None:
    rows = [
        {
            "ranker": name,
            "queries": len(run.queries),
            "without documents": len(pulled.queries) - len(run.queries),
            "documents": len(run.doc),
            "partial": next((note.count for note in run.notes if note.code == "partial"), 0),
        }
        for name, run in pulled.runs.items()
    ]
    summary = {
        "rankers": rows,
        "queries": len(pulled.queries),
        "failures": [failure._asdict() for failure in pulled.failures],
        "files": [str(path) for path in pulled.files],
    }
    console.show(
        form,
        json=lambda: summary,
        tsv=lambda: ([str(value) for value in row.values()] for row in rows),
        table=lambda: console.print_table(
            "", list(rows[0]), [[str(value) for value in row.values()] for row in rows], left=1
        ),
    )


command = make_verb(pull, TEXT, EXAMPLES)
