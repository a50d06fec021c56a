"""Signatures, compared with published examples and with other implementations."""

from __future__ import annotations

import pytest

from cuota.core.webhook.signature import pay_signature, webhook_signature

# The example of the Standard Webhooks specification, which its libraries also use in their tests.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENT, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_example_of_standard_webhooks_has_the_published_signature() -> None:
    assert webhook_signature([SECRET], EVENT, AT, BODY) == SIGNED
    assert webhook_signature([SECRET.removeprefix("whsec_")], EVENT, AT, BODY) == SIGNED


def test_every_valid_secret_signs_the_webhook_beginning_with_the_newest() -> None:
    other = "whsec_" + "A" * 43 + "="
    both = webhook_signature([other, SECRET], EVENT, AT, BODY)
    assert both == f"{webhook_signature([other], EVENT, AT, BODY)} {SIGNED}"


@pytest.mark.parametrize("change", [{"event_id": "msg_2"}, {"timestamp": AT + 1}, {"body": BODY + b" "}])
def test_the_id_the_time_and_the_body_are_all_signed(change: dict[str, object]) -> None:
    values: dict[str, object] = {"event_id": EVENT, "timestamp": AT, "body": BODY, **change}
    assert webhook_signature([SECRET], **values) != SIGNED  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", ["whsec_", "whsec_%%%", "whsec_abc"])
def test_a_text_that_is_no_key_cannot_sign(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_ and base64"):
        webhook_signature([secret], EVENT, AT, BODY)


def test_the_sdk_s_signature_is_base64_hmac_sha256_of_the_raw_body() -> None:
    # printf '%s' '{"amount":"10.00"}' | openssl dgst -sha256 -hmac 'key' -binary | base64
    assert pay_signature("key", b'{"amount":"10.00"}') == "uyOfyffBqt6QRhjtRUqrIltCqxCDORwxFpRsTauJGsg="
    assert pay_signature("kéy", b"") != pay_signature("key", b"")
