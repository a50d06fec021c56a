"""Puts the files of `web/docs/openapi` together to one OpenAPI document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent / "openapi"
FILES = "x-files"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Mapping = dict[str, Any]


def bundle(folder: Path = FOLDER) -> Mapping:
    """The whole document: the root file, filled from the files that it lists, in that order."""
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
    """Add the entries of one file to a section that the root file has."""
    if section not in document:
        raise ValueError(f"{name} gives {section!r}, which root.yaml does not have. Add it to root.yaml.")
    if twice := document[section].keys() & entries:
        raise ValueError(f"{name} gives {min(twice)!r} in {section!r}, which an earlier file has. Keep one.")
    document[section].update(entries)


def _read(path: Path) -> Mapping:
    mapping: Mapping = yaml.load(path.read_text("utf-8"), Loader=_LOADER)  # noqa: S506 - a safe one
    return mapping
