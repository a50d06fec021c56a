"""The OpenAPI document is valid, and `Contract.check` finds answers that break it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis

from cuota.core.refusal import Code
from support.contract import Contract

CONTRACT = Contract()
DOCUMENT: dict[str, Any] = CONTRACT.document
OPERATIONS = [
    (verb, path, operation) for path, item in DOCUMENT["paths"].items() for verb, operation in item.items()
]
CREATED = json.dumps(
    CONTRACT.at("#/paths/~1order/post/responses/200/content/application~1json/examples/created/value")
).encode()
ORDER = json.dumps(
    {
        "amount": 12,
        "merchantReference": "1",
        "merchant": {"redirectConfirmUrl": "https://a.test/y", "redirectCancelUrl": "https://a.test/n"},
    }
).encode()
HEADERS = {"Content-Type": "application/json", "X-Request-Id": "r-1"}


def walk(value: object, at: str = "#") -> Iterator[tuple[str, Any]]:
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from walk(part, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(json.loads(json.dumps(DOCUMENT))).validate()


def test_every_reference_resolves() -> None:
    for at, value in walk(DOCUMENT):
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            assert CONTRACT.at(value["$ref"]) is not None, at


def test_yaml_cut_no_text_at_a_comma() -> None:
    for at, value in walk(DOCUMENT):
        if isinstance(value, dict) and "/examples/" not in at:
            assert not [key for key, part in value.items() if " " in key or part is None], at


def test_every_component_is_used() -> None:
    used = {value["$ref"] for _, value in walk(DOCUMENT) if isinstance(value, dict) and "$ref" in value}
    kinds = ("schemas", "parameters", "headers", "responses")
    unused = {f"#/components/{kind}/{name}" for kind in kinds for name in DOCUMENT["components"][kind]} - used
    assert unused == set()


def test_every_example_validates_against_its_schema() -> None:
    seen = 0
    for at, value in walk(DOCUMENT):
        if not isinstance(value, dict) or not isinstance(value.get("schema"), dict):
            continue
        for name, example in value.get("examples", {}).items():
            shown = CONTRACT.follow("", example)[1]["value"]
            assert CONTRACT.errors(f"{at}/schema", shown) == [], f"{at} {name}"
            seen += 1
        if "example" in value:
            assert CONTRACT.errors(f"{at}/schema", value["example"]) == [], at
    assert seen > 60


def test_every_operation_has_an_id_a_summary_a_description_and_examples() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for verb, path, operation in OPERATIONS:
        where = f"{verb} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert set(operation["tags"]) <= tags, where
        for part in operation.get("requestBody", {}).get("content", {}).values():
            assert part["examples"], where
        for parameter in operation.get("parameters", []):
            assert CONTRACT.follow("", parameter)[1]["examples"], where
        for status, answer in operation["responses"].items():
            found = CONTRACT.follow("", answer)[1]
            assert found["headers"]["X-Request-Id"], f"{where} {status}"
            parts = {} if status == "204" else found["content"]
            assert all(part["examples"] for part in parts.values()), f"{where} {status}"


def test_every_object_in_an_answer_is_closed_and_complete() -> None:
    # Some fields exist only in one kind of answer, and that schema describes them: `customer`, a dispute's `outcome`
    # and a payout's `reason` in an event, the `payment` of a chargeback, the fields of an order that a page started, and the sandbox's explanation of
    # a signature.
    optional = {"PublicKey", "IssuerMetadata", "Event", "EventDispute", "Dispute", "PayoutEvent"}
    optional |= {"OrderRecord", "ItemRecord", "CheckoutStarted", "CheckoutResult", "SignatureProblem"}
    # These fields name ignored parts of a request, or the profile that would have accepted it. They are usually
    # absent.
    optional |= {
        "Movement",
        "Refund",
        "DryRunResult",
        "SmiCheckout",
        "Problem",
        "MoneyProblem",
        "DisputeDetail",
        "Endpoint",
        "EndpointWithSecret",
        "Replayed",
    }
    # `/health/ready` names nodes only if a node of a database cluster is down.
    optional.add("Health")
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if "properties" in schema and not name.endswith("Request"):
            assert schema["additionalProperties"] is False, name
            assert name in optional or set(schema["required"]) == set(schema["properties"]), name


def test_the_error_codes_are_those_of_the_service_and_each_has_an_explanation_and_an_example() -> None:
    codes = DOCUMENT["components"]["schemas"]["ErrorCode"]
    assert set(codes["enum"]) == {code.value for code in Code} == set(codes["x-codes"])
    tokens = DOCUMENT["components"]["schemas"]["TokenErrorCode"]
    assert set(tokens["enum"]) == set(tokens["x-codes"])
    shown = {
        e["value"]["code"]: e["value"]
        for e in DOCUMENT["components"]["examples"].values()
        if "code" in e["value"]
    }
    for code, it in codes["x-codes"].items():
        problem = shown[code]
        assert problem["title"] == it["title"], code
        assert problem["status"] == it["status"], code
        assert problem["type"].endswith(f"/docs#{code}"), code
        assert problem["detail"] == problem["message"], code
        assert (
            CONTRACT.errors(
                "#/components/schemas/Problem",
                {k: v for k, v in problem.items() if k not in {"balances", "original", "disputeStatus"}},
            )
            == []
        )


def test_an_exchange_that_follows_the_contract_passes() -> None:
    CONTRACT.check("POST", "/order/?x=1", 200, HEADERS, CREATED, request_body=ORDER)
    CONTRACT.check(
        "GET",
        "/metrics",
        200,
        HEADERS | {"content-type": "text/plain; version=0.0.4"},
        b"a 1\n",
        request_body=None,
    )
    token = b'{"access_token":"a","expires_in":86400,"scope":"merchant orders","token_type":"Bearer"}'
    form = b"grant_type=client_credentials&audience=a"
    CONTRACT.check(
        "POST", "/oauth/token", 200, HEADERS | {"cache-control": "no-store"}, token, request_body=form
    )


def test_a_path_or_method_outside_the_contract_is_reported_as_such() -> None:
    problem = {"Content-Type": "application/problem+json", "X-Request-Id": "r-1", "Allow": "GET, HEAD"}
    for name, method, path, status in (
        ("not_found", "GET", "/nowhere", 404),
        ("method_not_allowed", "PUT", "/order/1", 405),
    ):
        body = json.dumps(DOCUMENT["components"]["examples"][name]["value"]).encode()
        CONTRACT.check(method, path, status, problem, body, request_body=None)


def _broken(name: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return bodies in which a member of this type's event is missing or wrong."""
    if "payout" in body:
        short = {key: value for key, value in body.items() if key != "payout"}
        status = {**body, "payout": {**body["payout"], "status": "lost"}}
        reason = {**body, "reason": 1 if name == "payout.returned" else "R03"}
        return [short, status, reason]
    if "bankAccount" in body:
        return [
            {**body, "bankAccount": {}},
            {**body, "bankAccount": {**body["bankAccount"], "last4": "123456"}},
        ]
    if "dispute" in body or "return" in body:
        about = "dispute" if "dispute" in body else "return"
        short = {key: value for key, value in body.items() if key != about}
        other = {**short, "dispute" if about == "return" else "return": body[about]}
        return [
            short,
            other,
            {**body, about: {**body[about], "more": 1}},
            {**body, "disputeId": body["orderId"]},
        ]
    short = {key: value for key, value in body.items() if key != "metadata"}
    customer = {**body, "customer": {}} if name != "order.approved" else short
    return [short, customer, {**body, "success": not body["success"]}]


def test_every_event_type_has_a_complete_body_and_the_check_finds_each_deviation() -> None:
    types = {*DOCUMENT["components"]["schemas"]["EventType"]["enum"], "webhook.test"}
    assert set(DOCUMENT["webhooks"]) == types
    for name, item in DOCUMENT["webhooks"].items():
        call = item["post"]
        assert call["summary"]
        assert call["description"]
        examples = call["requestBody"]["content"]["application/json"]["examples"]
        for body in (example["value"] for example in examples.values()):
            assert body["type"] == name
            CONTRACT.check_event(json.dumps(body).encode())
            for broken in (*_broken(name, body), {**body, "more": 1}, {**body, "id": "evt_1"}):
                with pytest.raises(AssertionError, match="the event breaks"):
                    CONTRACT.check_event(json.dumps(broken).encode())
        assert examples


@pytest.mark.parametrize(
    ("path", "status", "headers", "body", "request_body", "text"),
    [
        ("/orders", 200, HEADERS, CREATED, None, "status not in the contract"),
        ("/order", 201, HEADERS, CREATED, ORDER, "status not in the contract"),
        ("/order", 200, {"Content-Type": "application/json"}, CREATED, ORDER, "X-Request-Id is missing"),
        ("/order", 200, HEADERS | {"Content-Type": "text/html"}, CREATED, ORDER, "content type"),
        ("/order", 200, HEADERS, CREATED.replace(b'"warnings"', b'"notes"'), ORDER, "warnings"),
        ("/order", 200, HEADERS, CREATED.replace(b"019aa3c4", b"019AA3C4"), ORDER, "orderId"),
        ("/order", 200, HEADERS, b"{", ORDER, "is not application/json"),
        ("/order", 200, HEADERS, CREATED, ORDER.replace(b"12", b"1.005"), "amount"),
        ("/order", 200, HEADERS, CREATED, ORDER.replace(b"12", b"1234567890123456789"), "amount"),
        ("/order/1/capture", 200, HEADERS, b'{"merchantReference":"a","amount":0.105,"dateTime":"2026-01-01T00:00:00Z"}', None, "amount"),
        ("/order/1/capture", 200, HEADERS, b'{"merchantReference":"a","amount":1,"dateTime":"2026-01-01 00:00"}', None, "date-time"),
    ],
)  # fmt: skip
def test_for_an_exchange_that_breaks_the_contract_the_error_says_why(
    path: str, status: int, headers: dict[str, str], body: bytes, request_body: bytes | None, text: str
) -> None:
    with pytest.raises(AssertionError, match=text):
        CONTRACT.check("POST", path, status, headers, body, request_body=request_body)


def test_the_check_accepts_looser_requests_for_the_lenient_profile() -> None:
    loose = ORDER[:-1] + b',"consumer":{"phoneNumber":"+1 (212) 555-0100"}}'
    CONTRACT.check("POST", "/order", 200, HEADERS, CREATED, request_body=loose, lenient=True)
    with pytest.raises(AssertionError, match="phoneNumber"):
        CONTRACT.check("POST", "/order", 200, HEADERS, CREATED, request_body=loose)
