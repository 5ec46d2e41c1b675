"""Try an installed genm from the outside: version, fit, fuse, evaluate, export, report.

Run it by the Python of a clean environment that holds the wheel and nothing else, from any folder:
`python .ci/try_wheel.py`. It fails if a command fails, or if genm is not imported from an installed package.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import genm


def write_sample(folder: Path, n_queries: int = 12, n_docs: int = 20) -> None:
    """Write two runs and judgments in which each ranker sees its own part of the relevance."""
    draw = random.Random(7)
    lines: dict[str, list[str]] = {"bm25.trec": [], "dense.trec": [], "qrels.txt": []}
    for query in range(1, n_queries + 1):
        grades = {f"d{doc:02}": int(draw.random() < 0.3) for doc in range(n_docs)}
        lines["qrels.txt"] += [f"{query} 0 {doc} {grade}" for doc, grade in grades.items()]
        for name in ("bm25", "dense"):
            scores = {doc: grade + draw.gauss(0, 0.8) for doc, grade in grades.items()}
            ranked = sorted(scores, key=scores.__getitem__, reverse=True)
            lines[f"{name}.trec"] += [
                f"{query} Q0 {doc} {rank} {scores[doc]:.6f} {name}" for rank, doc in enumerate(ranked, 1)
            ]
    for file, content in lines.items():
        (folder / file).write_text("\n".join(content) + "\n", encoding="utf-8")


def run(folder: Path, *words: str) -> str:
    """Run one command as a user would, return what it prints."""
    call = [sys.executable, "-m", "genm", *words]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"genm {' '.join(words)} failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Go through the main job once."""
    home = Path(genm.__file__).parent
    if "site-packages" not in home.parts:
        raise SystemExit(f"expected an installed genm; found the one in {home}")
    runs = ("bm25.trec", "dense.trec")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(folder)
        shown = run(folder, "--version")
        if genm.__version__ not in shown:
            raise SystemExit(f"expected version {genm.__version__}; found {shown!r}")
        fit = ("fit", "--target", "opensearch", "--qrels", "qrels.txt", *runs, "-o", "model.json")
        run(folder, *fit)
        weights = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        run(folder, "fuse", "--model", "model.json", *runs, "-o", "fused.trec")
        run(folder, "evaluate", "qrels.txt", *runs, "fused.trec", "-m", "AP,nDCG@10")
        run(folder, "export", "--to", "opensearch", "model.json", "-o", "request.json")
        run(folder, "report", "--model", "model.json", "--qrels", "qrels.txt", *runs, "-o", "report.html")
        size = (folder / "report.html").stat().st_size
    sys.stdout.write(f"genm {genm.__version__}: fit, fuse, evaluate, export and report work ")
    sys.stdout.write(f"({len(weights)} fields in the model, {size} bytes of report)\n")


if __name__ == "__main__":
    main()
