"""The pages for a person's own passkeys: add, name and remove a passkey, and use a passkey instead of a fresh code.

Both dashboards have these pages. `OwnPasskeys` contains the differences.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.passkey import LONGEST_NAME, Passkey, read_passkey_name
from cuota.core.refusal import Refused
from cuota.flows.desk.check_passkey import (
    NAME,
    PasskeyPurpose,
    PasskeyRefused,
    PasskeyStore,
    begin_adding,
    begin_using,
    check_passkey,
    finish_adding,
)
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.passkey_answers import confirmed, options_answer, refusal
from cuota.web.pages.desk.view import when
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of


@dataclass(frozen=True, slots=True)
class OwnPasskeys:
    """A signed-in person of one dashboard, for these pages. `root` is the address of the list."""

    root: str
    store: PasskeyStore
    form: dict[str, str]
    asks_code: bool
    # Returns the values of the page's frame for this title and lead.
    frame: Callable[[str, str], PageContext]
    # Checks the second factor again, unless it is fresh. Returns the error for the form's field, if there is an error.
    prove: Callable[[], Awaitable[dict[str, str]]]
    # Records a fresh second factor.
    proved: Callable[[], Awaitable[None]]
    missing: Callable[[], Response]


_LEAD = "A passkey signs you in without an e-mail or a code. You unlock it as you unlock your device: by fingerprint, face or PIN."


async def listed(request: Request, own: OwnPasskeys, errors: dict[str, str] | None = None) -> Response:
    """List the passkeys, with a form to add one."""
    shown: PageContext = {
        **own.frame("Your passkeys", _LEAD),
        "passkey_script": True,
        "passkeys": [_row(each, own.root) for each in await own.store.mine()],
        "address": own.root,
        "asks_code": own.asks_code,
        "longest": LONGEST_NAME,
    }
    return page(request, "desk/passkeys.html", _with(shown, errors, own.form), status=400 if errors else 200)


def _with(shown: PageContext, errors: dict[str, str] | None, values: dict[str, str]) -> PageContext:
    if not errors:
        return shown
    named = {name: text for name, text in errors.items() if name}
    more = {"errors": named, "notice": errors.get(""), "notice_tone": "error"}
    return {**shown, **more, "values": {"name": values.get("name", "")}}


def _row(each: Passkey, root: str) -> PageContext:
    return {
        "name": each.name,
        "added": when(each.added_at),
        "used": when(each.used_at) if each.used_at else None,
        "address": f"{root}/{each.passkey_id}",
    }


async def options_to_add(request: Request, own: OwnPasskeys) -> Response:
    """Check the form and the second factor, and return the options for `navigator.credentials.create`."""
    if read_passkey_name(own.form.get("name", "")) is None:
        return refusal(NAME, "name")
    for name, text in (await own.prove()).items():
        return refusal(text, name)
    try:
        return options_answer(await begin_adding(service_of(request).context, own.store))
    except PasskeyRefused as refused:
        return refusal(str(refused), refused.name)


async def add(request: Request, own: OwnPasskeys) -> Response:
    """Add the passkey that the browser made."""
    errors = await own.prove()
    if not errors:
        passkey, name = own.form.get("passkey", ""), own.form.get("name", "")
        try:
            await finish_adding(service_of(request).context, own.store, passkey, name)
        except PasskeyRefused as refused:
            errors = {refused.name: str(refused)}
    if errors:
        return await listed(request, own, errors)
    return see_other(f"{own.root}?said=passkey-added")


async def _found(request: Request, own: OwnPasskeys) -> Passkey | None:
    """Return the passkey in the path, if it is the person's own."""
    try:
        return await own.store.one(guid(request.path_params["passkey_id"]))
    except Refused:
        return None


async def one(request: Request, own: OwnPasskeys) -> Response:
    """Show one passkey, with the form that names or removes it."""
    found = await _found(request, own)
    return own.missing() if found is None else await _one_page(request, own, found)


async def _one_page(
    request: Request, own: OwnPasskeys, found: Passkey, errors: dict[str, str] | None = None
) -> Response:
    shown: PageContext = {
        **own.frame(found.name, ""),
        "one": _row(found, own.root),
        "address": own.root,
        "asks_code": own.asks_code,
        "longest": LONGEST_NAME,
        "values": {"name": found.name},
    }
    return page(request, "desk/passkey.html", _with(shown, errors, own.form), status=400 if errors else 200)


async def change(request: Request, own: OwnPasskeys) -> Response:
    """Name or remove one passkey."""
    found = await _found(request, own)
    if found is None:
        return own.missing()
    name, do = read_passkey_name(own.form.get("name", "")), own.form.get("do", "")
    errors = {"name": NAME} if do == "rename" and name is None else await own.prove()
    if errors:
        return await _one_page(request, own, found, errors)
    if do == "remove":
        await own.store.remove(found)
        return see_other(f"{own.root}?said=passkey-removed")
    if do == "rename" and name is not None and name != found.name:
        await own.store.rename(found, name)
    return see_other(f"{own.root}?said=passkey-renamed")


async def options_to_prove(request: Request, own: OwnPasskeys) -> Response:
    """Return the options for a passkey that replaces a fresh code."""
    try:
        return options_answer(
            await begin_using(service_of(request).context, own.store, PasskeyPurpose.STEP_UP)
        )
    except PasskeyRefused as refused:
        return refusal(str(refused))


async def prove(request: Request, own: OwnPasskeys) -> Response:
    """Check a passkey that replaces a fresh code."""
    try:
        await check_passkey(
            service_of(request).context, own.store, PasskeyPurpose.STEP_UP, own.form.get("passkey", "")
        )
    except PasskeyRefused as refused:
        return refusal(str(refused))
    await own.proved()
    return confirmed()
