"""Two rankings compared by the clicks on one interleaved list, and a test that may be looked at after every click.

Team-draft interleaving: Radlinski, Kurup and Joachims, "How does clickthrough data reflect retrieval quality?",
2008.
The test is a mixture of likelihood ratios: under no difference each list that one side wins is a fair coin, and the
mixture over all coins (a Beta(1/2, 1/2) prior) is a martingale with mean 1. By Ville's inequality it ever reaches
1 / alpha with a chance of at most alpha, so one may stop whenever it does.
"""

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import scipy

from genm._typing import Floats

ALPHA = 0.05
_PRIOR = 0.5


def team_draft(first: Sequence[str], second: Sequence[str], top: int, seed: str) -> tuple[list[str], list[int]]:
    """Return the interleaved list and which side (0 or 1) put each document there; the same seed, the same list."""
    sides = (first, second)
    at, picked = [0, 0], [0, 0]
    shown: list[str] = []
    teams: list[int] = []
    seen = set[str]()
    coins = _coins(seed)
    while len(shown) < top:
        for side in (0, 1):
            while at[side] < len(sides[side]) and sides[side][at[side]] in seen:
                at[side] += 1
        open_sides = [side for side in (0, 1) if at[side] < len(sides[side])]
        if not open_sides:
            break
        if len(open_sides) == 1:
            side = open_sides[0]
        elif picked[0] == picked[1]:
            side = next(coins)
        else:
            side = 0 if picked[0] < picked[1] else 1
        doc_id = sides[side][at[side]]
        shown.append(doc_id)
        teams.append(side)
        seen.add(doc_id)
        picked[side] += 1
    return shown, teams


def _coins(seed: str) -> Iterator[int]:
    """Yield fair coins from the seed, the same on every machine."""
    for block in count():
        for byte in hashlib.blake2b(f"{seed}:{block}".encode(), digest_size=32).digest():
            for bit in range(8):
                yield byte >> bit & 1


def credit(shown: Sequence[str], teams: Sequence[int], clicks: Collection[str]) -> int:
    """Return 1 if the first side got more clicks, -1 if the second did, 0 for a tie."""
    clicked = set(clicks)
    balance = sum(1 if team == 0 else -1 for doc_id, team in zip(shown, teams, strict=True) if doc_id in clicked)
    return (balance > 0) - (balance < 0)


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """How the comparison stands after the credits so far."""

    wins: int
    losses: int
    ties: int
    e_value: float
    p_value: float
    interval: tuple[float, float]

    @property
    def share(self) -> float | None:
        """Return the first side's share of the lists that one side won."""
        n = self.wins + self.losses
        return self.wins / n if n else None

    def verdict(self) -> str:
        """Say in words what the evidence allows to say."""
        if self.p_value > ALPHA:
            return "no difference shown so far"
        return "the first is better" if (self.share or 0.0) > 0.5 else "the second is better"


def sequential_test(outcomes: Sequence[int]) -> SequentialTest:
    """Test the credits in their order; ties say nothing about which side is better."""
    given = np.asarray(outcomes, np.int64)
    decided = given[given != 0]
    wins = np.cumsum(decided > 0).astype(np.float64)
    n = np.arange(1, len(decided) + 1, dtype=np.float64)
    logs = _log_mixture(wins, n - wins) + n * math.log(2.0)
    n_wins = int(wins[-1]) if len(decided) else 0
    losses = len(decided) - n_wins
    largest = float(logs.max(initial=0.0))
    return SequentialTest(
        wins=n_wins,
        losses=losses,
        ties=len(given) - len(decided),
        e_value=math.exp(min(float(logs[-1]), 700.0)) if len(decided) else 1.0,
        p_value=min(1.0, math.exp(-largest)),
        interval=_interval(n_wins, losses),
    )


def _log_mixture(wins: Floats | float, losses: Floats | float) -> Floats:
    """Return the logarithm of the chance of these outcomes, averaged over all coins."""
    betaln = scipy.special.betaln  # loaded at its first use; a service that only fuses starts without it
    return np.asarray(betaln(wins + _PRIOR, losses + _PRIOR) - betaln(_PRIOR, _PRIOR), np.float64)


def _interval(wins: int, losses: int) -> tuple[float, float]:
    """Return the shares that the mixture does not reject at this point: a confidence sequence."""
    grid = np.linspace(0.0, 1.0, 2001)[1:-1]
    kept = grid[_log_mixture(wins, losses) - wins * np.log(grid) - losses * np.log1p(-grid) < math.log(1.0 / ALPHA)]
    low, high = float(kept[0]), float(kept[-1])
    return (0.0 if low == grid[0] else low, 1.0 if high == grid[-1] else high)
