#!/usr/bin/env python3
"""Signs a form of the gateway: Python 3.9 or later, nothing to install.

SIGNING_SECRET=signing_... python3 sign_form.py < fields.json
"""

import base64
import hashlib
import hmac
import json
import os
import sys
from urllib.parse import urlencode


def sign_form(fields: "dict[str, str]", signing_secret: str) -> "dict[str, str]":
    """Return the fields with their signature. Each is a hidden input of the form, or a part of the query."""
    text = urlencode(sorted(fields.items()))
    digest = hmac.new(signing_secret.encode(), text.encode(), hashlib.sha256).digest()
    return {**fields, "signature": base64.b64encode(digest).decode()}


if __name__ == "__main__":
    print(json.dumps(sign_form(json.load(sys.stdin), os.environ["SIGNING_SECRET"])))
