"""Turns what clef counted into the text of GET /metrics, in the format of Prometheus.

Counting is a few additions a request, in plain Python; the library is imported when somebody looks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Scope

from clef.engines.engine import EngineFacts
from clef.engines.line import SECONDS, Durations, Lane, Line

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PHASES = ("off", "starting", "loading", "ready", "failed")
LANES: tuple[Lane, ...] = ("live", "background")
OTHER = "other"
"""Label of every path that is no route, whatever strangers ask for."""


EXAMPLE = """\
# HELP clef_requests_total Requests
# TYPE clef_requests_total counter
clef_requests_total{method="POST",route="/v1/systemone",status="200"} 1.0
# HELP clef_input_tokens_total Tokens read by the engine, as it counts them
# TYPE clef_input_tokens_total counter
clef_input_tokens_total 32.0
# HELP clef_engine_phase 1 for the phase the engine is in
# TYPE clef_engine_phase gauge
clef_engine_phase{engine="builtin",phase="ready"} 1.0
"""
"""Some lines of an answer."""
REPLIES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": EXAMPLE}}}
}


class Requests:
    """Counts requests by route and status, and their durations by route."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.durations: defaultdict[str, Durations] = defaultdict(Durations)

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one that has been answered."""
        route = route_of(scope)
        self.counts[scope["method"] if route != OTHER else OTHER, route, status] += 1
        self.durations[route].add(seconds)


def route_of(scope: Scope) -> str:
    """The route of a request as it is declared, such as /api/runs/{run_id}."""
    if scope["path"].startswith("/v1/"):
        return scope["path"] if scope["path"] in ("/v1/systemone", "/v1/decisions", "/v1/models") else OTHER
    return getattr(scope.get("route"), "path", None) or ("/static" if scope["path"].startswith("/static/") else OTHER)


def metrics_router() -> APIRouter:
    """GET /metrics."""
    router = APIRouter(tags=["Operation"])

    @router.get("/metrics", response_class=Response, responses=REPLIES)
    async def metrics(request: Request) -> Response:
        """Requests, latency, the line, tokens, the engine's phase and its restarts, for Prometheus."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        state = request.app.state
        status = await state.engine.status() if hasattr(state.engine, "status") else None
        starts = status.child.starts if status is not None and status.child is not None else 0
        registry = CollectorRegistry()
        registry.register(_Collector(state.requests, state.line, await state.engine.facts(), starts))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


class _Collector:
    """What is to be told, as the library wants it."""

    def __init__(self, requests: Requests, line: Line, facts: EngineFacts, starts: int) -> None:
        self._requests, self._line, self._facts, self._starts = requests, line, facts, starts

    def collect(self) -> Iterator["Metric"]:
        """Every metric."""
        yield from self._of_requests()
        yield from self._of_the_line()
        yield from self._of_the_engine()

    def _of_requests(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        counts = CounterMetricFamily("clef_requests", "Requests", labels=["method", "route", "status"])
        for (method, route, status), count in self._requests.counts.items():
            counts.add_metric([method, route, str(status)], count)
        yield counts
        seconds = HistogramMetricFamily("clef_request_seconds", "Time until the answer was sent", labels=["route"])
        for route, durations in self._requests.durations.items():
            seconds.add_metric([route], *_histogram(durations))
        yield seconds

    def _of_the_line(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        line = self._line
        waiting = GaugeMetricFamily("clef_line_waiting", "Decisions that wait for the engine", labels=["lane"])
        inside = GaugeMetricFamily("clef_line_inside", "Decisions in the engine", labels=["lane"])
        ended = CounterMetricFamily("clef_decisions", "Decisions, by how they ended", labels=["lane", "result"])
        for lane in LANES:
            waiting.add_metric([lane], line.waiting(lane))
            inside.add_metric([lane], line.inside[lane])
        for (lane, result), count in line.ended.items():
            ended.add_metric([lane, result], count)
        seconds = HistogramMetricFamily("clef_decision_seconds", "Time of a decision in the engine")
        seconds.add_metric([], *_histogram(line.durations))
        yield from (waiting, inside, ended, seconds)
        yield CounterMetricFamily("clef_input_tokens", "Tokens read by the engine, as it counts them", line.tokens)

    def _of_the_engine(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        phase = GaugeMetricFamily("clef_engine_phase", "1 for the phase the engine is in", labels=["engine", "phase"])
        for name in PHASES:
            phase.add_metric([self._facts.kind, name], float(name == self._facts.phase))
        yield phase
        restarts = max(0, self._starts - 1)
        yield CounterMetricFamily("clef_engine_restarts", "Times llama.cpp was started again", restarts)


def _histogram(durations: Durations) -> tuple[Sequence[Any], float]:
    """The ranges with what fell into them or below, and the sum of all."""
    below, ranges = 0, []
    for end, count in zip((*map(str, SECONDS), "+Inf"), durations.counts, strict=True):
        below += count
        ranges.append((end, below))
    return ranges, durations.total_s
