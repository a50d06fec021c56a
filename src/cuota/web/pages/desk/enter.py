"""The sign-in and sign-out pages of the merchant's dashboard."""

from __future__ import annotations

from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.passkey import Passkey
from cuota.core.refusal import Refused
from cuota.db.row_security import narrow
from cuota.flows.context import Context
from cuota.flows.desk import sign_in
from cuota.flows.desk.factor import factor_address, new_factor
from cuota.flows.desk.keep_passkeys import DeskPasskeys, enter_by_passkey, passkeys_of_browser
from cuota.flows.desk.sign_in import DeskVisit, Place
from cuota.web.ids import guid
from cuota.web.pages.desk.entrance import Entrance
from cuota.web.pages.desk.passkey_entrance import PasskeyEntrance
from cuota.web.pages.desk.visit import PATH, PLACE, keep_cookie, visit_of
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of


class _DeskDoor:
    path, place, cookie = PATH, PLACE, "desk-passkey"

    async def visit(self, request: Request) -> DeskVisit | None:
        return await visit_of(request)

    def provider(self, request: Request) -> PageContext | None:
        del request
        return None

    def second_factors(self, visit: DeskVisit) -> tuple[bool, bool]:
        del visit
        return True, False

    async def ask_link(self, context: Context, email: str) -> None:
        await sign_in.ask_link(context, email)

    def _ids(self, request: Request) -> tuple[UUID, UUID] | None:
        try:
            merchant_id, link_id = (
                guid(request.path_params["merchant_id"]),
                guid(request.path_params["link_id"]),
            )
        except Refused:
            return None
        narrow(merchant_id)
        return merchant_id, link_id

    async def email_of_link(self, request: Request) -> str | None:
        ids = self._ids(request)
        if ids is None:
            return None
        person = await sign_in.read_link(service_of(request).context, *ids, request.path_params["code"])
        return None if person is None else person.email

    async def use_link(self, request: Request, place: Place) -> str | None:
        ids = self._ids(request)
        if ids is None:
            return None
        secret = await sign_in.enter(service_of(request).context, *ids, request.path_params["code"], place)
        return None if secret is None else f"{ids[0].hex}.{secret}"

    async def new_app(self, context: Context, visit: DeskVisit) -> tuple[str, str] | None:
        if visit.person.has_factor:
            return None
        key = await new_factor(context, visit.session)
        return key, factor_address(context, visit.person, key)

    async def finish(self, context: Context, visit: DeskVisit, typed: str, place: Place) -> str | None:
        secret = await sign_in.finish(context, visit, typed, place)
        return None if secret is None else f"{visit.merchant_id.hex}.{secret}"

    async def leave(self, context: Context, visit: DeskVisit) -> None:
        await sign_in.leave(context, visit)

    def keep(self, request: Request, response: Response, text: str) -> None:
        keep_cookie(request, response, text)

    def passkeys(self, context: Context, secret: str, place: Place) -> DeskPasskeys:
        return passkeys_of_browser(context, secret, place.address)

    async def enter_by_passkey(
        self, context: Context, store: DeskPasskeys, passkey: Passkey, before: DeskVisit | None, place: Place
    ) -> str:
        merchant_id, secret = await enter_by_passkey(context, store, passkey, before, place)
        return f"{merchant_id.hex}.{secret}"


_DOOR = _DeskDoor()
ENTRANCE = Entrance(_DOOR)
BY_PASSKEY = PasskeyEntrance(_DOOR, ENTRANCE)
