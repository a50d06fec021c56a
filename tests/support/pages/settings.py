"""The settings of a merchant's dashboard: reading them, and sending their forms."""

from __future__ import annotations

from cuota.core.merchant import Merchant as Held
from cuota.db.merchant import merchants
from support.pages.staff import Staff
from support.pages.visitor import Page

SETTINGS = "/desk/settings"


async def held(staff: Staff) -> Held:
    found = await merchants.read(staff.service.context.pool, staff.shop.merchant_id)
    assert found is not None
    return found


async def save(staff: Staff, form: str, **fields: str) -> Page:
    await staff.open(SETTINGS)
    return await staff.press_in(form, **{"do": form, "reason": "as agreed", **fields})


async def send_logo(staff: Staff, content: bytes, name: str = "logo.png", **fields: str) -> Page:
    await staff.open(SETTINGS)
    action, form = staff.form_named("logo")
    form.pop("files", None)
    sent = {**form, "do": "logo", "reason": "new brand", **fields}
    return await staff.send_file(action, sent, name, content)
