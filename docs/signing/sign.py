#!/usr/bin/env python3
"""Signs the request of openCheckout: Python 3.9 or later, nothing to install.

SIGNING_SECRET=signing_... python3 sign.py < request.json
"""

import base64
import hashlib
import hmac
import json
import os
import sys


def sign(request: "dict | str", signing_secret: str) -> "dict[str, str]":
    """Return the arguments of openCheckout: the exact text and its signature."""
    text = request if isinstance(request, str) else json.dumps(request, ensure_ascii=False)
    digest = hmac.new(signing_secret.encode(), text.encode(), hashlib.sha256).digest()
    return {"body": text, "signature": base64.b64encode(digest).decode()}


if __name__ == "__main__":
    print(json.dumps(sign(sys.stdin.buffer.read().decode(), os.environ["SIGNING_SECRET"])))
