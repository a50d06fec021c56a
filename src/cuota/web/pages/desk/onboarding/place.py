"""The differences between the two dashboards for the onboarding pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Refused
from cuota.flows.onboarding.change_checklist import Hand
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop
from cuota.web.pages.render import PageContext


@dataclass(frozen=True, slots=True)
class OnboardingPlace:
    """The onboarding of one merchant in one dashboard. `root` is the address of the checklist.

    `theirs`: the person belongs to the merchant's team, and sees everything. The operator's people see masked names, and each
    of their forms asks for a reason and a fresh code.
    """

    root: str
    merchant_id: UUID
    form: dict[str, str]
    files: tuple[tuple[str, bytes], ...]
    theirs: bool
    asks_code: bool
    # Returns the values of the page's frame for this title and lead.
    frame: Callable[[str, str], PageContext]
    # Checks the second factor if this dashboard requires one. Returns the errors by the form's field.
    prove: Callable[[], Awaitable[dict[str, str]]]
    # Returns the actor of a change. Raises BadTeam if a reason is missing.
    hand: Callable[[], Hand]
    missing: Callable[[], Response]

    def id_in_path(self, request: Request, name: str) -> UUID:
        """Return the id in the path. Raises Stop with the 404 page if the id is malformed."""
        try:
            return guid(request.path_params[name])
        except Refused:
            raise Stop(self.missing()) from None

    def shown(
        self, title: str, lead: str, values: dict[str, str], errors: dict[str, str] | None, **more: object
    ) -> PageContext:
        """Return the values of a page with a form. If there are errors, the typed values stay in the form."""
        page: PageContext = {
            **self.frame(title, lead),
            "address": self.root,
            "asks_reason": not self.theirs,
            "asks_code": self.asks_code,
            "values": {**values, **self.form} if errors else values,
            **more,
        }
        if errors:
            named = {name: text for name, text in errors.items() if name}
            page |= {"errors": named, "notice": errors.get(""), "notice_tone": "error"}
        return page


OnboardingHandler = Callable[[Request, OnboardingPlace], Awaitable[Response]]
