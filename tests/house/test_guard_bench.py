"""`bench.guard` measures every route of the application, and its table names each route."""

from __future__ import annotations

from pathlib import Path

from bench import guard
from cuota.web.app import ROUTES

TABLE = Path(__file__).resolve().parents[2] / "bench" / "GUARD.md"
MERCHANT = "0198a000-0000-7000-8000-000000000001"


def test_every_route_gets_every_attack() -> None:
    count = sum(len(route.methods.split()) for route in ROUTES)
    assert len(guard.targets(MERCHANT)) == len(guard.route_names()) == count
    assert not any("{" in path for _, path in guard.targets(MERCHANT))
    assert len(guard.attacks(MERCHANT)) > 100


def test_the_stored_table_of_results_has_every_route() -> None:
    for name in guard.route_names():
        assert f"| `{name}` |" in TABLE.read_text(), f"run python -m bench.guard: it knows nothing of {name}"
