"""`cuota plan hardship`, `cuota consumer block` and `unblock`, as an operator uses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.makers import complete
from support.own_service import opened_own

PHONE = "2125550173"
WHY = ("--reason", "lost the job")


@dataclass(frozen=True)
class Agreed:
    """Orders of $100.00 with a plan, by their references."""

    cuota: Cuota
    orders: dict[str, str]


@pytest.fixture(scope="module")
def agreed() -> Iterator[Agreed]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        yield asyncio.run(_agreed(command, dict(embedded.dsn_kwargs)))


async def _agreed(command: Cuota, where: dict[str, Any]) -> Agreed:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        made = {}
        for name in ("H-1", "H-2", "H-3", "H-4"):
            order = await own.auto_merchant.create(
                "100.00", merchantReference=name, merchantFeeForPaymentPlan="4.00"
            )
            await complete(own.service, own.auto_merchant.merchant_id, order, phone=PHONE)
            made[name] = order["orderId"]
        await own.auto_merchant.create("50.00", merchantReference="NEW")
        return Agreed(command, made)


def said(agreed: Agreed, *arguments: str) -> Any:
    done = agreed.cuota(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(agreed: Agreed, *arguments: str, status: int = 1) -> str:
    done = agreed.cuota(*arguments)
    assert (done.returncode, done.stdout) == (status, ""), done.stdout
    return done.stderr


def days(payments: list[dict[str, Any]]) -> list[date]:
    return [date.fromisoformat(each["dueDate"]) for each in payments]


@pytest.mark.parametrize("kind", [("--pause", "14d"), ("--move", "3=2099-01-01"), ("--waive", "all")])
@pytest.mark.parametrize("option", [("--every", "14d"), ("--first", "2099-01-01")])
def test_an_option_of_smaller_payments_is_refused_with_another_kind_of_change(
    bare: Cuota, kind: tuple[str, str], option: tuple[str, str]
) -> None:
    done = bare("plan", "hardship", "H-1", *kind, *option, *WHY)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option[0]} belongs to --payments" in done.stderr


def test_smaller_payments_without_a_first_day_are_wrong_usage(bare: Cuota) -> None:
    done = bare("plan", "hardship", "H-1", "--payments", "6", *WHY)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--payments also needs --first" in done.stderr


def test_the_output_speaks_to_the_operator_and_not_to_the_consumer(agreed: Agreed) -> None:
    for change, words in (
        (("--pause", "7"), "The consumer's payments pause for 7 days."),
        (("--waive", "all"), "$3.00 of the fee for the plan is waived."),
    ):
        done = agreed.cuota("plan", "hardship", "H-4", *change, *WHY, "--dry-run")
        assert words in done.stdout
        assert "You" not in done.stdout


def test_a_dry_run_shows_the_plan_before_and_after_and_changes_nothing(agreed: Agreed) -> None:
    shown = said(agreed, "plan", "hardship", "H-1", "--pause", "14d", *WHY, "--dry-run")
    assert (shown["dryRun"], shown["kind"], shown["changeId"]) == (True, "paused", None)
    assert [new - old for old, new in zip(days(shown["before"]), days(shown["after"]), strict=True)] == [
        timedelta(days=14)
    ] * 3
    assert said(agreed, "explain", "plan", "H-1")["changes"] == []


def test_a_pause_and_moved_dates_stand_in_the_plans_history_and_in_the_log(agreed: Agreed) -> None:
    made = said(agreed, "plan", "hardship", "H-1", "--pause", "14", *WHY)
    last = days(made["after"])[-1] + timedelta(days=3)
    text = agreed.cuota("plan", "hardship", agreed.orders["H-1"], "--move", f"4={last}", *WHY).stdout
    assert "Changed: change 2 of this plan. Payments move to later days." in text
    told = said(agreed, "explain", "plan", "H-1")
    assert [each["kind"] for each in told["changes"]] == ["paused", "dates_moved"]
    assert told["installments"][3]["dueDate"] == str(last)
    log = agreed.cuota("desk", "log").stdout
    assert log.count("plan.change") == 2
    assert "lost the job" in log
    assert agreed.cuota("verify").returncode == 0


def test_smaller_payments_and_a_waived_fee(agreed: Agreed) -> None:
    first = said(agreed, "plan", "hardship", "H-2", "--pause", "1", *WHY, "--dry-run")["before"][0]["dueDate"]
    made = said(
        agreed, "plan", "hardship", "H-2", "--payments", "6", "--every", "14d", "--first", first, *WHY
    )
    assert [each["amount"] for each in made["after"]] == ["13.00"] * 6
    made = said(agreed, "plan", "hardship", "H-2", "--waive", "all", *WHY)
    assert (made["waived"], {each["amount"] for each in made["after"]}) == ("3.00", {"12.50"})
    assert agreed.cuota("verify").returncode == 0


def test_what_the_policy_does_not_allow_and_wrong_words_change_nothing(agreed: Agreed) -> None:
    for arguments, words in (
        (("H-3", "--pause", "61"), "at most 60 days"),
        (("H-3", "--move", "9=2099-01-01"), "This plan has no payment 9."),
        (("NEW", "--pause", "7"), "There is no plan of this order."),
        (("H-9", "--pause", "7"), "There is no order H-9."),
        (("H-3", "--waive", "5.00"), "At most $3.00 of the fee"),
    ):
        assert words in refused(agreed, "plan", "hardship", *arguments, *WHY)
    log = json.loads(agreed.cuota("desk", "log", "--json").stdout)
    newest = [(each["action"], each["reason"]) for each in log[:2]]
    assert [action for action, _ in newest] == ["plan.change.refused", "plan.change"]
    assert "At most $3.00 of the fee" in newest[0][1]
    for wrong in (
        ("H-3", "--pause", "two weeks", *WHY),
        ("H-3", "--move", "4", *WHY),
        ("H-3", "--pause", "7", "--waive", "all", *WHY),
        ("H-3", "--pause", "7"),
        ("H-3", "--pause", "7", "--reason", " "),
    ):
        refused(agreed, "plan", "hardship", *wrong, status=2)
    assert said(agreed, "explain", "plan", "H-3")["changes"] == []


def test_the_policy_is_a_setting(agreed: Agreed) -> None:
    done = agreed.cuota("plan", "hardship", "H-4", "--pause", "8", *WHY, CUOTA_HARDSHIP_PAUSE_DAYS="7")
    assert (done.returncode, "at most 7 days" in done.stderr) == (1, True)
    done = agreed.cuota("plan", "hardship", "H-4", "--waive", "all", *WHY, CUOTA_HARDSHIP_FEE_A_YEAR="0.00")
    assert (done.returncode, "At most $0.00 of fees" in done.stderr) == (1, True)


def test_a_consumer_is_blocked_and_unblocked_by_phone(agreed: Agreed) -> None:
    made = said(
        agreed,
        "consumer",
        "block",
        "(212) 555-0173",
        "--why",
        "misuse",
        "--until",
        "2090-01-01",
        "--reason",
        "stolen phone",
    )
    assert (made["kind"], made["decidedMeanwhile"]) == ("misuse", [])
    again = refused(agreed, "consumer", "block", PHONE, "--why", "identity", "--reason", "odd")
    assert "The consumer is blocked already." in again
    assert (
        "The block has ended" in agreed.cuota("consumer", "unblock", PHONE, "--reason", "has it back").stdout
    )
    assert "The consumer is not blocked." in refused(
        agreed, "consumer", "unblock", PHONE, "--reason", "again"
    )
    for arguments in (
        (PHONE, "--why", "race", "--reason", "odd"),
        (PHONE, "--why", "misuse"),
        ("911", "--why", "misuse", "--reason", "x"),
    ):
        refused(agreed, "consumer", "block", *arguments, status=2)
    log = agreed.cuota("desk", "log").stdout
    assert "stolen phone" in log
    assert PHONE not in log
