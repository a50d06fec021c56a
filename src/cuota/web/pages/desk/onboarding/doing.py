"""Makes a change that an onboarding form requests, and returns the errors of the form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.refusal import Code, Refused
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.onboarding.change_checklist import Hand
from cuota.web.pages.desk.onboarding.place import OnboardingPlace


async def done(place: OnboardingPlace, change: Callable[[Hand], Awaitable[object]]) -> dict[str, str]:
    """Check the second factor and the reason, and make the change. Return the errors; empty if the change was made."""
    if errors := await place.prove():
        return errors
    try:
        await change(place.hand())
    except BadOnboarding as bad:
        return bad.errors
    except BadTeam as bad:
        return {bad.name: str(bad)}
    except Refused as refused:
        if refused.code is not Code.BAD_FILE:
            raise
        return {"files": refused.message}
    return {}
