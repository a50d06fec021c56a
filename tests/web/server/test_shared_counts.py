"""The files of the metrics never end a process: every byte is allocated before it is mapped, and a full disk stops no counting."""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from cuota.web.server.shared_counts import SharedCounts

# Enough series to make a file longer several times.
MANY = 5_000
ALL = {f"series {number}": float(number) for number in range(MANY)}


@contextmanager
def no_longer_than(size: int) -> Iterator[None]:
    """No file of this process can become longer, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def count_many(counts: SharedCounts) -> None:
    for number in range(MANY):
        counts.write_value(f"series {number}", float(number), 0.0)  # type: ignore[no-untyped-call]


def read(file: Path) -> dict[str, float]:
    """Read a file as another process does for GET /metrics."""
    found = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]
    return {key: value for key, value, _, _ in found}


def test_every_byte_of_the_file_is_allocated(tmp_path: Path) -> None:
    file = tmp_path / "counter_1.db"
    with closing(SharedCounts(str(file))) as counts:
        assert file.stat().st_blocks * 512 >= file.stat().st_size > 0
        count_many(counts)
    assert file.stat().st_blocks * 512 >= file.stat().st_size > MANY * 24
    assert read(file) == ALL


@pytest.mark.parametrize("size", [0, 10_000, 200_000])
def test_a_process_counts_for_itself_while_its_file_cannot_become_longer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    file = tmp_path / "counter_1.db"
    with (
        no_longer_than(size),
        caplog.at_level(logging.WARNING, "cuota.metrics"),
        closing(SharedCounts(str(file))) as counts,
    ):
        count_many(counts)
        found = {key: value for key, value, _ in counts.read_all_values()}  # type: ignore[no-untyped-call]
    assert found == ALL
    (record,) = caplog.records
    assert "this process alone" in record.getMessage()
    # The other processes still read what was counted before.
    assert not file.exists() or 0 < len(read(file)) < MANY
