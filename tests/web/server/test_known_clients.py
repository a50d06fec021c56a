"""Unknown clients that flood the token endpoint cannot prevent a known merchant from getting a new token."""

from __future__ import annotations

import asyncio
import base64

from cuota.web.server.admission import Admission, AdmissionSlot
from cuota.web.server.parties import MOST_KNOWN, Parties
from cuota.web.server.token_client import client_of_token, read_client
from support.makers import Merchant
from support.server.crowd import Clock, admission_of, busy, fill, gone_round, party_of, routed

TOKEN = routed({"method": "POST", "path": "/oauth/token", "headers": []})


def strangers(admission: Admission, most: int) -> list[AdmissionSlot]:
    """Send token requests of unknown clients until no place is left for them."""
    scope = {**TOKEN, "token_client": b"nobody"}
    found = [admission.enter(dict(scope)) for _ in range(most)]
    return [place for place in found if place is not None]


async def test_a_client_that_succeeded_recently_gets_a_place_when_unknown_clients_get_none() -> None:
    admission = Admission(Clock())
    first = {**TOKEN, "token_client": b"shop", "client_good": b"shop"}
    place = admission.enter(first)
    assert place is not None
    admission.leave(place, first, 200)
    await gone_round()
    fill(admission, ["Bearer a", "Bearer b"], admission.places.all // 3)
    admission._stood = admission.in_hand
    held = strangers(admission, admission.places.all)
    assert admission.enter({**TOKEN, "token_client": b"nobody"}) is None
    assert len(held) < admission.places.all * 2 // 3
    assert admission.enter({**TOKEN, "token_client": b"shop"}) is not None


async def test_a_flood_by_one_known_client_takes_no_place_of_another_client() -> None:
    admission = Admission(Clock())
    for client in (b"shop", b"other"):
        admission.parties.remember_client(client)
    fill(admission, ["Bearer a", "Bearer b"], admission.places.all // 3)
    admission._stood = admission.in_hand
    while admission.enter({**TOKEN, "token_client": b"shop"}) is not None:
        pass
    assert admission.enter({**TOKEN, "token_client": b"other"}) is not None


def test_only_a_limited_number_of_the_newest_clients_is_remembered() -> None:
    parties = Parties()
    for number in range(MOST_KNOWN + 5):
        parties.remember_client(b"%d" % number)
    assert party_of(parties, {**TOKEN, "token_client": b"0"}) == "oauth"
    assert party_of(parties, {**TOKEN, "token_client": b"%d" % (MOST_KNOWN + 4)}) != "oauth"
    assert len(parties._clients) <= MOST_KNOWN


async def named(body: bytes, authorization: bytes | None = None) -> bytes | None:
    messages = [
        {"type": "http.request", "body": body[:5], "more_body": True},
        {"type": "http.request", "body": body[5:], "more_body": False},
    ]
    sent = list(messages)

    async def receive() -> dict:
        return messages.pop(0)

    headers = [] if authorization is None else [(b"authorization", authorization)]
    found, again = await read_client({**TOKEN, "headers": headers}, receive)
    assert [await again() for _ in sent] == sent
    return found


async def test_the_client_id_is_found_in_each_form_of_the_request_and_the_body_is_still_readable() -> None:
    assert await named(b'{"grant_type":"client_credentials","client_id" : "shop_1"}') == b"shop_1"
    assert await named(b"grant_type=client_credentials&client_id=shop_1&client_secret=x") == b"shop_1"
    assert await named(b"", b"Basic " + base64.b64encode(b"shop_1:secret")) == b"shop_1"
    for nothing in (b"", b"{", b'{"client_id":7}', b"\xff" * 100, b"x" * 40_000):
        assert await named(nothing) is None
    assert await named(b"", b"Basic ???") is None


async def test_a_successful_call_or_token_request_makes_the_client_known(merchant: Merchant) -> None:
    parties = admission_of(merchant.service).parties
    parties._clients.clear()
    await merchant.token()
    await asyncio.sleep(0)
    assert party_of(parties, {**TOKEN, "token_client": merchant.client_id.encode()}) != "oauth"
    parties._clients.clear()
    fresh = {"Authorization": f"Bearer {await merchant.token()}"}
    parties._clients.clear()
    assert (await merchant.http.get("/configuration", headers=fresh)).status_code == 200
    assert party_of(parties, {**TOKEN, "token_client": merchant.client_id.encode()}) != "oauth"


async def test_under_overload_a_known_client_still_gets_its_token(merchant: Merchant) -> None:
    await merchant.token()
    with busy(merchant.service, 0.5):
        assert await merchant.token()


async def test_the_requests_of_a_known_client_always_count_for_the_same_party(merchant: Merchant) -> None:
    # Otherwise a client that sends many requests at once counts as two parties, and is refused at half of the places.
    admission = admission_of(merchant.service)
    await merchant.token()
    admission._seen.clear()
    await merchant.token()
    own = party_of(admission.parties, {**TOKEN, "token_client": merchant.client_id.encode()})
    assert admission._seen == {own}


def test_a_text_that_is_no_token_contains_no_client() -> None:
    for header in (b"", b"Bearer", b"Bearer a.b", b"Bearer a.!!.c", b"Bearer a.e30.c", b"Bearer a.NQ.c"):
        assert client_of_token([(b"authorization", header)]) is None
