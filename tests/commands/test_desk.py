"""`cuota desk`: sign-in links in the sandbox, and the invitation of a team's first owner."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator

import pytest

from support.commands import Cuota, on_a_folder


@pytest.fixture(scope="module")
def cuota() -> Iterator[Cuota]:
    with on_a_folder() as command:
        command("migrate")
        command("merchant", "create", "--name", "Northwind")
        yield command


def test_a_link_of_the_sandbox_opens_the_merchant_s_dashboard(cuota: Cuota) -> None:
    found = json.loads(cuota("desk", "link", "--merchant", "Northwind", "--role", "support", "--json").stdout)
    assert found["role"] == "support"
    assert "/desk/enter/" in found["address"]
    again = json.loads(cuota("desk", "link", "--merchant", "Northwind", "--role", "support", "--json").stdout)
    assert again["address"] != found["address"]


def test_a_link_for_an_unknown_merchant_is_refused_with_an_explanation(cuota: Cuota) -> None:
    answer = cuota("desk", "link", "--merchant", "Nobody")
    assert "There is no merchant Nobody." in answer.stderr


def test_the_first_owner_is_invited_once(cuota: Cuota) -> None:
    words = ("desk", "invite", "--merchant", "Northwind", "--name", "Ana Silva", "--email", "ana@example.com")
    assert "ana@example.com" in cuota(*words).stdout
    assert "already in the team" in cuota(*words).stderr
    wrong = (*words[:-1], "ana")
    assert "Nobody was invited. Enter an e-mail address" in cuota(*wrong).stderr


def test_a_link_of_the_sandbox_opens_the_operator_s_dashboard(cuota: Cuota) -> None:
    found = json.loads(cuota("desk", "link", "--operator", "--role", "risk", "--json").stdout)
    assert found["role"] == "risk"
    assert "/operator/enter/" in found["address"]


def test_a_role_of_the_other_team_is_refused_and_the_error_lists_the_roles(cuota: Cuota) -> None:
    assert (
        "Choose one of: owner, support, risk, finance, read-only."
        in cuota("desk", "link", "--operator", "--role", "developer").stderr
    )
    assert (
        "Choose one of: owner, admin,"
        in cuota("desk", "link", "--merchant", "Northwind", "--role", "risk").stderr
    )


def test_a_link_is_for_exactly_one_team(cuota: Cuota) -> None:
    both = cuota("desk", "link", "--operator", "--merchant", "Northwind")
    for answer in (both, cuota("desk", "link")):
        assert answer.returncode == 2
        assert "Give either --merchant NAME_OR_ID, or --operator." in answer.stderr


def test_the_operators_first_owner_is_invited_once(cuota: Cuota) -> None:
    words = ("desk", "invite", "--operator", "--name", "Ana Silva", "--email", "ana@operator.example")
    assert "ana@operator.example" in cuota(*words).stdout
    assert "already in the team" in cuota(*words).stderr


def test_a_command_that_changes_a_merchant_is_in_the_operator_s_log_with_its_user(cuota: Cuota) -> None:
    cuota("merchant", "create", "--name", "Logged")
    cuota("merchant", "update", "Logged", "--maximum", "500.00")
    cuota("merchant", "adjust", "Logged", "--amount", "0.00", "--reason", "nothing")
    found = [row for row in json.loads(cuota("desk", "log", "--json").stdout) if row["subject"] == "Logged"]
    assert [(row["action"], row["after"]) for row in reversed(found)] == [
        ("merchant.create", None),
        ("merchant.limits", {"maximum": "500.00"}),
        ("money.adjust", {"amount": "0.00"}),
        ("money.adjust.refused", {"amount": "0.00"}),
    ]
    assert {row["actor"] for row in found} == {f"command line, user {getpass.getuser()}"}


def test_a_command_that_changes_a_merchant_is_in_the_merchant_s_audit_log_without_the_reason(
    cuota: Cuota,
) -> None:
    cuota("merchant", "create", "--name", "Told")
    cuota("merchant", "update", "Told", "--name", "Told better", "--maximum", "500.00")
    cuota("merchant", "adjust", "Told better", "--amount", "7.00", "--reason", "looks like fraud")
    cuota("merchant", "adjust", "Told better", "--amount", "0.00", "--reason", "refused")
    answer = cuota("desk", "log", "--merchant", "Told better", "--json")
    found = json.loads(answer.stdout)
    assert [(row["action"], row["actor"], row["after"]) for row in reversed(found)] == [
        ("merchant.limits", "operator", {"name": "Told better", "maximum": "500.00"}),
        ("money.adjust", "operator", {"amount": "7.00"}),
    ]
    assert "fraud" not in answer.stdout
    cuota("merchant", "create", "--name", "Quiet")
    assert cuota("desk", "log", "--merchant", "Quiet").stdout == "The log is empty.\n"
    assert "There is no merchant Nobody." in cuota("desk", "log", "--merchant", "Nobody").stderr


def test_the_operators_log_is_filtered_by_the_beginning_of_the_action(cuota: Cuota) -> None:
    cuota("merchant", "create", "--name", "Filtered")
    text = cuota("desk", "log", "--action", "merchant.").stdout
    assert "Filtered" in text
    assert "team." not in text
    assert "must be a whole number" in cuota("desk", "log", "--limit", "0").stderr


def test_an_emergency_link_is_for_an_owner_and_stands_in_the_log_with_the_reason(cuota: Cuota) -> None:
    cuota("desk", "invite", "--operator", "--name", "Bo", "--email", "bo@operator.example")
    words = ("desk", "link", "--operator", "--emergency", "--email", "bo@operator.example")
    asked = cuota(*words)
    assert (
        asked.returncode,
        "needs --operator, the --email of an owner, and a --reason" in asked.stderr,
    ) == (2, True)
    found = json.loads(cuota(*words, "--reason", "the provider is down", "--json").stdout)
    assert "/operator/enter/" in found["address"]
    entry = json.loads(cuota("desk", "log", "--action", "team.emergency", "--json").stdout)[0]
    assert (entry["subject"], entry["reason"]) == ("bo@operator.example", "the provider is down")
    assert getpass.getuser() in entry["actor"]


def test_an_emergency_link_with_a_new_factor_says_in_the_log_which_factor_was_removed(cuota: Cuota) -> None:
    cuota("desk", "invite", "--operator", "--name", "Fay", "--email", "fay@pay.example")
    link = (
        "desk",
        "link",
        "--operator",
        "--emergency",
        "--email",
        "fay@pay.example",
        "--reason",
        "lost phone",
    )
    assert cuota(*link, "--new-factor").returncode == 0
    entry = json.loads(cuota("desk", "log", "--action", "team.emergency", "--json").stdout)[0]
    assert (entry["before"], entry["after"]) == ({"secondFactor": "none"}, {"secondFactor": "removed"})


def test_an_emergency_link_for_nobody_and_for_another_role_is_refused_and_logged(cuota: Cuota) -> None:
    cuota("desk", "invite", "--operator", "--name", "Cy", "--email", "cy@operator.example", "--role", "risk")
    for email in ("cy@operator.example", "nobody@operator.example"):
        words = ("desk", "link", "--operator", "--emergency", "--email", email, "--reason", "try")
        assert f"No owner of the operator's team has the e-mail address {email}." in cuota(*words).stderr
        actions = [each["action"] for each in json.loads(cuota("desk", "log", "--json").stdout)]
        assert actions[:2] == ["team.emergency.refused", "team.emergency"]
