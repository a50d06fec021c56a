"""A simulated network for the shop's tests. It gives prepared answers, and stores the requests."""

from __future__ import annotations

from collections.abc import Callable

import httpx

Answer = httpx.Response | Exception
ENVIRONMENT = {
    "SHOP_API_URL": "https://pay.test/",
    "SHOP_CLIENT_ID": "client",
    "SHOP_CLIENT_SECRET": "hush",
    "SHOP_AUDIENCE": "https://pay.test",
    "SHOP_PUBLIC_URL": "http://shop.test",
}
MOVED = {"merchantReference": "r", "amount": 12.5, "dateTime": "2026-11-21T10:00:00Z"}
RECORD = {"orderId": "o-1", "orderStatus": "Approved", "amount": 100, "originalAmount": 100}


def refusal(code: str, status: int = 422, **more: object) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "message": "no", "errors": [], **more})


class Network:
    """Simulates the network: answers token requests, then gives the prepared answers; the last answer repeats."""

    def __init__(self, *answers: Answer | Callable[[httpx.Request], Answer]) -> None:
        self.answers = list(answers)
        self.calls: list[httpx.Request] = []
        self.tokens = 0
        self.expires_in = 86400

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/oauth/token":
            self.tokens += 1
            return httpx.Response(
                200, json={"access_token": f"token-{self.tokens}", "expires_in": self.expires_in}
            )
        self.calls.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[bytes]:
        return [call.content for call in self.calls]
