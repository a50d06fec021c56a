"""The help texts explain each command. A usage error exits with 2 and shows the right usage."""

from __future__ import annotations

import pytest

from support.commands import Cuota

COMMANDS = [
    "", "serve", "demo", "merchant", "merchant create", "merchant list", "merchant show", "merchant update",
    "merchant rotate-secret", "merchant rotate-signing-secret", "merchant rotate-webhook-secret", "merchant reinstate",
    "keys rewrap", "merchant revoke", "sandbox", "sandbox complete", "keys", "keys rotate", "verify", "migrate",
    "merchant bank", "payouts",
    "payout-export",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(bare: Cuota, command: str) -> None:
    done = bare(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: cuota {command}".rstrip())


def test_the_help_names_every_setting_and_the_meaning_of_the_exit_codes(bare: Cuota) -> None:
    from cuota.config.table import SETTINGS

    text = bare("--help").stdout
    assert all(setting.name in text and setting.meaning in text for setting in SETTINGS)
    assert "Exit codes: 0 success; 1" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "required: COMMAND"),
        ("pay", "invalid choice: 'pay'"),
        ("merchant", "required"),
        ("merchant create", "--name"),
        ("merchant create --name A --minimum x", "x is not an amount such as 100.00"),
        ("merchant create --name A --minimum 1.005", "1.005 is not an amount such as 100.00"),
        ("merchant create --name A --maximum 1e3", "1e3 is not an amount"),
        ("merchant create --name A --profile loose", "strict or lenient"),
        ("merchant show", "NAME_OR_ID"),
        ("merchant rotate-secret A --old-lives-hours -1", "from 0 to"),
        ("merchant rotate-signing-secret A --old-lives-hours -1", "from 0 to"),
        ("merchant rotate-secret A --old-lives-hours 99999999999", "from 0 to"),
        ("payout-export --merchant A --payout 1", "1 is not the id of a payout; `cuota payouts` lists them"),
        ("serve --port 65536", "must be a port"),
        ("serve --port http", "must be a port"),
        ("serve --workers 0", "from 1 to 64"),
        ("sandbox complete http://127.0.0.1:9/", "--outcome"),
        ("sandbox complete http://127.0.0.1:9/ --outcome paid", "'approved'"),
        ("verify --fix", "unrecognized arguments: --fix"),
    ],
)
def test_a_usage_error_exits_with_2_and_shows_the_right_usage(bare: Cuota, arguments: str, said: str) -> None:
    done = bare(*arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not bare.data.exists()


def test_a_text_that_is_no_address_is_not_a_checkout_address(bare: Cuota) -> None:
    done = bare("sandbox", "complete", "nope", "--outcome", "approved")
    assert "nope is not a checkout address. Give the redirectUrl of an order." in done.stderr


@pytest.mark.parametrize(
    "address",
    ["nonsense", "http://", "http://[", "http://127.0.0.1:9/checkout", "ftp://x/", "http://127.0.0.1:99999/"],
)
def test_an_unreachable_checkout_exits_with_1_and_prints_one_line(bare: Cuota, address: str) -> None:
    done = bare("sandbox", "complete", address, "--outcome", "approved")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cuota: ")
    assert done.stderr.count("\n") == 1
