"""The OpenAPI document consists of many files. Each file is used, and none overwrites another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cuota.web.docs.bundle import FILES, FOLDER, bundle

ROOT_FILE = """
x-files: [first.yaml, second.yaml]
paths: {}
components: { schemas: {} }
"""


def _folder(folder: Path, first: str, second: str) -> Path:
    for name, text in {"root": ROOT_FILE, "first": first, "second": second}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_the_root_file_lists_every_other_file_once() -> None:
    listed = yaml.safe_load((FOLDER / "root.yaml").read_text())[FILES]
    there = [path.name for path in FOLDER.iterdir() if path.name != "root.yaml"]
    assert sorted(listed) == sorted(there), "List each file of the folder once under x-files in root.yaml."


def _keys_given_twice(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        yield from (f"{key} at line {node.start_mark.line + 1}" for key in set(keys) if keys.count(key) > 1)
        for _, value in node.value:
            yield from _keys_given_twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _keys_given_twice(value)


def test_no_mapping_in_a_file_has_a_duplicate_key() -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    twice = {
        path.name: found
        for path in FOLDER.iterdir()
        if (found := list(_keys_given_twice(yaml.compose(path.read_text(), Loader=loader))))
    }
    assert not twice


def test_paths_have_the_order_of_the_files(tmp_path: Path) -> None:
    document = bundle(
        _folder(
            tmp_path,
            "paths: { /b: { get: {} } }",
            "{ paths: { /a: { get: {} } }, components: { schemas: { Amount: { type: number } } } }",
        )
    )
    assert list(document["paths"]) == ["/b", "/a"]
    assert document == {
        "paths": {"/b": {"get": {}}, "/a": {"get": {}}},
        "components": {"schemas": {"Amount": {"type": "number"}}},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paths: { /order: {} }", "second.yaml defines '/order' in 'paths', but an earlier file does too"),
        ("components: { schemas: { Guid: {} } }", "second.yaml defines 'Guid' in 'schemas'"),
        ("components: { links: { Next: {} } }", "second.yaml has a section 'links', but root.yaml does not"),
        ("pathes: { /new: {} }", "second.yaml has a section 'pathes', but root.yaml does not"),
    ],
)
def test_a_file_with_a_duplicate_part_or_without_a_place_in_the_document_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = _folder(tmp_path, "{ paths: { /order: {} }, components: { schemas: { Guid: {} } } }", text)
    with pytest.raises(ValueError, match=said):
        bundle(folder)
