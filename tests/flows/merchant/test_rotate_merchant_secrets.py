"""A merchant's secrets are replaced without an interruption: the old secret is valid for a day beside the new one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from cuota.core.webhook.signature import pay_signature, webhook_signature
from cuota.db.merchant.secrets import SecretKind
from cuota.flows.merchant import manage_merchants, rotate_secrets
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.merchant.reinstate_merchant import reinstate_merchant
from cuota.flows.merchant.rotate_secrets import Rotated
from cuota.flows.webhook.manage_endpoints import OLD_SECRET_LIVES
from support.api.receiver import receiving
from support.makers import Merchant, order_body
from support.sending import deliver, webhook_secret
from support.signed import sdk_body, send


async def rotate(merchant: Merchant, kind: SecretKind, **more: Any) -> Rotated:
    context = merchant.service.context
    return await rotate_secrets.rotate_merchant_secret(
        context, merchant.name, kind, more.pop("lives", OLD_SECRET_LIVES), **more
    )


async def over(merchant: Merchant, kind: SecretKind) -> None:
    """Simulate that the day is over. Secrets expire by the real clock, so move the row's time instead of the clock."""
    await merchant.service.context.pool.fetchrow(
        f"UPDATE merchants SET old_{kind}_secret_ends_at = now() WHERE merchant_id = $1", merchant.merchant_id
    )


async def status(merchant: Merchant, secret: str) -> int:
    """Return the response to a checkout request that is signed with this secret."""
    raw = json.dumps(sdk_body(merchant)).encode()
    return (await send(merchant, raw, **{"X-Pay-Signature": pay_signature(secret, raw)})).status_code


async def hook(merchant: Merchant) -> tuple[dict[str, str], bytes]:
    """Return the webhook of a new order, sent to the order's own address."""
    async with receiving() as receiver:
        more = {"merchant": {**order_body()["merchant"], "statusCallbackUrl": receiver.url}}  # type: ignore[dict-item]
        await merchant.create(**more)
        await deliver(merchant)
    headers, body = receiver.got[-1]
    return {name.lower(): value for name, value in dict(headers).items()}, body


def standard(got: tuple[dict[str, str], bytes], *secrets: str) -> bool:
    headers, body = got
    sent_at = int(headers["webhook-timestamp"])
    return headers["webhook-signature"] == webhook_signature(secrets, headers["webhook-id"], sent_at, body)


async def test_for_a_day_requests_signed_with_the_old_or_the_new_signing_secret_are_accepted(
    merchant: Merchant,
) -> None:
    old = merchant.signing_secret
    new = (await rotate(merchant, SecretKind.SIGNING)).secret
    assert new != old
    assert [await status(merchant, secret) for secret in (old, new, old + "x")] == [200, 200, 401]
    await over(merchant, SecretKind.SIGNING)
    assert [await status(merchant, secret) for secret in (old, new)] == [401, 200]


async def test_for_a_day_the_header_x_pay_signature_is_made_with_the_old_signing_secret(
    merchant: Merchant,
) -> None:
    old = merchant.signing_secret
    new = (await rotate(merchant, SecretKind.SIGNING)).secret
    headers, body = await hook(merchant)
    assert headers["x-pay-signature"] == pay_signature(old, body)
    await over(merchant, SecretKind.SIGNING)
    headers, body = await hook(merchant)
    assert headers["x-pay-signature"] == pay_signature(new, body)


async def test_for_a_day_webhooks_have_the_signatures_of_both_webhook_secrets(merchant: Merchant) -> None:
    old = await webhook_secret(merchant)
    assert standard(await hook(merchant), old)
    new = (await rotate(merchant, SecretKind.WEBHOOK)).secret
    assert standard(await hook(merchant), new, old)
    await over(merchant, SecretKind.WEBHOOK)
    assert standard(await hook(merchant), new)


@pytest.mark.parametrize("kind", list(SecretKind))
async def test_a_second_rotation_within_the_day_is_refused_and_changes_nothing(
    merchant: Merchant, kind: SecretKind
) -> None:
    """The merchant still uses the old secret, so a repeated command must not end it."""
    await rotate(merchant, kind)
    before = await merchant.service.context.pool.fetchrow(
        "SELECT * FROM merchants WHERE merchant_id = $1", merchant.merchant_id
    )
    with pytest.raises(BadMerchant, match=r"valid until .* --again"):
        await rotate(merchant, kind)
    after = await merchant.service.context.pool.fetchrow(
        "SELECT * FROM merchants WHERE merchant_id = $1", merchant.merchant_id
    )
    assert before == after


async def test_a_lost_new_secret_can_be_replaced_and_the_old_one_is_still_valid(merchant: Merchant) -> None:
    old = merchant.signing_secret
    with pytest.raises(BadMerchant, match="no old signing secret"):
        await rotate(merchant, SecretKind.SIGNING, again=True)
    lost = await rotate(merchant, SecretKind.SIGNING)
    new = await rotate(merchant, SecretKind.SIGNING, again=True)
    assert new.old_ends_at == lost.old_ends_at
    found = [await status(merchant, secret) for secret in (old, lost.secret, new.secret)]
    assert found == [200, 401, 200]


async def test_an_old_secret_can_be_ended_at_once(merchant: Merchant) -> None:
    old = merchant.signing_secret
    new = await rotate(merchant, SecretKind.SIGNING)
    await rotate_secrets.end_old_secret(merchant.service.context, merchant.name, SecretKind.SIGNING)
    assert [await status(merchant, secret) for secret in (old, new.secret)] == [401, 200]
    # A lifetime of 0 hours ends every old secret, even one that was rotated before.
    await rotate(merchant, SecretKind.SIGNING)
    last = await rotate(merchant, SecretKind.SIGNING, lives=timedelta(0))
    assert last.old_ends_at is None
    assert [await status(merchant, secret) for secret in (new.secret, last.secret)] == [401, 200]
    with pytest.raises(BadMerchant, match="no old signing secret"):
        await rotate_secrets.end_old_secret(merchant.service.context, merchant.name, SecretKind.SIGNING)


async def test_an_endpoint_s_secret_is_rotated_by_its_id_or_address_but_not_by_another_merchant(
    merchant: Merchant, auto_merchant: Merchant
) -> None:
    context, url = merchant.service.context, "http://127.0.0.1:9/hooks"
    made = (await merchant.http.post("/webhook-endpoints", json={"url": url})).json()
    for other in (made["id"], "nothing"):
        with pytest.raises(BadMerchant, match="has no webhook endpoint"):
            await rotate_secrets.rotate_endpoint_secret(context, auto_merchant.name, other, OLD_SECRET_LIVES)
    new = await rotate_secrets.rotate_endpoint_secret(context, merchant.name, made["id"], OLD_SECRET_LIVES)
    assert new.secret not in {made["secret"], await webhook_secret(merchant)}
    with pytest.raises(BadMerchant, match="--again"):
        await rotate_secrets.rotate_endpoint_secret(context, merchant.name, url, OLD_SECRET_LIVES)
    again = await rotate_secrets.rotate_endpoint_secret(
        context, merchant.name, url, OLD_SECRET_LIVES, again=True
    )
    assert (again.secret != new.secret, again.old_ends_at) == (True, new.old_ends_at)
    await rotate_secrets.end_old_endpoint_secret(context, merchant.name, url)
    with pytest.raises(BadMerchant, match="no old webhook secret"):
        await rotate_secrets.end_old_endpoint_secret(context, merchant.name, url)


async def test_a_reinstated_merchant_has_new_secrets_and_none_of_the_old_ones_works(
    merchant: Merchant,
) -> None:
    context, old = merchant.service.context, merchant.signing_secret
    made = (await merchant.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/h"})).json()
    hooks = await webhook_secret(merchant)
    between = (await rotate(merchant, SecretKind.SIGNING)).secret
    await manage_merchants.revoke_merchant(context, merchant.name)
    assert await status(merchant, old) == 401
    new = await reinstate_merchant(context, merchant.name)
    found = [await status(merchant, each) for each in (old, between, new.renewed.signing_secret)]
    assert found == [401, 401, 200]
    assert await webhook_secret(merchant) == new.renewed.webhook_secret != hooks
    ((endpoint_id, _, secret),) = new.renewed.endpoints
    assert (str(endpoint_id), secret != made["secret"]) == (made["id"], True)
