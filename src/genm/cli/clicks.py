"""`genm clicks`: judgments from a log of clicks."""

from typing import Annotated

import typer

import genm
from genm.cli import console, options
from genm.cli.app import make_verb

TEXT = """Turn a log of shown and clicked documents into judgments.

Reads OpenSearch User Behavior Insights (JSON lines of ubi_queries and ubi_events), JSON lines of query, docs and
clicks, or CSV with query, doc_id, position and clicked, also compressed; any size in bounded memory. A click model
removes the bias of positions: pbm (a model of positions; documents shown at several positions are used where there
are enough), dbn (dynamic Bayesian network) or coec (clicks over expected clicks, a baseline). Queries with too
little evidence are left out and counted.

-o writes TREC lines with grades 0 to 3; a name ending in .csv or .tsv gets fractions from 0 to 1 instead, with
source, confidence and the probability of relevance. `genm fit --grades from=0.5` reads the fractions, and
`genm fit --method expected --grades probability` the probabilities. Queries that are texts with spaces need such a
table, or their ids from --queries."""
EXAMPLES = (
    "genm clicks ubi_queries.jsonl ubi_events.jsonl -o clicks.csv",
    "genm clicks log.csv.gz --queries queries.tsv --model dbn -o clicks.qrels",
)


def clicks(
    logs: Annotated[list[str], typer.Argument(help="Logs, read one after the other.", metavar="LOG")],
    output_file: options.OutputFile,
    model: Annotated[str, typer.Option(help="pbm, dbn or coec.", metavar="NAME")] = "pbm",
    queries: Annotated[
        str | None, typer.Option(help="Ids of the queries: lines of id, tab, text.", metavar="FILE")
    ] = None,
    least_lists: Annotated[int, typer.Option(help="Lists shown that a query needs.", metavar="N")] = 10,
    least_clicks: Annotated[int, typer.Option(help="Clicks that a query needs.", metavar="N")] = 3,
    output: console.Output = console.Format.table,
) -> None:
    """Read, estimate, write, print."""
    options.check_output(output_file, (*logs, queries))
    found = genm.judge.judge_by_clicks(logs, model=model, least_lists=least_lists, least_clicks=least_clicks)
    if queries is not None:
        found = genm.judge.with_query_ids(found, queries)
    genm.judge.write_click_judgments(found, output_file)
    console.say_notes(found.notes)
    if output_file != options.STDIN:
        console.show(
            output,
            json=lambda: _json(found),
            tsv=lambda: ((str(key), str(value)) for key, value in _facts(found).items()),
            table=lambda: console.print_table(
                f"Judgments by {found.model}",
                ["what", "number"],
                [(key, f"{value:,}") for key, value in _facts(found).items()],
            ),
        )
        console.say(f"wrote {output_file}")


def _facts(found: "genm.judge.ClickJudgments") -> dict[str, int]:
    return {
        "judgments": len(found.judgments),
        "queries": found.n_queries,
        "queries left out": found.n_left_out,
        "lists read": found.n_lists,
    }


def _json(found: "genm.judge.ClickJudgments") -> dict[str, object]:
    facts = {key.replace(" ", "_"): value for key, value in _facts(found).items()}
    notes = [note.text for note in found.notes]
    return {"model": found.model, **facts, "examination": list(found.examination), "notes": notes}


command = make_verb(clicks, TEXT, EXAMPLES)
