"""Combines the YAML files in `web/docs/openapi` into one OpenAPI document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent / "openapi"
FILES = "x-files"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Mapping = dict[str, Any]


def bundle(folder: Path = FOLDER) -> Mapping:
    """Return the whole document: the root file with the entries of the files that it lists, in that order.

    Raises ValueError if two files define the same entry, or if a file has a section that the root file does not have.
    """
    document = _read(folder / "root.yaml")
    for name in document.pop(FILES):
        for section, entries in _read(folder / name).items():
            if section == "components":
                for kind, components in entries.items():
                    _add(document[section], kind, components, name)
            else:
                _add(document, section, entries, name)
    return document


def _add(document: Mapping, section: str, entries: Mapping, name: str) -> None:
    """Add the entries of the file `name` to a section of the document."""
    if section not in document:
        raise ValueError(f"{name} has a section {section!r}, but root.yaml does not. Add it to root.yaml.")
    if repeated := document[section].keys() & entries:
        raise ValueError(
            f"{name} defines {min(repeated)!r} in {section!r}, but an earlier file does too. Keep only one of them."
        )
    document[section].update(entries)


def _read(path: Path) -> Mapping:
    mapping: Mapping = yaml.load(path.read_text("utf-8"), Loader=_LOADER)  # noqa: S506 - a safe one
    return mapping
