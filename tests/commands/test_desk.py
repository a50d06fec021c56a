"""`cuota desk`: sign-in links in the sandbox, and the invitation of a team's first owner."""

from __future__ import annotations

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


def test_a_link_of_the_sandbox_leads_to_the_dashboard_of_the_merchant(cuota: Cuota) -> None:
    found = json.loads(cuota("desk", "link", "--merchant", "Northwind", "--role", "support", "--json").stdout)
    assert found["role"] == "support"
    assert "/desk/enter/" in found["address"]
    again = json.loads(cuota("desk", "link", "--merchant", "Northwind", "--role", "support", "--json").stdout)
    assert again["address"] != found["address"]


def test_a_link_for_an_unknown_merchant_is_refused_in_words(cuota: Cuota) -> None:
    answer = cuota("desk", "link", "--merchant", "Nobody")
    assert "There is no merchant Nobody." in answer.stderr


def test_the_first_owner_is_invited_once(cuota: Cuota) -> None:
    words = ("desk", "invite", "--merchant", "Northwind", "--name", "Ana Silva", "--email", "ana@example.com")
    assert "ana@example.com" in cuota(*words).stdout
    assert "already in the team" in cuota(*words).stderr
    wrong = (*words[:-1], "ana")
    assert "Nobody was invited. Enter an e-mail address" in cuota(*wrong).stderr


def test_a_link_of_the_sandbox_leads_to_the_operators_dashboard(cuota: Cuota) -> None:
    found = json.loads(cuota("desk", "link", "--operator", "--role", "risk", "--json").stdout)
    assert found["role"] == "risk"
    assert "/operator/enter/" in found["address"]


def test_a_role_of_the_other_team_is_refused_with_the_roles_that_there_are(cuota: Cuota) -> None:
    assert (
        "Choose one of: owner, support, risk, finance, read-only."
        in cuota("desk", "link", "--operator", "--role", "developer").stderr
    )
    assert (
        "Choose one of: owner, admin,"
        in cuota("desk", "link", "--merchant", "Northwind", "--role", "risk").stderr
    )


def test_a_link_names_one_team(cuota: Cuota) -> None:
    both = cuota("desk", "link", "--operator", "--merchant", "Northwind")
    for answer in (both, cuota("desk", "link")):
        assert "Give either --merchant NAME_OR_ID, or --operator." in answer.stderr


def test_the_operators_first_owner_is_invited_once(cuota: Cuota) -> None:
    words = ("desk", "invite", "--operator", "--name", "Ana Silva", "--email", "ana@operator.example")
    assert "ana@operator.example" in cuota(*words).stdout
    assert "already in the team" in cuota(*words).stderr
