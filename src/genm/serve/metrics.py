"""Figures for Prometheus and for the page: counters, latencies, and the state of the weights."""

import os
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_KEPT = 1000


class Latency:
    """A histogram for Prometheus, and the newest values for quantiles."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKETS) + 1)
        self.total = 0.0
        self.newest: deque[float] = deque(maxlen=_KEPT)

    def add(self, seconds: float) -> None:
        """Count one request."""
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.total += seconds
        self.newest.append(seconds)

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the newest requests in seconds."""
        if not self.newest:
            return None
        ordered = sorted(self.newest)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Metrics:
    """What happened since the service started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.latencies: dict[str, Latency] = {}
        self.events: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests[route, status] += 1
        if route not in self.latencies:
            self.latencies[route] = Latency()
        self.latencies[route].add(seconds)

    def text(self, gauges: Mapping[str, tuple[str, Mapping[str, float]]]) -> str:
        """Return everything in Prometheus' text format; a gauge has a help text and values by label."""
        return "\n".join([*self._requests(), *self._events(), *_gauges(gauges), *_process()]) + "\n"

    def _requests(self) -> Iterator[str]:
        yield "# HELP genm_requests_total Requests by route and status."
        yield "# TYPE genm_requests_total counter"
        for (route, status), n in sorted(self.requests.items()):
            yield f'genm_requests_total{{route="{route}",status="{status}"}} {n}'
        yield "# HELP genm_request_seconds Time from the first byte to the answer."
        yield "# TYPE genm_request_seconds histogram"
        for route, latency in sorted(self.latencies.items()):
            total = 0
            for bound, n in zip((*_BUCKETS, "+Inf"), latency.counts, strict=True):
                total += n
                yield f'genm_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'genm_request_seconds_sum{{route="{route}"}} {latency.total!r}'
            yield f'genm_request_seconds_count{{route="{route}"}} {total}'

    def _events(self) -> Iterator[str]:
        yield "# HELP genm_events_total Acknowledged events by outcome."
        yield "# TYPE genm_events_total counter"
        for outcome, n in sorted(self.events.items()):
            yield f'genm_events_total{{outcome="{outcome}"}} {n}'


def _gauges(gauges: Mapping[str, tuple[str, Mapping[str, float]]]) -> Iterator[str]:
    for name, (text, values) in gauges.items():
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        for label, value in values.items():
            yield f"{name}{label} {value!r}"


def label(name: str, value: str) -> str:
    """Return a label with its value quoted."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{{{name}="{quoted}"}}'


def _process() -> Iterator[str]:
    """Yield memory and open files where the system tells them."""
    statm, fds = Path("/proc/self/statm"), Path("/proc/self/fd")
    if statm.exists():
        resident = int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        yield "# TYPE process_resident_memory_bytes gauge"
        yield f"process_resident_memory_bytes {resident}"
    if fds.exists():
        yield "# TYPE process_open_fds gauge"
        yield f"process_open_fds {len(list(fds.iterdir()))}"
