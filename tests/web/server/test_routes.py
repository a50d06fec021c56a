"""The table of routes: each request finds its row, and a row contains everything about its route."""

from __future__ import annotations

import itertools
from uuid import UUID

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Plain

from cuota.web import app
from cuota.web.app import ROUTES
from cuota.web.error_form import PROBLEM
from cuota.web.server.admission import FREE, Admission
from cuota.web.server.edge import Edge
from cuota.web.server.route import Area, Port, Route
from cuota.web.server.routes import Routes
from support.makers import Running

TABLE = Routes(ROUTES)
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT")
ID = "01990000-0000-7000-8000-000000000001"


def paths() -> set[str]:
    """Return every path of the table, filled in, and similar paths: shorter, longer, and with other words."""
    filled = set()
    for row in ROUTES:
        for value in (ID, "pay", "code", "reference", "x.js"):
            parts = [
                part.partition("{")[0] + value + part.partition("}")[2] if "{" in part else part
                for part in row.path.split("/")
            ]
            filled |= {"/".join(parts[:count]) for count in range(2, len(parts) + 1)} | {
                "/".join([*parts, "x"])
            }
    return filled | {"/", "//", "/nowhere", "/order//capture", "//order", "/Order", "/order/x/y/z", "/%2e"}


async def _nothing(_: Request) -> Response:
    raise NotImplementedError


STARLETTE_ROUTES = [(row, Plain(row.path, _nothing, methods=row.methods.split())) for row in ROUTES]


def chosen(method: str, path: str) -> tuple[str, object]:
    """Return the result of Starlette's router for the same table: the row and the parameters, or the status."""
    partly = None
    for row, plain in STARLETTE_ROUTES:
        match, found = plain.matches({"type": "http", "method": method, "path": path, "path_params": {}})
        if match is Match.FULL:
            return row.path, found["path_params"]
        if match is Match.PARTIAL and partly is None:
            partly = row
    if partly is None:
        return "404", None
    methods = set(partly.methods.split())
    return "405", methods | ({"HEAD"} if "GET" in methods else set())


async def test_every_request_finds_the_row_that_starlette_s_router_finds_in_the_table() -> None:
    found_statuses = set()
    for method, path in itertools.product(METHODS, sorted(paths())):
        route, params = TABLE.find(method, path)
        found: tuple[str, object] = route.path, params
        if not route.is_known:
            with pytest.raises(HTTPException) as told:
                await route.endpoint(Request({"type": "http"}))
            allowed = (told.value.headers or {}).get("Allow")
            found = str(told.value.status_code), None if allowed is None else set(allowed.split(", "))
            found_statuses.add(found[0])
        assert found == chosen(method, path), (method, path)
    assert found_statuses == {"404", "405"}


@pytest.mark.parametrize(
    ("path", "area"),
    [
        (f"/checkout/{ID}/{ID}/a/b", app.CHECKOUT), ("/account/a/b", app.ACCOUNT), ("/docs/a/b", app.DOCS),
        (f"/checkout/{ID}/{ID}/pay", app.CHECKOUT), ("/account/phone", app.ACCOUNT), ("/order", app.API),
    ],
)  # fmt: skip
def test_a_path_or_method_that_does_not_exist_is_refused_in_the_form_of_its_area(
    path: str, area: Area
) -> None:
    route, _ = TABLE.find("PUT", path)
    assert not route.is_known
    assert route.area is area


def test_an_unknown_path_between_areas_with_different_error_forms_is_refused_in_json() -> None:
    for path in ("/nowhere", "/checkout", "/orders/x", "/sdk/x", "//"):
        assert TABLE.find("GET", path)[0].area.errors is PROBLEM


def test_only_the_right_method_of_a_row_creates_or_is_always_answered() -> None:
    for method, path in (("PUT", "/health/live"), ("DELETE", "/order"), ("GET", "/sdk/v1/checkouts")):
        route, _ = TABLE.find(method, path)
        assert (route.always, route.creates, route.by_client) == (False, (), False)


def test_a_route_cannot_begin_with_a_parameter() -> None:
    with pytest.raises(ValueError, match="must be fixed text"):
        Routes([Route("GET", "/{shop}/x", _nothing, Area())])


async def test_a_page_is_added_by_adding_only_its_row(service: Running) -> None:
    async def help_page(request: Request) -> Response:
        return Response(f"help for {request.path_params['topic']}")

    row = Route("GET", "/account/help/{topic}", help_page, app.ACCOUNT)
    edge = Edge(Routes([*ROUTES, row]), service.app.service)
    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    async def ask(method: str) -> tuple[int, bytes]:
        sent.clear()
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": "/account/help/cards", "query_string": b"",
            "headers": [(b"host", b"x")], "scheme": "http", "server": ("x", 80), "root_path": "",
        }  # fmt: skip
        await edge(scope, None, send)
        return sent[0]["status"], sent[1]["body"]

    assert await ask("GET") == (200, b"help for cards")
    status, body = await ask("POST")
    assert status == 405
    assert b"See your plans" in body


def test_a_row_says_which_port_serves_the_route() -> None:
    apart = {row.path for row in ROUTES if row.port is not Port.PUBLIC}
    assert apart == {"/health/live", "/health/ready", "/metrics"}
    assert TABLE.probes == {"/health/live", "/health/ready"}


def test_a_route_that_is_always_answered_takes_no_place() -> None:
    for row in ROUTES:
        for method in row.methods.split():
            admission = Admission()
            scope = {"method": method, "path": row.path, "headers": [], "route": row, "path_params": {}}
            place = admission.enter(scope)
            assert (place is FREE) == row.always
            assert admission.in_hand == (0 if row.always else 1)


def test_a_consumer_s_request_counts_for_the_merchant_in_the_path_once_that_merchant_is_known() -> None:
    parties, merchant = Admission().parties, str(UUID(ID))
    route, params = TABLE.find("GET", f"/checkout/{ID}/{ID}")
    assert parties.of(route.area, params, 7) == "checkout"
    parties.remember(7, merchant)
    assert parties.of(route.area, params, 0) == f"/checkout/{merchant}"
    assert parties.is_merchant(parties.of(route.area, params, 0))
