"""The live message rail against a real mail server and a real hook: what arrives, and what is never sent or logged."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from cuota.core.message import Message
from cuota.core.webhook.signature import webhook_signature
from cuota.flows.context import utc_now
from cuota.rails import message_live
from cuota.rails.message_live import LiveMessageRail
from cuota.rails.senders import MailServer, Senders
from cuota.rails.settings import RailSettings
from cuota.rails.unavailable import RailUnavailable
from support.rails.listeners import Hook, MailListener, certified, listening

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PHONE = "2125550142"
EMAIL = "jordan@mail.example"
FROM = "pay@cuota.example"


def notice(phone: str | None = PHONE, email: str | None = EMAIL, **more: str) -> Message:
    subject, text = (
        "Your payment of $25.00",
        "Sat, Dec 5 we charge $25.00.\nhttps://pay.example/account\n.\nEnd — é.",
    )
    said = {"sender": "Pay in four", "subject": subject, "text": text, **more}
    return Message(uuid4(), phone, email, **said)


def rail(
    hook: int = 9, mail: int | None = None, *, scheme: str = "http", secure: bool = False, tls: bool = False
) -> LiveMessageRail:
    """`hook` and `mail` are ports on loopback. Nothing listens on port 9."""
    server = MailServer("127.0.0.1", mail, tls, "mailer", "p@ss") if mail is not None else None
    url = f"{scheme}://127.0.0.1:{hook}/send?key=k%201"
    senders, unused = Senders(server, FROM if server else None, url, SECRET, secure), cast("Any", None)
    return LiveMessageRail(RailSettings(senders=senders), unused, unused, utc_now)


async def test_a_code_is_posted_to_the_hook_with_a_webhook_signature() -> None:
    hook = Hook()
    sent_after = int(time.time())
    async with listening(hook.serve) as port:
        await rail(port).send_code(PHONE, "739146", "Pay in four")
    [(headers, body)] = hook.posted
    posted = json.loads(body)
    assert posted == {"id": headers["webhook-id"], "to": "+12125550142", "text": posted["text"]}
    assert UUID(posted["id"])
    assert posted["text"].startswith("739146 is your Pay in four code.")
    assert headers["content-type"] == "application/json"
    at = int(headers["webhook-timestamp"])
    assert sent_after <= at <= time.time()
    assert headers["webhook-signature"] == webhook_signature([SECRET], posted["id"], at, body)


def test_new_codes_are_six_digits_and_not_always_the_same() -> None:
    codes = {rail().new_code() for _ in range(200)}
    assert all(len(code) == 6 and code.isascii() and code.isdigit() for code in codes)
    assert len(codes) > 150
    assert rail().shown_code is None


async def test_a_notice_to_a_mail_address_is_sent_only_by_mail() -> None:
    hook, mail = Hook(), MailListener()
    message = notice()
    async with listening(hook.serve) as port, listening(mail.serve) as smtp:
        await rail(port, smtp).send(message)
    [taken] = mail.taken
    assert (taken.sender, taken.recipients, taken.login) == (FROM, [EMAIL], ("mailer", "p@ss"))
    letter = taken.mail
    assert str(letter["From"]) == f"Pay in four <{FROM}>"
    assert (str(letter["To"]), str(letter["Subject"])) == (EMAIL, message.subject)
    assert str(letter["Message-ID"]) == f"<{message.key}@cuota.example>"
    assert letter.get_content().replace("\r\n", "\n").strip() == message.text
    assert hook.posted == []
    assert mail.verbs[-1] == "QUIT"


@pytest.mark.parametrize(("email", "with_mail"), [(None, True), (EMAIL, False)])
async def test_a_notice_is_sent_by_text_if_it_cannot_be_sent_by_mail(
    email: str | None,
    with_mail: bool,  # noqa: FBT001
) -> None:
    hook, mail = Hook(), MailListener()
    message = notice(email=email)
    async with listening(hook.serve) as port, listening(mail.serve) as smtp:
        await rail(port, smtp if with_mail else None).send(message)
    assert mail.taken == []
    [(headers, body)] = hook.posted
    assert headers["webhook-id"] == str(message.key)
    assert json.loads(body) == {"id": str(message.key), "to": f"+1{PHONE}", "text": message.text}


async def test_a_consumer_who_cannot_be_reached_is_reported() -> None:
    with pytest.raises(RailUnavailable, match="the consumer cannot be reached"):
        await rail().send(notice(phone=None))


@pytest.mark.parametrize("status", [199, 301, 302, 307, 400, 404, 500, 503])
async def test_an_answer_other_than_2xx_is_a_failure_and_redirects_are_not_followed(status: int) -> None:
    elsewhere, hook = Hook(), Hook(status)
    async with listening(elsewhere.serve) as other, listening(hook.serve) as port:
        hook.headers = f"Location: http://127.0.0.1:{other}/send?key=k%201\r\n"
        # Status 199 is only an interim answer, and no final answer follows.
        with pytest.raises(RailUnavailable, match=f"answered {status}|cannot be reached"):
            await rail(port).send_code(PHONE, "739146", "Pay")
    assert (len(hook.posted), elsewhere.posted) == (1, [])


async def test_a_hook_without_a_server_is_unavailable() -> None:
    with pytest.raises(RailUnavailable, match="the text hook cannot be reached"):
        await rail().send_code(PHONE, "739146", "Pay")


async def test_a_hanging_hook_is_abandoned_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_live, "HOOK_SECONDS", 0.2)
    async with listening(Hook(None).serve) as port:
        with pytest.raises(RailUnavailable, match="did not answer in"):
            await asyncio.wait_for(rail(port).send_code(PHONE, "739146", "Pay"), 60)


@pytest.mark.parametrize("verb", ["EHLO", "MAIL FROM", "DATA"])
async def test_a_hanging_mail_server_is_abandoned_in_time(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_live, "MAIL_SECONDS", 0.3)
    async with listening(MailListener(hangs=frozenset({verb})).serve) as smtp:
        with pytest.raises(RailUnavailable, match="the mail server"):
            await asyncio.wait_for(rail(mail=smtp).send(notice()), 60)


async def test_a_mail_is_not_sent_again_if_the_mail_server_does_not_answer_quit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_live, "GOODBYE_SECONDS", 0.1)
    mail = MailListener(hangs=frozenset({"QUIT"}))
    async with listening(mail.serve) as smtp:
        await rail(mail=smtp).send(notice())
    assert len(mail.taken) == 1


def test_every_call_ends_within_fifteen_seconds() -> None:
    longest = max(message_live.HOOK_SECONDS, message_live.MAIL_SECONDS + message_live.GOODBYE_SECONDS)
    assert longest <= 15


@pytest.mark.parametrize(
    ("verb", "reply", "said"),
    [
        ("RCPT TO", f"550 <{EMAIL}> is unknown here", "refused the address (550)"),
        ("MAIL FROM", "451 later", "refused the message (451)"),
        ("DATA", "554 no", "refused the message (554)"),
        ("AUTH", "535 wrong password for mailer", "refused the message (535)"),
    ],
)
async def test_the_error_about_a_refused_mail_has_its_code_and_not_the_address(
    verb: str, reply: str, said: str
) -> None:
    mail = MailListener(replies={verb: reply})
    async with listening(mail.serve) as smtp:
        with pytest.raises(RailUnavailable) as refused:
            await rail(mail=smtp).send(notice())
    assert said in str(refused.value)
    assert "@" not in str(refused.value)
    assert mail.taken == []


@pytest.mark.parametrize(
    "subject",
    ["Paid\r\nBcc: eve@evil.example", "Paid\nBcc: eve@evil.example", "Paid\u2028Bcc: eve@evil.example"],
)
async def test_a_subject_or_sender_cannot_add_a_header(subject: str) -> None:
    mail = MailListener()
    async with listening(mail.serve) as smtp:
        await rail(mail=smtp).send(notice(subject=subject, sender=f"Shop\r\n{subject}\x00"))
    [taken] = mail.taken
    assert taken.recipients == [EMAIL]
    letter = taken.mail
    assert letter["Bcc"] is None
    assert str(letter["Subject"]) == "Paid Bcc: eve@evil.example"
    [only] = letter["From"].addresses
    assert only.addr_spec == FROM


@pytest.mark.parametrize(
    "email",
    [
        "jordan@mail.example\r\nRCPT TO:<eve@evil.example>",
        "jordan@mail.example, eve@evil.example",
        "jordan@mail.example>\r\nBcc: eve@evil.example",
        "Jordan <jordan@mail.example>",
        "",
    ],
)
async def test_no_mail_is_sent_to_a_text_that_is_not_one_plain_address(email: str) -> None:
    mail = MailListener()
    async with listening(mail.serve) as smtp:
        with pytest.raises(RailUnavailable, match="the mail address is not valid"):
            await rail(mail=smtp).send(notice(email=email))
    assert (mail.verbs, mail.taken) == ([], [])


async def test_no_text_is_sent_to_a_number_that_is_no_us_number() -> None:
    hook = Hook()
    async with listening(hook.serve) as port:
        with pytest.raises(RailUnavailable, match="not a US number"):
            await rail(port).send_code("9005", "739146", "Pay")
    assert hook.posted == []


async def test_logs_and_errors_contain_nothing_of_a_sent_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook, mail = Hook(500), MailListener(replies={"RCPT TO": f"550 {EMAIL}"})
    async with listening(hook.serve) as port, listening(mail.serve) as smtp:
        sends = rail(port, smtp)
        for sent in (sends.send_code(PHONE, "739146", "Pay"), sends.send(notice())):
            with pytest.raises(RailUnavailable) as refused:
                await sent
            logging.getLogger("cuota").error("not sent", exc_info=refused.value)
    assert caplog.records
    formatter = logging.Formatter()
    logs = "\n".join(formatter.format(record) for record in caplog.records)
    for secret in (PHONE, "739146", EMAIL, "p@ss", SECRET, "$25.00", "account"):
        assert secret not in logs
    assert SECRET not in repr(sends._senders)
    assert "p@ss" not in repr(sends._senders)


@pytest.mark.parametrize("tls", [False, True])
async def test_mail_is_encrypted_and_the_server_s_certificate_is_verified(
    tls: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, trusted = certified(tmp_path)
    mail = MailListener(starttls=None if tls else context)
    async with listening(mail.serve, context if tls else None) as smtp:
        with pytest.raises(RailUnavailable, match="the mail server cannot be used"):
            await rail(mail=smtp, tls=tls, secure=True).send(notice())
        assert mail.taken == []
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        await rail(mail=smtp, tls=tls, secure=True).send(notice())
    [taken] = mail.taken
    assert taken.encrypted
    assert taken.login == ("mailer", "p@ss")


async def test_production_sends_no_mail_and_no_password_without_encryption() -> None:
    mail = MailListener()
    async with listening(mail.serve) as smtp:
        with pytest.raises(RailUnavailable, match="the mail server"):
            await rail(mail=smtp, secure=True).send(notice())
    assert mail.taken == []
    assert "AUTH" not in mail.verbs


@pytest.mark.parametrize("name", ["127.0.0.1", "texts.example"])
async def test_a_hook_s_certificate_is_verified_for_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = certified(tmp_path, name)
    hook = Hook()
    async with listening(hook.serve, context) as port:
        with pytest.raises(RailUnavailable, match="cannot be reached"):
            await rail(port, scheme="https").send_code(PHONE, "739146", "Pay")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        if name == "127.0.0.1":
            await rail(port, scheme="https").send_code(PHONE, "739146", "Pay")
        else:
            with pytest.raises(RailUnavailable, match="cannot be reached"):
                await rail(port, scheme="https").send_code(PHONE, "739146", "Pay")
    assert len(hook.posted) == (name == "127.0.0.1")


async def test_an_urgent_notice_goes_by_text_though_a_mail_is_possible_and_by_mail_without_a_phone() -> None:
    mail, hook = MailListener(), Hook()
    async with listening(mail.serve) as smtp, listening(hook.serve) as port:
        await rail(port, smtp).send(replace(notice(), urgent=True))
        assert (len(hook.posted), mail.taken) == (1, [])
        await rail(port, smtp).send(replace(notice(phone=None), urgent=True))
        assert (len(hook.posted), len(mail.taken)) == (1, 1)
