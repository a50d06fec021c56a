"""The sign-in and sign-out pages of the operator's dashboard."""

from __future__ import annotations

from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.passkey import Passkey
from cuota.core.refusal import Refused
from cuota.flows.context import Context
from cuota.flows.desk.sign_in import Place
from cuota.flows.desk.totp import app_address
from cuota.flows.operator import operator_sign_in as sign_in
from cuota.flows.operator.keep_operator_passkeys import (
    OperatorPasskeys,
    enter_operator_by_passkey,
    operator_passkeys_of_browser,
)
from cuota.flows.operator.operator_factor import new_operator_factor
from cuota.flows.operator.operator_sign_in import OperatorVisit
from cuota.web.ids import guid
from cuota.web.pages.desk.entrance import Entrance
from cuota.web.pages.desk.passkey_entrance import PasskeyEntrance
from cuota.web.pages.operator.visit import PATH, PLACE, PROVIDER, keep_cookie, visit_of
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of


class _OperatorDoor:
    path, place, cookie = PATH, PLACE, "operator-passkey"

    async def visit(self, request: Request) -> OperatorVisit | None:
        return await visit_of(request)

    def provider(self, request: Request) -> PageContext | None:
        rules = service_of(request).settings.provider_rules
        return None if rules is None else {"name": rules.name, "only": rules.only, "address": PROVIDER}

    def second_factors(self, visit: OperatorVisit) -> tuple[bool, bool]:
        return not visit.needs_passkey, visit.session.has_passkey

    async def ask_link(self, context: Context, email: str) -> None:
        await sign_in.ask_operator_link(context, email)

    def _link_id(self, request: Request) -> UUID | None:
        try:
            return guid(request.path_params["link_id"])
        except Refused:
            return None

    async def email_of_link(self, request: Request) -> str | None:
        link_id = self._link_id(request)
        if link_id is None:
            return None
        code = request.path_params["code"]
        person = await sign_in.read_operator_link(service_of(request).context, link_id, code)
        return None if person is None else person.email

    async def use_link(self, request: Request, place: Place) -> str | None:
        link_id = self._link_id(request)
        if link_id is None:
            return None
        code = request.path_params["code"]
        return await sign_in.enter_operator(service_of(request).context, link_id, code, place)

    async def new_app(self, context: Context, visit: OperatorVisit) -> tuple[str, str] | None:
        if visit.person.has_factor:
            return None
        key = await new_operator_factor(context, visit.session)
        return key, app_address(context, visit.person.email, key)

    async def finish(self, context: Context, visit: OperatorVisit, typed: str, place: Place) -> str | None:
        return await sign_in.finish_sign_in(context, visit, typed, place)

    async def leave(self, context: Context, visit: OperatorVisit) -> None:
        await sign_in.leave_operator(context, visit)

    def keep(self, request: Request, response: Response, text: str) -> None:
        keep_cookie(request, response, text)

    def passkeys(self, context: Context, secret: str, place: Place) -> OperatorPasskeys:
        return operator_passkeys_of_browser(context, secret, place.address)

    async def enter_by_passkey(
        self,
        context: Context,
        store: OperatorPasskeys,
        passkey: Passkey,
        before: OperatorVisit | None,
        place: Place,
    ) -> str:
        return await enter_operator_by_passkey(context, store, passkey, before, place)


_DOOR = _OperatorDoor()
ENTRANCE = Entrance(_DOOR)
BY_PASSKEY = PasskeyEntrance(_DOOR, ENTRANCE)
