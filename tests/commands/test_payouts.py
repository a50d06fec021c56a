"""`cuota payouts` and `cuota merchant bank`, as an operator uses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.test_merchants import create
from commands.test_operate import sql
from support.commands import Cuota

ACCOUNT = ("--routing", "021000021", "--account", "99887766554433")


def shown(cuota: Cuota, *arguments: str, status: int = 0) -> Any:
    done = cuota(*arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def a_payout(cuota: Cuota, merchant: dict[str, Any], number: int, status: str, **more: str) -> None:
    values = {"problem": "NULL", "return_reason": "NULL", "tries": "0", "arrival": "current_date + 9", **more}
    sql(
        cuota,
        f"""SELECT post_merchant_transfer('{merchant["merchantId"]}', 'adjustment', gen_random_uuid(), 'losses', 'merchant_payable',
            4711, 'USD', now(), 'adjustment', 4711);
        INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id, cutoff,
            closed_at, arrival_date, problem, return_reason, tries)
        SELECT merchant_id, gen_random_uuid(), {number}, '{status}', 4711, 'USD', {number}, {number}, account_id, now(), now(),
            {values["arrival"]}, {values["problem"]}, {values["return_reason"]}, {values["tries"]}
        FROM bank_accounts WHERE merchant_id = '{merchant["merchantId"]}' LIMIT 1""",
    )


def test_before_the_first_payout_the_list_says_that_it_is_empty(cuota: Cuota) -> None:
    done = cuota("payouts", "--merchant", create(cuota)["name"])
    assert (done.returncode, done.stdout) == (0, "No such payouts.\n")


def test_payouts_are_listed_by_merchant_and_status_with_their_errors(cuota: Cuota) -> None:
    merchant = create(cuota)
    a_payout(cuota, merchant, 1, "paid")
    a_payout(cuota, merchant, 2, "sent", arrival="current_date - 9", tries="7")
    a_payout(cuota, merchant, 3, "created", problem="'no answer within 10 seconds'", tries="3")
    a_payout(cuota, merchant, 4, "returned", return_reason="'R03 No Account'")
    facts = shown(cuota, "payouts", "--merchant", merchant["name"], status=1)
    found = {each["number"]: each for each in facts["payouts"]}
    assert facts["bankRail"] == "sandbox"
    assert {number: each["status"] for number, each in found.items()} == {
        1: "paid",
        2: "sent",
        3: "created",
        4: "returned",
    }
    assert (found[1]["amount"], found[1]["bankAccount"], found[1]["overdue"]) == (
        "47.11",
        {"last4": "6789"},
        False,
    )
    assert (found[2]["overdue"], found[2]["tries"]) == (True, 7)
    assert found[3]["problem"] == "no answer within 10 seconds"
    assert found[4]["reason"] == "R03 No Account"
    text = cuota("payouts", "--merchant", merchant["merchantId"]).stdout
    assert "(OVERDUE: the bank has not confirmed the payment; asked 7 times)" in text
    assert "(3 tries, the last failed: no answer within 10 seconds)" in text
    assert "(returned: R03 No Account)" in text
    only = shown(cuota, "payouts", "--merchant", merchant["name"], "--status", "paid")
    assert [each["number"] for each in only["payouts"]] == [1]


def test_paused_payouts_are_named_with_what_to_do(cuota: Cuota) -> None:
    merchant = create(cuota)
    sql(cuota, f"UPDATE settlements SET paused_since = now() WHERE merchant_id = '{merchant['merchantId']}'")
    done = cuota("payouts", "--merchant", merchant["name"])
    assert done.returncode == 1
    assert f"Payouts of {merchant['name']} have been paused since " in done.stdout
    assert f"merchant bank {merchant['merchantId']} --routing N --account N" in done.stdout
    assert "Payouts have been paused since" in cuota("merchant", "bank", merchant["name"]).stdout
    assert shown(cuota, "merchant", "bank", merchant["name"])["payoutsPausedSince"]


def test_the_list_of_problems_has_only_what_a_person_must_look_at(cuota: Cuota) -> None:
    merchant = create(cuota)
    named = ("payouts", "--problems", "--merchant", merchant["name"])
    a_payout(cuota, merchant, 1, "paid")
    a_payout(cuota, merchant, 2, "created")
    done = cuota(*named)
    assert (done.returncode, done.stdout) == (0, "No such payouts.\n")
    a_payout(cuota, merchant, 3, "created", problem="'no answer within 10 seconds'", tries="3")
    facts = shown(cuota, *named, status=1)
    assert [each["number"] for each in facts["payouts"]] == [3]
    facts = json.loads(cuota(*named, "--json", CUOTA_BANK_RAIL="none").stdout)
    assert [each["number"] for each in facts["payouts"]] == [3, 2]


def test_without_a_bank_rail_the_list_and_verify_say_that_payouts_wait(cuota: Cuota) -> None:
    merchant = create(cuota)
    a_payout(cuota, merchant, 1, "created")
    done = cuota("payouts", "--merchant", merchant["name"], CUOTA_BANK_RAIL="none")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "No bank rail is configured (CUOTA_BANK_RAIL): payouts are not sent and stay `created`.\n"
    )
    assert "No bank rail is configured (CUOTA_BANK_RAIL)" in cuota("verify", CUOTA_BANK_RAIL="none").stdout
    assert "No bank rail" not in cuota("verify").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--merchant", "Nobody"), "There is no merchant Nobody"),
        (("--status", "lost"), "invalid choice: 'lost'"),
    ],
)
def test_a_merchant_or_a_status_that_does_not_exist_is_refused(
    cuota: Cuota, arguments: tuple[str, ...], said: str
) -> None:
    done = cuota("payouts", *arguments)
    assert done.returncode != 0
    assert said in done.stderr


def test_an_account_is_shown_by_its_last_digits_and_a_change_takes_effect_after_three_days(
    cuota: Cuota,
) -> None:
    merchant = create(cuota)
    before = shown(cuota, "merchant", "bank", merchant["name"])
    assert (before["inForce"]["last4"], before["pending"], before["earlier"]) == ("6789", None, [])
    done = cuota("merchant", "bank", merchant["name"], *ACCOUNT)
    assert done.returncode == 0
    assert "A change is pending: to the account ending in 4433, from 20" in done.stdout
    assert "99887766554433" not in done.stdout + done.stderr
    after = shown(cuota, "merchant", "bank", merchant["merchantId"])
    assert (after["inForce"]["last4"], after["pending"]["last4"]) == ("6789", "4433")
    assert shown(cuota, "merchant", "bank", merchant["name"], "--cancel")["pending"] is None
    again = cuota("merchant", "bank", merchant["name"], "--cancel")
    assert again.returncode == 1
    assert "has no change that has yet to take effect" in again.stderr


def test_numbers_that_were_rejected_and_entered_again_are_shown_with_the_reason(cuota: Cuota) -> None:
    merchant = create(cuota)
    assert cuota("merchant", "bank", merchant["name"], *ACCOUNT).returncode == 0
    before = shown(cuota, "merchant", "bank", merchant["name"])
    assert before["rejectedBefore"] is None
    sql(
        cuota,
        f"""INSERT INTO onboarding_decisions (merchant_id, decision_id, item, accepted, about, reason, decider, decided_at)
        VALUES ('{merchant["merchantId"]}', gen_random_uuid(), 'bank', false, '{before["pending"]["accountId"]}', 'not theirs', 'Risk', now())""",
    )
    assert cuota("merchant", "bank", merchant["name"], *ACCOUNT).returncode == 0
    assert shown(cuota, "merchant", "bank", merchant["name"])["rejectedBefore"]["reason"] == "not theirs"
    assert "its numbers were rejected at 20" in cuota("merchant", "bank", merchant["name"]).stdout


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (("--routing", "021000021"), "Give both --routing and --account.", 2),
        (("--account", "12345"), "Give both --routing and --account.", 2),
        ((*ACCOUNT, "--cancel"), "not both", 2),
        (("--routing", "021000022", "--account", "12345"), "The routing number is not valid", 1),
        (("--routing", "02100002", "--account", "12345"), "must have 9 digits", 1),
        (("--routing", "021000021", "--account", "123"), "4 to 17 digits", 1),
    ],
)
def test_numbers_that_are_missing_or_wrong_change_nothing(
    cuota: Cuota, arguments: tuple[str, ...], said: str, status: int
) -> None:
    merchant = create(cuota)
    done = cuota("merchant", "bank", merchant["name"], *arguments)
    assert done.returncode == status
    assert "Nothing was changed." in done.stderr
    assert said in done.stderr
    assert shown(cuota, "merchant", "bank", merchant["name"])["pending"] is None
