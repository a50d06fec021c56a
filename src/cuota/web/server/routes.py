"""Finds the route of a request. This happens before admission, for every request, so it must be fast.

Fixed paths are found in one dictionary. Paths with parameters are matched against the few patterns that share their method,
first segment and last segment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from cuota.web.server.route import NOBODY, Area, Handler, Route

Match = Callable[[str], re.Match[str] | None]
UNKNOWN = "unknown"


class Routes:
    """An index of the route table. If several rows match, one with a fixed last segment wins, then the first row."""

    def __init__(self, table: Iterable[Route]) -> None:
        self.rows = rows = tuple(table)
        # Paths of the health checks.
        self.probes = frozenset(row.path for row in rows if row.probe)
        self._fixed: dict[tuple[str, str], Route] = {}
        # By method, first segment and last segment. The last segment is "" if it is a parameter.
        self._patterns: dict[tuple[str, str, str], list[tuple[Match, Route]]] = {}
        # Routes that answer 405, for a path that exists with another method.
        self._other_method: dict[str, Route] = {}
        self._other_method_patterns: dict[str, list[tuple[Match, Route]]] = {}
        # Routes that answer 404, by the first segment of the path. The area gives the error form.
        self._missing: dict[str, Route] = {}
        self._nowhere = _missing(Area(documented=True))
        for row in rows:
            self._add(row)
        for segment in {_segment(row.path) for row in rows}:
            areas = {row.area for row in rows if _segment(row.path) == segment}
            self._missing[segment] = _missing(_common(areas))

    def _add(self, row: Route) -> None:
        methods = row.methods.split()
        methods += ["HEAD"] if "GET" in methods else []
        segment, refusing = _segment(row.path), _not_allowed(row, methods)
        if "{" not in row.path:
            self._fixed.update({(method, row.path): row for method in methods})
            self._other_method.setdefault(row.path, refusing)
            return
        if "{" in segment:
            raise ValueError(
                f"The first segment of {row.path} must be fixed text, because routes are looked up by it."
            )
        match = compile_path(row.path)[0].fullmatch
        last = row.path.rpartition("/")[2]
        for method in methods:
            key = method, segment, "" if "{" in last else last
            self._patterns.setdefault(key, []).append((match, row))
        self._other_method_patterns.setdefault(segment, []).append((match, refusing))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and the parameters in the path. For a path that does not exist, the route answers 404."""
        route = self._fixed.get((method, path))
        if route is not None:
            return route, {}
        segment = path[1 : path.find("/", 1)]
        for last in (path.rpartition("/")[2], ""):
            for match, route in self._patterns.get((method, segment, last), ()):
                found = match(path)
                if found is not None:
                    return route, found.groupdict()
        return self._refusing(path), {}

    def _refusing(self, path: str) -> Route:
        """Return a route that answers 405 if the path exists with another method, and 404 if it does not exist."""
        if path in self._other_method:
            return self._other_method[path]
        segment, slash, _ = path[1:].partition("/")
        for match, route in self._other_method_patterns.get(segment, ()):
            if match(path) is not None:
                return route
        return self._missing.get(segment, self._nowhere) if slash else self._nowhere


def _segment(path: str) -> str:
    return path[1:].partition("/")[0]


def _common(areas: set[Area]) -> Area:
    """Return the area for unknown paths next to these areas: their one area, or a new one with their one party."""
    if len(areas) == 1:
        return areas.pop()
    parties = {area.party for area in areas} - {NOBODY}
    return Area(party=parties.pop() if len(parties) == 1 else NOBODY, documented=True)


def _missing(area: Area) -> Route:
    async def missing(_: Request) -> Response:
        raise HTTPException(404)

    return Route("", UNKNOWN, missing, area)


def _not_allowed(row: Route, methods: list[str]) -> Route:
    return replace(
        row, methods="", path=UNKNOWN, endpoint=_refusing_method(", ".join(sorted(methods))),
        creates=(), always=False, probe=False, by_client=False,
    )  # fmt: skip


def _refusing_method(allowed: str) -> Handler:
    async def not_allowed(_: Request) -> Response:
        raise HTTPException(405, headers={"Allow": allowed})

    return not_allowed
