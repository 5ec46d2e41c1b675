"""The whole story on data that every installation has: texts, runs, learned weights, a fused run, a table, a page.

The collection is made of the docstrings of numpy, scipy and scikit-learn: the query is a function's summary line,
the relevant documents are what its authors listed under "See Also". Nothing is downloaded.
"""

import subprocess
import sys
from pathlib import Path

OUT = Path("demo-out")
RANKERS = ("bm25", "tfidf", "lsa")  # the topic models are left out: they take minutes


def genm(*arguments: str) -> None:
    """Run a command as a user would, and show it."""
    print(f"\n$ genm {' '.join(arguments)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "genm", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    runs = [f"{name}={OUT / f'{name}.trec'}" for name in RANKERS]
    qrels, model, fused = str(OUT / "qrels.txt"), str(OUT / "model.json"), str(OUT / "fused.trec")
    genm("collections", "show", "pydocs")
    genm("rank", "pydocs", "--rankers", ",".join(RANKERS), "--top", "500", "--texts", "-o", str(OUT))
    genm("inspect", *runs, "--qrels", qrels)
    genm("fit", "--qrels", qrels, *runs, "-o", model)
    genm("fuse", "--model", model, *runs, "-o", fused)
    genm("fuse", "--method", "rrf", *runs, "-o", str(OUT / "rrf.trec"))
    genm("evaluate", qrels, *runs, f"rrf={OUT / 'rrf.trec'}", f"learned={fused}", "-m", "AP,P@1,nDCG@10")
    texts = ("--texts", str(OUT / "docs.tsv"), "--query-texts", str(OUT / "queries.tsv"))
    genm("report", "--model", model, "--qrels", qrels, *texts, *runs, "-o", str(OUT / "report.html"))
    print(
        "\nThe learned row of the table is measured on the queries it was learned from; the honest figures are the"
    )
    print(f"held-out ones of `genm fit`. Open {OUT / 'report.html'} in a browser to see it all on one page.")


if __name__ == "__main__":
    main()
