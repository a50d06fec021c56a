"""An unknown or wrong setting stops the start. The error names all of them and says what they should be."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from cuota import config
from cuota.rails.senders import MailServer, Senders
from support.commands import Cuota
from support.production import KEY, PRODUCTION, RAIL

LIVE = {
    "CUOTA_MESSAGE_RAIL": "live",
    "CUOTA_TEXT_HOOK_URL": "https://texts.example/send?key=a%20b",
    "CUOTA_TEXT_HOOK_SECRET": f"whsec_{KEY}",
    "CUOTA_SMTP_URL": "smtp://mailer%40shop:p%40ss@mail.example",
    "CUOTA_MAIL_FROM": "pay@mail.example",
}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CUOTA_ENVIRONMENT", "staging", "must be sandbox or production"),
        ("CUOTA_PUBLIC_URL", "pay.example.com", "must be an http or https address"),
        ("CUOTA_PUBLIC_URL", "http://[", "must be an http or https address"),
        ("CUOTA_PUBLIC_URL", "https://me:secret@pay.example.com", "must not contain a user name"),
        ("CUOTA_AUTH_URL", "ftp://x", "must be an http or https address"),
        ("CUOTA_AUDIENCE", "x", "must be an http or https address"),
        ("CUOTA_AUDIENCE", "https://a.example, x", "must be an http or https address"),
        ("CUOTA_AUDIENCE", ",", "must be an http or https address"),
        ("CUOTA_DATABASE_URL", "mysql://x/y", "must be a PostgreSQL address"),
        ("CUOTA_DATABASE_URL", "postgresql://me@127.0.0.1:port/cuota", "must be a PostgreSQL address"),
        ("CUOTA_SECRET_KEY", "secret", "openssl rand -base64 32"),
        ("CUOTA_SECRET_KEY", "sécret", "openssl rand -base64 32"),
        ("CUOTA_SECRET_KEY", base64.b64encode(bytes(32)).decode(), "openssl rand -base64 32"),
        ("CUOTA_ORDER_MINUTES", "0", "must be a whole number from 1 to 1440"),
        ("CUOTA_AUTHORIZATION_DAYS", "91", "must be a whole number from 1 to 90"),
        ("CUOTA_CARD_RAIL", "sand box", "must be sandbox, stripe, or the dotted path"),
        ("CUOTA_MESSAGE_RAIL", "Rail", "must be sandbox, live, or the dotted path"),
        ("CUOTA_ONBOARDING", "yes", "must be off or required"),
        ("CUOTA_SCREENING_RAIL", "list", "must be sandbox, none, or the dotted path"),
        ("CUOTA_SCREENING_DAYS", "0", "must be a whole number from 1 to 365"),
        ("CUOTA_TEXT_HOOK_URL", "texts.example/send", "must be an http or https address"),
        ("CUOTA_TEXT_HOOK_URL", "https://me:secret@texts.example/send", "must not contain a user name"),
        ("CUOTA_TEXT_HOOK_URL", "https://texts.example/se nd", "must be percent-encoded ASCII"),
        ("CUOTA_TEXT_HOOK_SECRET", "whsec_c2hvcnQ=", "must be whsec_ and 24 to 64 random bytes"),
        ("CUOTA_TEXT_HOOK_SECRET", KEY, "must be whsec_ and 24 to 64 random bytes"),
        ("CUOTA_SMTP_URL", "mail.example:587", "must be a mail server such as smtp://"),
        ("CUOTA_SMTP_URL", "smtp://mailer:secret@:587", "must be a mail server such as smtp://"),
        ("CUOTA_SMTP_URL", "smtp://mailer@mail.example", "must contain both a user name and a password"),
        (
            "CUOTA_SMTP_URL",
            "smtp://mailer:secret@mail.example/x",
            "must end after the host and port",
        ),
        ("CUOTA_MAIL_FROM", "Pay <pay@mail.example>", "must be a mail address such as"),
        ("CUOTA_POOL_SIZE", "many", "must be a whole number from 1 to 200"),
        ("CUOTA_BRAND_NAME", "x" * 61, "must be 1 to 60 printable characters"),
        ("CUOTA_BRAND_ACCENT", "green", "must be a color such as #0B6E63"),
        ("CUOTA_BRAND_LOGO", "/no/such/logo.svg", "must be"),
        ("CUOTA_LOG_LEVEL", "loud", "must be debug or info or warning or error"),
        ("CUOTA_PORT", "8000", "no such setting"),
        ("CUOTA_PUBLIC_URI", "x", "Did you mean CUOTA_PUBLIC_URL? `cuota --help` lists all settings."),
        ("CUOTA_BANK_ROUTING", "123456789", "a routing number of 9 digits: its check digit is wrong."),
        ("CUOTA_BANK_ROUTING", "12345", "must be a routing number of 9 digits."),
    ],
)
@pytest.mark.parametrize("command", ["serve", "verify"])
def test_the_error_names_a_bad_setting_and_what_it_should_be(
    bare: Cuota, command: str, name: str, value: str, said: str
) -> None:
    port = ["--port", "0"] if command == "serve" else []
    done = bare(command, *port, **{name: value})
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{name}: " in done.stderr
    assert said in done.stderr
    assert "secret@" not in done.stderr


def test_the_sandbox_needs_a_screening_rail_too_if_merchants_must_be_approved() -> None:
    with pytest.raises(config.BadSettings, match="must be sandbox, or the dotted path of a class"):
        config.load({"CUOTA_ONBOARDING": "required", "CUOTA_SCREENING_RAIL": "none"})
    # Without the requirement, both are fine.
    settings = config.load({"CUOTA_SCREENING_RAIL": "none"})
    assert (settings.onboarding_required, settings.screening_rail) == (False, "none")
    assert config.load({"CUOTA_ONBOARDING": "required"}).onboarding_required


def test_all_bad_settings_are_named_at_once(bare: Cuota) -> None:
    done = bare("verify", CUOTA_POOL_SIZE="x", CUOTA_ORDER_MINUTES="y", CUOTA_COLOR="z")
    assert all(
        name in done.stderr for name in ("CUOTA_POOL_SIZE: ", "CUOTA_ORDER_MINUTES: ", "CUOTA_COLOR: ")
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"CUOTA_SECRET_KEY": ""}, "CUOTA_SECRET_KEY: must be set in production"),
        ({"CUOTA_CREDITOR": ""}, "CUOTA_CREDITOR: must be set in production"),
        ({"CUOTA_CARD_RAIL": "sandbox"}, "CUOTA_CARD_RAIL: production needs a real rail"),
        ({"CUOTA_MESSAGE_RAIL": ""}, "CUOTA_MESSAGE_RAIL: production needs a real rail. Set it to live, or"),
        (
            {**LIVE, "CUOTA_TEXT_HOOK_URL": "http://texts.example/send"},
            "CUOTA_TEXT_HOOK_URL: must be an https address in production",
        ),
        (
            {"CUOTA_ONBOARDING": "required"},
            "CUOTA_SCREENING_RAIL: must be the dotted path of a class if CUOTA_ONBOARDING is required",
        ),
        (
            {"CUOTA_ONBOARDING": "required", "CUOTA_SCREENING_RAIL": "sandbox"},
            "CUOTA_SCREENING_RAIL: must be the dotted path of a class if CUOTA_ONBOARDING is required",
        ),
        ({"CUOTA_DATA_DIR": "data/cuota"}, "CUOTA_DATA_DIR: must be an absolute path in production, such as"),
        ({"CUOTA_PUBLIC_URL": "http://pay.example.com"}, "CUOTA_PUBLIC_URL: must be an https address"),
        ({"CUOTA_AUTH_URL": "http://auth.example.com"}, "CUOTA_AUTH_URL: must be an https address"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_production_refuses_every_setting_of_the_sandbox(
    bare: Cuota, command: str, change: dict[str, str], said: str
) -> None:
    port = ["--port", "0"] if command == "serve" else []
    done = bare(command, *port, **{**PRODUCTION, **change})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cuota: {said}")
    # Only what is wrong is named, not what was derived from it.
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (["CUOTA_TEXT_HOOK_URL"], ["CUOTA_TEXT_HOOK_URL: must be set if CUOTA_MESSAGE_RAIL is live"]),
        (
            ["CUOTA_TEXT_HOOK_SECRET"],
            ["CUOTA_TEXT_HOOK_SECRET: must be set if CUOTA_MESSAGE_RAIL is live"],
        ),
        (["CUOTA_MAIL_FROM"], ["CUOTA_MAIL_FROM: must be set if CUOTA_SMTP_URL is set"]),
        (["CUOTA_SMTP_URL"], ["CUOTA_SMTP_URL: must be set if CUOTA_MAIL_FROM is set"]),
        (
            ["CUOTA_TEXT_HOOK_URL", "CUOTA_TEXT_HOOK_SECRET", "CUOTA_SMTP_URL"],
            ["CUOTA_TEXT_HOOK_URL: ", "CUOTA_TEXT_HOOK_SECRET: ", "CUOTA_SMTP_URL: "],
        ),
    ],
)
def test_live_messages_without_their_settings_are_refused_at_the_start(
    bare: Cuota, lacking: list[str], said: list[str]
) -> None:
    kept = {name: value for name, value in LIVE.items() if name not in lacking}
    done = bare("serve", "--port", "0", **kept)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == len(said)
    assert all(words in done.stderr for words in said)


def test_a_bad_hook_is_reported_once_and_not_also_as_missing(bare: Cuota) -> None:
    done = bare("verify", **{**LIVE, "CUOTA_TEXT_HOOK_URL": "texts", "CUOTA_SMTP_URL": "x"})
    assert done.stderr.count("CUOTA_TEXT_HOOK_URL") == 1
    assert done.stderr.count("CUOTA_SMTP_URL") == 1


def test_live_messages_use_their_settings_and_no_secret_is_printed(tmp_path: Path) -> None:
    settings = config.load({**LIVE, "CUOTA_DATA_DIR": str(tmp_path)})
    server = MailServer("mail.example", 587, False, "mailer@shop", "p@ss")
    senders = Senders(server, "pay@mail.example", LIVE["CUOTA_TEXT_HOOK_URL"], f"whsec_{KEY}", secure=False)
    assert settings.senders == senders
    assert not any(secret in repr(settings) for secret in ("p@ss", KEY, "key=a"))
    closed = config.load(
        {**LIVE, "CUOTA_DATA_DIR": str(tmp_path), "CUOTA_SMTP_URL": "smtps://mail.example"}
    ).senders
    assert closed is not None
    assert closed.mail == MailServer("mail.example", 465, True)
    production = config.load({**PRODUCTION, **LIVE}).senders
    assert production is not None
    assert production.secure


def test_settings_of_an_operator_s_own_rail_are_passed_unchanged_and_never_shown(
    tmp_path: Path,
) -> None:
    environ = {"CUOTA_DATA_DIR": str(tmp_path), "CUOTA_RAIL_PASSWORD": " p@ss ", "CUOTA_RAILING": ""}
    settings = config.load(environ)
    assert settings.rails.own == {"CUOTA_RAIL_PASSWORD": " p@ss "}
    assert "p@ss" not in repr(settings)
    assert "p@ss" not in repr(settings.rails)
    with pytest.raises(config.BadSettings, match="CUOTA_RAILING: there is no such setting"):
        config.load({**environ, "CUOTA_RAILING": "x"})


def test_the_error_names_a_data_folder_that_is_a_file(bare: Cuota) -> None:
    done = bare("verify", CUOTA_DATA_DIR=os.__file__)
    assert done.returncode == 1
    assert "CUOTA_DATA_DIR" in done.stderr


@pytest.mark.parametrize("command", ["serve", "verify"])
def test_the_error_names_a_rail_that_does_not_exist(cuota: Cuota, command: str) -> None:
    port = ["--port", "0"] if command == "serve" else []
    done = cuota(command, *port, CUOTA_CARD_RAIL=RAIL)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cuota: CUOTA_CARD_RAIL: {RAIL} cannot be loaded")


@pytest.mark.parametrize("command", ["serve", "verify"])
def test_a_secret_key_that_differs_from_the_database_s_key_is_reported(cuota: Cuota, command: str) -> None:
    assert cuota("merchant", "list").returncode == 0
    port = ["--port", "0"] if command == "serve" else []
    done = cuota(command, *port, CUOTA_SECRET_KEY=KEY)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cuota: CUOTA_SECRET_KEY is not the key with which this database was encrypted. Set CUOTA_SECRET_KEY to that key, or,"
        " to replace that key, set CUOTA_SECRET_KEY_OLD to it.\n"
    )
