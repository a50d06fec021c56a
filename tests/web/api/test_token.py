"""`POST /oauth/token`: the three forms of a request, and the requests that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest

from cuota.db.pool import Pool, Row
from cuota.db.vault import Vault
from cuota.flows.merchant.issue_token import TokenRefused, TokenRequest, issue_token
from cuota.flows.merchant.keys import Keys
from support.api.asked_token import asked
from support.makers import Merchant, Running


async def post(service: Running, **request: Any) -> httpx.Response:
    async with service.client() as http:
        return await http.post("/oauth/token", **request)


async def works(service: Running, token: str) -> bool:
    async with service.client() as http:
        answer = await http.get("/configuration", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code == 200


def assert_token(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"access_token", "expires_in", "scope", "token_type"}
    assert (body["expires_in"], body["scope"], body["token_type"]) == (86400, "merchant orders", "Bearer")
    assert answer.headers["cache-control"] == "no-store"
    return str(body["access_token"])


async def test_a_json_request_with_id_and_secret_gets_a_valid_token(merchant: Merchant) -> None:
    token = assert_token(await post(merchant.service, json=asked(merchant)))
    assert await works(merchant.service, token)


async def test_a_form_request_with_id_and_secret_gets_a_valid_token(merchant: Merchant) -> None:
    token = assert_token(await post(merchant.service, data=asked(merchant)))
    assert await works(merchant.service, token)


@pytest.mark.parametrize("kind", ["json", "data"])
async def test_a_request_with_http_basic_gets_a_valid_token(merchant: Merchant, kind: str) -> None:
    body = asked(merchant, client_id=None, client_secret=None)
    basic = (quote_plus(merchant.client_id), quote_plus(merchant.client_secret))
    token = assert_token(await post(merchant.service, auth=basic, **{kind: body}))
    assert await works(merchant.service, token)


@pytest.mark.parametrize("changes", [{}, {"client_secret": None}, {"client_id": None}])
async def test_credentials_in_the_body_and_in_basic_are_refused(
    merchant: Merchant, changes: dict[str, None]
) -> None:
    basic = (merchant.client_id, merchant.client_secret)
    answer = await post(merchant.service, auth=basic, json=asked(merchant, **changes))
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_request"


async def test_a_new_token_does_not_end_an_older_one(merchant: Merchant) -> None:
    tokens = [assert_token(await post(merchant.service, json=asked(merchant))) for _ in range(3)]
    assert len(set(tokens)) == 3
    assert [await works(merchant.service, token) for token in tokens] == [True] * 3


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": None}, 400, "invalid_request"),
        ({"audience": 7}, 400, "invalid_request"),
        ({"audience": "https://another.example"}, 400, "invalid_target"),
        ({"client_id": None}, 400, "invalid_request"),
        ({"client_secret": None}, 400, "invalid_request"),
        ({"client_secret": ""}, 400, "invalid_request"),
        ({"client_secret": "secret_wrong"}, 401, "invalid_client"),
        ({"client_id": "client_nobody"}, 401, "invalid_client"),
        ({"client_secret": 7}, 400, "invalid_request"),
        ({"client_secret": ["a"]}, 400, "invalid_request"),
        ({"client_id": {"a": 1}}, 400, "invalid_request"),
        ({"client_id": "x" * 10_000}, 400, "invalid_request"),
        ({"audience": "x" * 10_000}, 400, "invalid_request"),
        ({"client_id": "a\0b"}, 400, "invalid_request"),
        ({"client_secret": "a\nb"}, 400, "invalid_request"),
    ],
)
async def test_errors_follow_rfc_6749_and_are_not_cached(
    merchant: Merchant, changes: dict[str, object], status: int, error: str
) -> None:
    answer = await post(merchant.service, json=asked(merchant, **changes))
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.json()["error"] == error
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"grant_type":"client_credentials","grant_type":"x"}', "application/json", 400),
        (b"grant_type=a&grant_type=a", "application/x-www-form-urlencoded", 400),
        (b"grant_type=\xff", "application/x-www-form-urlencoded", 400),
        (b"", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/json; charset=utf-16", 415),
        (b"{" + b" " * 262_144 + b"}", "application/json", 413),
    ],
)
async def test_an_unreadable_token_request_is_refused(
    service: Running, content: bytes, kind: str, status: int
) -> None:
    answer = await post(service, content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]) == (status, "invalid_request")


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Bearer abc", "Basic /w=="])
async def test_an_unreadable_basic_header_is_refused(merchant: Merchant, header: str) -> None:
    body = asked(merchant, client_id=None, client_secret=None)
    answer = await post(merchant.service, json=body, headers={"Authorization": header})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_401_answer_to_http_basic_names_the_scheme(merchant: Merchant) -> None:
    body = asked(merchant, client_id=None, client_secret=None)
    answer = await post(merchant.service, auth=(merchant.client_id, "wrong"), json=body)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


async def test_an_unknown_id_and_a_wrong_secret_get_the_same_answer(merchant: Merchant) -> None:
    wrong = await post(merchant.service, json=asked(merchant, client_secret="secret_wrong"))
    unknown = await post(merchant.service, json=asked(merchant, client_id="client_unknown_words"))
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.content == unknown.content
    assert "authenticated" in wrong.json()["error_description"]
    same = {"content-type", "cache-control", "content-length", "pragma"}
    assert {n: wrong.headers[n] for n in same} == {n: unknown.headers[n] for n in same}
    assert set(wrong.headers) == set(unknown.headers)


class NotingPool(Pool):
    """The real pool. It also records each statement."""

    def __init__(self, pool: Pool, noted: list[object]) -> None:
        super().__init__(pool._pool)
        self._noted = noted

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        self._noted.append(sql)
        return await super().fetchrow(sql, *values)


class NotingVault(Vault):
    """The real vault. It also records each hash."""

    noted: list[object]

    def hash(self, purpose: str, value: str) -> bytes:
        self.noted.append(purpose)
        return super().hash(purpose, value)


async def test_an_unknown_id_and_a_wrong_secret_cost_the_same_work(merchant: Merchant) -> None:
    # The test compares the statements and hashes and their order, and measures no time.
    context = merchant.service.context
    work = []
    for client_id in (merchant.client_id, "client_unknown_work"):
        noted: list[object] = []
        vault = NotingVault(context.settings.secret_key)
        vault.noted = noted
        spied = replace(context, pool=NotingPool(context.pool, noted), vault=vault)
        with pytest.raises(TokenRefused, match="authenticated"):
            await issue_token(spied, Keys(spied), TokenRequest(client_id, "wrong", context.settings.audience))
        work.append(noted)
    assert work[0] == work[1]
    assert "client-secret" in work[0]


async def test_the_eleventh_failure_in_a_minute_is_429_and_only_failures_are_slowed(
    merchant: Merchant, auto_merchant: Merchant
) -> None:
    service = merchant.service
    bad = asked(merchant, client_secret="secret_wrong")
    answers = [await post(service, json=bad) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert answers[-1].json()["error"] == "temporarily_unavailable"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert_token(await post(service, json=asked(merchant)))
    other = await post(service, json=asked(auto_merchant, client_secret="secret_wrong"))
    assert other.status_code == 401
    assert_token(await post(service, json=asked(auto_merchant)))
