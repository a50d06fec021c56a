"""The merchant's credentials and secrets. A new secret is shown once, on the page that answers the form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.credential import SCOPE_WORDS, Scope, credential_name
from cuota.core.desk.role import Action
from cuota.db.merchant import merchants
from cuota.db.merchant import secrets as merchant_secrets
from cuota.db.merchant.credentials import Credential
from cuota.db.merchant.secrets import SecretKind
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.merchant import manage_credentials as manage
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.merchant.rotate_secrets import end_old_secret, rotate_merchant_secret
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common, failed, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

DEVELOPERS = f"{PATH}/developers"
# The labels and values of new secrets; empty if there is nothing to show.
Shown = list[tuple[str, str]]
_KINDS = {
    SecretKind.SIGNING: ("Signing secret", "Your server uses it to sign what the browser SDK and the gateway send."),
    SecretKind.WEBHOOK: ("Webhook secret", "Your server uses it to verify the events for the callback address of an order."),
}  # fmt: skip


@allowed(Action.READ_KEYS)
async def developers(request: Request, desk: Desk) -> Response:
    """List the credentials and the secrets, without the text of any secret."""
    return await developers_page(request, desk)


async def developers_page(request: Request, desk: Desk, errors: dict[str, str] | None = None) -> Response:
    """Return the page. `errors` are those of the form that was sent."""
    context = service_of(request).context
    merchant = await merchants.read(context.pool, desk.merchant_id)
    live = await manage.live_credentials(context, desk.merchant_id)
    shown: PageContext = {
        **common(
            request, desk, "Developers", here=DEVELOPERS, lead="What your servers need to call the API."
        ),
        "audience": context.settings.audience,
        "token_address": f"{context.settings.auth_url}/oauth/token",
        "merchant_id": str(desk.merchant_id),
        "rows": [_row(each) for each in live],
        "secrets": [await _secret(context, desk, kind) for kind in _KINDS],
        "origins": merchant.origins if merchant else (),
        "scopes": [
            {"value": scope.value, "label": f"{label}: {may}"} for scope, (label, may) in SCOPE_WORDS.items()
        ],
        "may_change": desk.may(Action.CHANGE_KEYS),
        "asks_code": not desk.fresh,
        "values": {"scope": Scope.READ.value},
    }
    if errors:
        return page(request, "desk/developers.html", failed(shown, errors, desk.form), status=400)
    return page(request, "desk/developers.html", shown)


def _row(each: Credential) -> PageContext:
    old = each.old_secret_ends_at
    return {
        "id": each.client_id,
        "name": credential_name(each.name),
        "scope": SCOPE_WORDS[each.scope][0],
        "since": when(each.created_at),
        "old": when(old) if old and old > utc_now() else None,
    }


async def _secret(context: Context, desk: Desk, kind: SecretKind) -> PageContext:
    old = await merchant_secrets.old_ends_at(context.pool, desk.merchant_id, kind)
    label, words = _KINDS[kind]
    return {
        "kind": kind.value,
        "label": label,
        "words": words,
        "old": when(old) if old and old > utc_now() else None,
    }


@allowed(Action.READ_KEYS, Action.CHANGE_KEYS)
async def change(request: Request, desk: Desk) -> Response:
    """Add, replace, end or revoke.

    Each needs a reason and a fresh code, and is written into the audit log before it is done.
    """
    reason = " ".join(desk.form.get("reason", "").split())
    errors = await prove(request, desk)
    if not errors and not reason:
        errors = {"reason": "Say why, in a few words. The audit log keeps the reason."}
    if errors:
        return await developers_page(request, desk, errors)
    context, act = service_of(request).context, _ACTS.get(desk.form.get("do", ""))
    if act is None:
        return await developers_page(request, desk, {"": "Choose what to change."})
    try:
        new = await act(context, desk, reason)
    except BadMerchant as bad:
        await _log(context, desk, "keys.refused", str(bad), reason)
        return await developers_page(request, desk, {"": str(bad)})
    if not new:
        return see_other(f"{DEVELOPERS}?said=keys")
    lead = "Copy these now. They are not shown again."
    shown: PageContext = {
        **common(request, desk, "New secret", here=DEVELOPERS, lead=lead),
        "secrets": new,
        "back": DEVELOPERS,
    }
    return page(request, "desk/new_secret.html", shown)


async def _log(
    context: Context, desk: Desk, action: str, subject: str, reason: str, after: dict[str, str] | None = None
) -> None:
    await record(context, desk.merchant_id, desk.actor, AuditNote(action, subject, reason, after=after))


async def _add(context: Context, desk: Desk, reason: str) -> Shown:
    asked = desk.form.get("scope", "")
    if asked not in set(Scope):
        raise BadMerchant("Choose what the credential may do.")
    name = manage.read_credential_name(desk.form.get("name", ""))
    await _log(context, desk, "keys.add", f"Credential {name}", reason, {"scope": asked})
    client_id, secret = await manage.add_credential(context, desk.merchant_id, name, Scope(asked))
    return [("client_id", client_id), ("client_secret", secret)]


async def _found(context: Context, desk: Desk) -> tuple[Credential, str]:
    found = await manage.find_credential(context, desk.merchant_id, desk.form.get("client_id", ""))
    return found, f"Credential {credential_name(found.name)} ({found.client_id})"


async def _replace(context: Context, desk: Desk, reason: str) -> Shown:
    found, subject = await _found(context, desk)
    await _log(context, desk, "keys.replace", subject, reason)
    return [("client_id", found.client_id), ("client_secret", await manage.replace_secret(context, found))]


async def _replace_lost(context: Context, desk: Desk, reason: str) -> Shown:
    found, subject = await _found(context, desk)
    await _log(context, desk, "keys.replace-lost", subject, reason)
    return [("client_id", found.client_id), ("client_secret", await manage.replace_lost(context, found))]


async def _end_old(context: Context, desk: Desk, reason: str) -> Shown:
    found, subject = await _found(context, desk)
    await _log(context, desk, "keys.end-old", subject, reason)
    await manage.end_old(context, found)
    return []


async def _revoke(context: Context, desk: Desk, reason: str) -> Shown:
    found, subject = await _found(context, desk)
    await _log(context, desk, "keys.revoke", subject, reason)
    await manage.revoke_credential(context, found)
    return []


def _kind(desk: Desk) -> SecretKind:
    asked = desk.form.get("kind", "")
    if asked not in set(SecretKind):
        raise BadMerchant("Choose the secret.")
    return SecretKind(asked)


async def _replace_secret(context: Context, desk: Desk, reason: str) -> Shown:
    kind = _kind(desk)
    old = await merchant_secrets.old_ends_at(context.pool, desk.merchant_id, kind)
    if old and old > utc_now():
        raise BadMerchant(manage.TWO_WORK)
    await _log(context, desk, "keys.replace", _KINDS[kind][0], reason)
    made = await rotate_merchant_secret(context, str(desk.merchant_id), kind, manage.OLD_SECRET_LIVES)
    return [(_KINDS[kind][0], made.secret)]


async def _replace_lost_secret(context: Context, desk: Desk, reason: str) -> Shown:
    kind = _kind(desk)
    old = await merchant_secrets.old_ends_at(context.pool, desk.merchant_id, kind)
    if not old or old <= utc_now():
        raise BadMerchant(manage.NONE_OLD)
    await _log(context, desk, "keys.replace-lost", _KINDS[kind][0], reason)
    made = await rotate_merchant_secret(
        context, str(desk.merchant_id), kind, manage.OLD_SECRET_LIVES, again=True
    )
    return [(_KINDS[kind][0], made.secret)]


async def _end_old_secret(context: Context, desk: Desk, reason: str) -> Shown:
    kind = _kind(desk)
    old = await merchant_secrets.old_ends_at(context.pool, desk.merchant_id, kind)
    if not old or old <= utc_now():
        raise BadMerchant(manage.NONE_OLD)
    await _log(context, desk, "keys.end-old", _KINDS[kind][0], reason)
    await end_old_secret(context, str(desk.merchant_id), kind)
    return []


_ACTS: dict[str, Callable[[Context, Desk, str], Awaitable[Shown]]] = {
    "add": _add,
    "replace": _replace,
    "again": _replace_lost,
    "end": _end_old,
    "revoke": _revoke,
    "replace-secret": _replace_secret,
    "again-secret": _replace_lost_secret,
    "end-secret": _end_old_secret,
}
