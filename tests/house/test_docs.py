"""The lists in the docs match the code. A failure says which line to paste where."""

from __future__ import annotations

import re
from pathlib import Path

from cuota.config.table import SETTINGS
from cuota.core.dispute.dispute import (
    APPEAL_WITHIN,
    DISPUTE_EDGES,
    OPEN_WITHIN,
    REMIND_BEFORE,
    RESPOND_WITHIN,
    DisputeOutcome,
    DisputeReason,
    DisputeStatus,
)
from cuota.core.dispute.return_notice import HOLD_FOR
from cuota.core.ledger import Account
from cuota.core.order.event import EVENT_TYPES, TEST_EVENT, EventSubject
from cuota.core.order.order import EDGES, PaymentState
from cuota.core.payout.line import LineType
from cuota.core.refusal import Code
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_CARDS, TEST_ROUTING
from cuota.web.app import ROUTES
from cuota.web.docs.bundle import bundle
from cuota.web.problem import STATUS

ROOT = Path(__file__).resolve().parents[2]


def _doc(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def _contract() -> dict:
    return bundle()


def test_running_md_lists_every_setting() -> None:
    for setting in SETTINGS:
        row = f"| `{setting.name}` | {setting.meaning} | {setting.default} |"
        assert row in _doc("running.md"), f"docs/running.md lacks this row:\n{row}"


def test_the_vocabulary_lists_every_transition_of_an_order() -> None:
    for edge in EDGES:
        row = f"| {edge.before} | {edge.move} | {edge.after} | {edge.event} | {edge.meaning} |"
        assert row in _doc("vocabulary.md"), f"docs/vocabulary.md lacks this row:\n{row}"


def test_the_vocabulary_lists_every_transition_of_a_dispute() -> None:
    for edge in DISPUTE_EDGES:
        row = f"| {edge.before} | {edge.move} | {edge.after} | {edge.event} | {edge.meaning} |"
        assert row in _doc("vocabulary.md"), f"docs/vocabulary.md lacks this row:\n{row}"


def test_disputes_md_has_every_status_outcome_event_line_and_deadline_of_disputes() -> None:
    page = _doc("disputes.md")
    lines = [each for each in LineType if each.startswith("dispute_")]
    events = [each.name for each in EVENT_TYPES if each.name.startswith(("dispute.", "return."))]
    for name in (*DisputeStatus, *DisputeOutcome, *DisputeReason, *lines, *events):
        assert f"`{name}`" in page, f"docs/disputes.md does not explain {name}"
    days = [OPEN_WITHIN.days, RESPOND_WITHIN.days, REMIND_BEFORE.days, APPEAL_WITHIN.days, HOLD_FOR.days]
    table = page.partition("## Deadlines")[2].partition("\n## ")[0]
    assert [int(number) for number in re.findall(r"\b([0-9]+) days\b", table)] == days


def test_webhooks_md_lists_every_event_type_with_its_operation_and_no_other() -> None:
    rows = re.findall(
        r"^\| `([a-z_]+\.[a-z_]+)` \| [^|]+ \| (?:`(\w+)`|null) \|", _doc("webhooks.md"), re.MULTILINE
    )
    types = {each.name: each.operation or "" for each in EVENT_TYPES}
    assert dict(rows) == {**types, TEST_EVENT: ""}
    assert len(rows) == len(types) + 1


def test_the_contract_describes_every_event_type_like_the_code() -> None:
    contract = _contract()
    schemas = contract["components"]["schemas"]
    assert set(schemas["EventType"]["enum"]) == {each.name for each in EVENT_TYPES}
    assert set(schemas["EventOperation"]["enum"]) == {each.operation for each in EVENT_TYPES} - {None}
    for each in EVENT_TYPES:
        body = contract["webhooks"][each.name]["post"]["requestBody"]["content"]["application/json"]["schema"]
        said = body["allOf"][1]["properties"]
        if each.about is not EventSubject.ORDER:
            # A payout and a bank account have no operation.
            assert said["type"]["const"] == each.name
            continue
        assert said["operation"] == ({"const": each.operation} if each.operation else {"type": "null"}), each
        assert (said["type"]["const"], said["success"]["const"]) == (each.name, each.success), each


def test_every_transition_of_an_order_writes_an_event_of_the_table() -> None:
    names = [each.name for each in EVENT_TYPES]
    assert len(set(names)) == len(names)
    assert {edge.event for edge in EDGES} <= set(names)


def test_the_vocabulary_lists_every_payment_state() -> None:
    for state in PaymentState:
        assert state in _doc("vocabulary.md")


def test_the_ledger_page_lists_every_account() -> None:
    for account in Account:
        assert account in _doc("ledger.md")


def test_every_refusal_has_one_status_and_the_contract_has_the_same_one() -> None:
    codes = _contract()["components"]["schemas"]["ErrorCode"]["x-codes"]
    assert set(STATUS) == set(Code)
    assert {str(code) for code in Code} == set(codes)
    for code, (status, title) in STATUS.items():
        assert (codes[code]["status"], codes[code]["title"]) == (status, title), code


def test_the_contract_has_the_documented_routes_and_no_others() -> None:
    paths = _contract()["paths"]
    documented: dict[str, set[str]] = {}
    for route in ROUTES:
        if route.area.documented:
            path = re.sub(r"_(\w)", lambda found: found[1].upper(), route.path)
            documented.setdefault(path, set()).update(route.methods.lower().split())
    verbs = {"get", "post", "put", "patch", "delete", "options"}
    assert documented == {path: verbs & set(item) for path, item in paths.items()}


def test_the_api_page_and_the_contract_list_the_sandbox_s_test_data() -> None:
    contract = str(_contract())
    for card in TEST_CARDS:
        assert f"| card {card.number} | {card.meaning} |" in _doc("api.md")
        assert card.number in contract
    for account in TEST_ACCOUNTS:
        assert re.search(rf"account {account.number}[^|]*\| {re.escape(account.meaning)} \|", _doc("api.md"))
    assert TEST_ROUTING in _doc("api.md")


def test_the_list_of_decisions_has_every_page() -> None:
    listed = _doc("decisions/README.md")
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        assert page.name == "README.md" or page.name in listed, f"docs/decisions/README.md lacks {page.name}"
