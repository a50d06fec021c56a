"""The routes of passkeys, the same in both dashboards."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from cuota.web.pages.desk.passkey_entrance import PasskeyEntrance
from cuota.web.server.route import Area, Route


def passkey_routes(
    root: str, entrance: PasskeyEntrance[Any, Any], own: ModuleType, area: Area
) -> tuple[Route, ...]:
    """Return the rows for a dashboard at `root`. `own` has the handlers for the logged-in person's own passkeys."""
    return (
        Route("POST", f"{root}/sign-in/passkey/options", entrance.options, area),
        Route("POST", f"{root}/sign-in/passkey", entrance.enter, area),
        Route("POST", f"{root}/step-up/options", own.options_to_prove, area),
        Route("POST", f"{root}/step-up", own.prove_again, area),
        Route("GET", f"{root}/passkeys", own.listed, area),
        Route("POST", f"{root}/passkeys", own.add, area),
        Route("POST", f"{root}/passkeys/options", own.options_to_add, area),
        Route("GET", f"{root}/passkeys/{{passkey_id}}", own.one, area),
        Route("POST", f"{root}/passkeys/{{passkey_id}}", own.change, area),
    )
