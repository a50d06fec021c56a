"""Explaining a wrong signature and reading a form take a bounded number of steps."""

from __future__ import annotations

import base64

import pytest

from bench.guard import forms, json_bodies
from cuota.core.refusal import Refused
from cuota.core.wire.signature_hint import explain
from cuota.web.api.gateway_form import MOST_FIELDS, fields_of, one_of, signed_text
from cuota.web.body import MOST_FORM_BYTES
from support.lines_run import lines_run

SECRET = "signing_y4w0vbDyzbhIFdrO_B5jrFBrrtwOofRefbr-1NU9oRs"
MERCHANT = "0198a000-0000-7000-8000-000000000001"
WRONG = [base64.b64encode(bytes(32)).decode(), base64.b64encode(b"61" * 32).decode(), "%41" * 340]
MOST_LINES = 40_000


@pytest.mark.parametrize("name", [name for name, _ in json_bodies(MERCHANT)])
def test_a_hint_for_any_hostile_body_takes_a_bounded_number_of_steps(name: str) -> None:
    body = dict(json_bodies(MERCHANT))[name]
    for signature in WRONG:
        assert lines_run(lambda signature=signature: explain(SECRET, body, signature), Refused) < MOST_LINES  # type: ignore[misc]


def read(encoded: bytes) -> None:
    fields = fields_of(encoded)
    one_of(fields, "merchantId")
    signed_text(fields)


@pytest.mark.parametrize("name", [name for name, _ in forms(MERCHANT)])
def test_an_unsigned_form_takes_a_bounded_number_of_steps(name: str) -> None:
    """Allow a dozen lines of Python for each field, and one for each byte that is encoded again."""
    body = dict(forms(MERCHANT))[name][:MOST_FORM_BYTES]
    assert lines_run(lambda: read(body), Refused) < 12 * MOST_FIELDS + 2 * MOST_FORM_BYTES
