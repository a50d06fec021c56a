"""The live message rail in the service: the consumer types the code that was sent to the hook."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import httpx

from cuota import config
from cuota.rails.senders import Senders
from cuota.run import runtime
from support.makers import Clock, make_merchant
from support.pages.beside import Beside, beside
from support.pages.visitor import Visitor
from support.rails.listeners import Hook, listening


async def test_a_checkout_accepts_the_sent_code_and_does_not_show_it(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    hook = Hook()
    async with listening(hook.serve) as port:
        senders = Senders(
            None, None, f"http://127.0.0.1:{port}/send?key=k%201", "whsec_" + "MfKQ9r8G" * 4, secure=False
        )
        live = replace(settings, message_rail="live", senders=senders)
        async with runtime.opened(live, own_database, pool_size=4) as context:
            running = beside(context, Clock())
            async with make_merchant(running) as merchant, running.client() as http:
                await _walk(running, hook, Visitor(http), await merchant.create())
                assert (await inbox_text(http)).count("none appear here") == 1


async def _walk(running: Beside, hook: Hook, visitor: Visitor, order: dict[str, Any]) -> None:
    page = await visitor.until("code", order, phone="2125550187")
    assert "Sandbox: no text is sent" not in page.text
    [(_, body)] = hook.posted
    posted = json.loads(body)
    assert posted["to"] == "+12125550187"
    found = re.match(rf"(\d{{6}}) is your {running.settings.brand_name} code", posted["text"])
    assert found is not None
    code = found[1]
    wrong = f"{(int(code) + 1) % 10**6:06}"
    assert "This code is wrong" in (await visitor.send("code", code=wrong)).text
    assert (await visitor.send("code", code=code)).heading == "Your details"
    hook.status = 500
    another = Visitor(running.client())
    await another.until("phone", order)
    page = await another.send("phone", phone="2125550187")
    await another.http.aclose()
    assert "We could not send a text to this number right now." in page.text


async def inbox_text(http: httpx.AsyncClient) -> str:
    return (await http.get("/sandbox/inbox")).text
