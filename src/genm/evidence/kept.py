"""What `genm fit` keeps beside a model, so that a report reads instead of refitting."""

from dataclasses import dataclass

from genm.align import Aligned
from genm.evidence.evidence import Evidence
from genm.evidence.fewer import FewerQueries, learn_from_fewer
from genm.evidence.fingerprints import fingerprint
from genm.evidence.resampling import Refits, refit_resampled
from genm.learn import Fuser
from genm.progress import Progress, silent


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The evidence, the refits, and whose they are."""

    rankers: tuple[str, ...]
    weights: tuple[float, ...]
    """The weights that all of it speaks of."""
    fingerprint: str
    """Of the data; see `genm.evidence.fingerprint`."""
    seed: int
    evidence: Evidence
    refits: Refits
    fewer: FewerQueries


def keep_evidence(
    aligned: Aligned, fuser: Fuser, evidence: Evidence, *, seed: int = 0, progress: Progress = silent
) -> Kept:
    """Refit on resampled and on fewer queries, and put everything together."""
    return Kept(
        rankers=aligned.rankers,
        weights=tuple(fuser.weights_.tolist()),
        fingerprint=fingerprint(aligned),
        seed=seed,
        evidence=evidence,
        refits=refit_resampled(aligned, fuser, seed=seed, progress=progress),
        fewer=learn_from_fewer(aligned, fuser, evidence, seed=seed, progress=progress),
    )
