"""The settings of the card rail `stripe`: a missing key, or a key of the other environment, stops the start with an
explanation."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from cuota import config
from cuota.rails.settings import StripeKeys
from support.commands import Cuota
from support.production import PRODUCTION

STRIPE = {
    "CUOTA_CARD_RAIL": "stripe",
    "CUOTA_STRIPE_SECRET_KEY": "sk_test_canary0secret",
    "CUOTA_STRIPE_PUBLISHABLE_KEY": "pk_test_public00",
    "CUOTA_STRIPE_WEBHOOK_SECRET": "whsec_canary0signing",
}
LIVE = {name: text.replace("_test_", "_live_") for name, text in STRIPE.items()}
CANARIES = ("canary0secret", "canary0signing")


def read(tmp_path: Path, **given: str) -> config.Settings:
    key = base64.b64encode(bytes(range(32))).decode()
    return config.load({"CUOTA_DATA_DIR": str(tmp_path), "CUOTA_SECRET_KEY": key, **given})


def refused(tmp_path: Path, **given: str) -> list[str]:
    """Return the sentences with which the settings are refused. They never repeat a key."""
    with pytest.raises(config.BadSettings) as problem:
        read(tmp_path, **given)
    assert not any(canary in str(problem.value) for canary in CANARIES)
    return str(problem.value).splitlines()


def test_the_keys_are_passed_to_the_rail_and_never_shown(tmp_path: Path) -> None:
    settings = read(tmp_path, **STRIPE, CUOTA_STRIPE_API_URL="http://127.0.0.1:8420/")
    assert settings.rails.stripe == StripeKeys(
        "sk_test_canary0secret", "pk_test_public00", "whsec_canary0signing", "http://127.0.0.1:8420"
    )
    assert not any(canary in repr(settings) + repr(settings.rails) for canary in CANARIES)


def test_a_previous_rail_that_is_still_loaded_gets_its_keys_too(tmp_path: Path) -> None:
    settings = read(tmp_path, **{**STRIPE, "CUOTA_CARD_RAIL": "sandbox"}, CUOTA_CARD_RAILS_KEPT="stripe")
    assert settings.rails.stripe is not None


def test_keys_without_the_rail_are_not_used(tmp_path: Path) -> None:
    assert read(tmp_path, **{**STRIPE, "CUOTA_CARD_RAIL": "sandbox"}).rails.stripe is None


@pytest.mark.parametrize("missing", [name for name in STRIPE if name.startswith("CUOTA_STRIPE_")])
@pytest.mark.parametrize("how", ["CUOTA_CARD_RAIL", "CUOTA_CARD_RAILS_KEPT"])
def test_the_error_names_a_missing_key(tmp_path: Path, missing: str, how: str) -> None:
    given = {name: text for name, text in STRIPE.items() if name not in {missing, "CUOTA_CARD_RAIL"}}
    (said,) = refused(tmp_path, **given, **{how: "stripe"})
    assert said.startswith(f"{missing}: must be set if a card rail is stripe, because")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CUOTA_STRIPE_SECRET_KEY", "pk_test_canary0secret"),
        ("CUOTA_STRIPE_SECRET_KEY", "sk_test_canary0secret "[:-1] + " canary0secret"),
        ("CUOTA_STRIPE_SECRET_KEY", "canary0secret"),
        ("CUOTA_STRIPE_PUBLISHABLE_KEY", "sk_test_canary0secret"),
        ("CUOTA_STRIPE_WEBHOOK_SECRET", "canary0signing"),
        ("CUOTA_STRIPE_WEBHOOK_SECRET", "whsec_"),
    ],
)
def test_a_key_in_the_wrong_setting_is_reported_once_and_its_value_is_not_shown(
    tmp_path: Path, name: str, text: str
) -> None:
    (said,) = refused(tmp_path, **{**STRIPE, name: text})
    assert said.startswith(f"{name}: must begin with")


@pytest.mark.parametrize("key", ["sk_live_canary0secret", "rk_live_canary0secret"])
@pytest.mark.parametrize("rail", ["stripe", "sandbox"])
def test_a_live_key_in_the_sandbox_stops_the_start(tmp_path: Path, key: str, rail: str) -> None:
    given = {**STRIPE, "CUOTA_CARD_RAIL": rail, "CUOTA_STRIPE_SECRET_KEY": key}
    assert refused(tmp_path, **given) == [
        "CUOTA_STRIPE_SECRET_KEY: this is a live key, but the sandbox needs a test key."
    ]


def test_a_live_publishable_key_in_the_sandbox_stops_the_start(tmp_path: Path) -> None:
    given = {**STRIPE, "CUOTA_STRIPE_PUBLISHABLE_KEY": "pk_live_public00"}
    assert refused(tmp_path, **given) == [
        "CUOTA_STRIPE_PUBLISHABLE_KEY: this is a live key, but the sandbox needs a test key."
    ]


def test_production_accepts_only_live_keys_and_no_stand_in(tmp_path: Path) -> None:
    assert read(tmp_path, **PRODUCTION | LIVE).rails.stripe is not None
    assert refused(tmp_path, **PRODUCTION | STRIPE) == [
        "CUOTA_STRIPE_SECRET_KEY: this is a test key, but production needs a live key.",
        "CUOTA_STRIPE_PUBLISHABLE_KEY: this is a test key, but production needs a live key.",
    ]
    assert refused(tmp_path, **PRODUCTION | LIVE, CUOTA_STRIPE_API_URL="https://stripe.test") == [
        "CUOTA_STRIPE_API_URL: production always uses Stripe itself. Remove this setting."
    ]


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("migrate",)])
def test_a_command_stops_with_the_same_explanation(bare: Cuota, command: tuple[str, ...]) -> None:
    done = bare(*command, **{**STRIPE, "CUOTA_STRIPE_SECRET_KEY": "sk_live_canary0secret"})
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "cuota: CUOTA_STRIPE_SECRET_KEY: this is a live key, but the sandbox needs a test key.\n"
    )
