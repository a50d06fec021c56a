r"""Checks the redirect and callback addresses that merchants send, and the web origins that they register.

An address is matched as raw text against an ASCII grammar, and rebuilt from its parts. The standard library's parser is
too lenient: in `https://evil.example\@good.example/` Python and browsers see different hosts, and Python removes line
breaks before it parses.
"""

from __future__ import annotations

import re
from urllib.parse import urlencode

LONGEST = 2048
LONGEST_HOST, LONGEST_LABEL = 253, 63
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_CHARS = r"A-Za-z0-9\-._~!$&'()*+,;=:@/|{}\[\]"
# Possessive quantifiers: matching takes one pass, however long the text is.
_PATH = rf"[{_CHARS}]*+(?:%[0-9A-Fa-f]{{2}}[{_CHARS}]*+)*+"
_REST = rf"[{_CHARS}?]*+(?:%[0-9A-Fa-f]{{2}}[{_CHARS}?]*+)*+"
_SITE = rf"(?P<scheme>(?i:https?))://(?P<host>{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?"
_GRAMMAR = re.compile(
    rf"{_SITE}(?P<path>/{_PATH})?(?:\?(?P<query>{_REST}))?(?:#(?P<fragment>{_REST}))?",
    re.ASCII,
)

# The beginning of an address whose site is acceptable, so that only the part behind it can be wrong.
_BEGINNING = re.compile(rf"{_SITE}[/?#]", re.ASCII)


class BadAddress(ValueError):
    """The text is not an acceptable address. The message says what the address must be."""


def read_address(text: str, *, https_only: bool) -> str:
    """Check an absolute http(s) address and return it with scheme and host in lower case. Raises BadAddress."""
    if len(text) > LONGEST:
        raise BadAddress(f"must have at most {LONGEST} characters")
    found = _GRAMMAR.fullmatch(text)
    if found is None and _BEGINNING.match(text):
        raise BadAddress(
            "must have spaces, letters other than A to Z and similar characters percent-encoded, such as https://shop.example/caf%C3%A9"
        )
    if found is None:
        raise BadAddress(
            "must be an absolute http or https address without a user name, such as https://shop.example/ok"
        )
    host = found["host"].rstrip(".")
    if len(host) > LONGEST_HOST or max(map(len, host.split("."))) > LONGEST_LABEL:
        raise BadAddress(
            f"must have a host name of at most {LONGEST_HOST} characters, with at most {LONGEST_LABEL} between two dots"
        )
    scheme, port = found["scheme"].lower(), found["port"]
    if https_only and scheme != "https":
        raise BadAddress("must be an https address in production")
    if port is not None and not 1 <= int(port) <= 65535:
        raise BadAddress("must have a port from 1 to 65535")
    address = (
        f"{scheme}://{found['host'].lower()}" + (f":{int(port)}" if port else "") + (found["path"] or "/")
    )
    if found["query"] is not None:
        address += f"?{found['query']}"
    return address + (f"#{found['fragment']}" if found["fragment"] is not None else "")


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address that `read_address` returned."""
    found = _GRAMMAR.fullmatch(address)
    assert found is not None
    return f"{found['scheme']}://{found['host']}" + (f":{found['port']}" if found["port"] else "")


def read_origin(text: str) -> str:
    """Check a web origin, such as https://shop.example, and return it as browsers write it. Raises BadAddress."""
    origin = origin_of(read_address(text, https_only=False))
    if text.rstrip("/").lower() != origin:
        raise BadAddress(f"has a path. Give only the origin: {origin}.")
    # Browsers leave out the default port of the scheme.
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def with_query(address: str, **parameters: str) -> str:
    """Append parameters to the query of an address. They come after existing parameters and before the fragment."""
    whole, hash_sign, fragment = address.partition("#")
    join = "" if whole.endswith(("?", "&")) else "&" if "?" in whole else "?"
    return f"{whole}{join}{urlencode(parameters)}{hash_sign}{fragment}"
