"""Footers of data files are parsed once per process, within a limit of memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.scan import footers
from rowlake.scan.cache import ByteLimitedCache
from rowlake.scan.open import opened
from rowlake.storage.files import Storage
from rowlake.storage.tally import counting
from tests.scanning import field, scan, schema, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = schema(field("id", pa.int64(), 1), field("v", pa.string(), 2))


@pytest.fixture(autouse=True)
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note every footer that is parsed: a file that is opened without one."""
    found: list[str] = []
    real = pq.ParquetFile

    def opening(source: Any, *arguments: Any, **options: Any) -> Any:
        made = real(source, *arguments, **options)
        if options.get("metadata") is None:
            found.append("parsed")
        return made

    monkeypatch.setattr("rowlake.scan.parquet.pq.ParquetFile", opening)
    footers.clear_footers()
    yield found
    footers.clear_footers()


def rows(count: int, first: int = 0) -> pa.Table:
    values = range(first, first + count)
    return pa.table({"id": list(values), "v": [f"v{n}" for n in values]}, schema=SCHEMA.arrow)


def scanned(location: str) -> list[int]:
    return [row["id"] for row in scan(SCHEMA, location)]


def test_a_second_task_reads_no_footer_again(tmp_path: Path, parsed: list[str]) -> None:
    location = write_parquet(tmp_path / "a.parquet", rows(100))
    with counting() as first:
        assert scanned(location) == list(range(100))
    with counting() as second:
        assert scanned(location) == list(range(100))
    assert len(parsed) == 1
    footer = pq.read_metadata(location).serialized_size + 8
    assert first.size_in_bytes - second.size_in_bytes == footer


def test_a_second_task_reads_only_data_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = write_parquet(tmp_path / "a.parquet", rows(100))
    data_end = (tmp_path / "a.parquet").stat().st_size - pq.read_metadata(location).serialized_size
    ends: list[int] = []

    class Watched:
        """A file that notes where its reads end."""

        def __init__(self, inner: Any) -> None:
            self.inner, self.closed = inner, False

        def read(self, size: int = -1) -> bytes:
            found: bytes = self.inner.read(size)
            ends.append(self.inner.tell())
            return found

        def read_buffer(self, size: int = -1) -> bytes:
            return self.read(size)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    real = Storage.open_input
    monkeypatch.setattr(
        Storage,
        "open_input",
        lambda self, at: pa.PythonFile(Watched(real(self, at)), mode="r"),
    )
    scanned(location)
    assert max(ends) > data_end
    ends.clear()
    assert scanned(location) == list(range(100))
    assert max(ends) <= data_end


def test_a_file_of_another_size_is_read_again(tmp_path: Path, parsed: list[str]) -> None:
    location = write_parquet(tmp_path / "a.parquet", rows(100))
    scanned(location)
    write_parquet(tmp_path / "a.parquet", rows(150))
    assert scanned(location) == list(range(150))
    assert len(parsed) == 2


def test_a_local_file_replaced_by_one_of_the_same_size_is_read_again(tmp_path: Path) -> None:
    file, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    location = write_parquet(file, rows(100, 100), compression="none")
    write_parquet(other, rows(100, 200), compression="none")
    assert scanned(location)[0] == 100
    assert file.stat().st_size == other.stat().st_size
    other.replace(file)
    assert scanned(location)[0] == 200


def test_one_location_on_two_endpoints_is_two_files() -> None:
    one, other = (Storage({"s3.endpoint": f"http://127.0.0.1:{port}"}) for port in (1, 2))
    location = "s3://bucket/a.parquet"
    assert one.identity(location) != other.identity(location)
    assert one.identity(location) == Storage(one.properties).identity(location)


def test_other_files_than_data_files_are_not_kept(tmp_path: Path, parsed: list[str]) -> None:
    location = write_parquet(tmp_path / "a.parquet", rows(10))
    for _ in range(2):
        with opened(location, "PARQUET", Storage({}), SCHEMA) as source:
            assert source.units[0].num_rows == 10
    assert len(parsed) == 2


def test_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parsed: list[str]
) -> None:
    locations = [write_parquet(tmp_path / f"{n}.parquet", rows(10, n)) for n in range(20)]
    one = footers.size_in_memory(pq.read_metadata(locations[0]))
    cache: ByteLimitedCache[Any] = ByteLimitedCache(one * 5, footers.size_in_memory)
    monkeypatch.setattr(footers, "_footers", cache)
    parsed.clear()
    for location in locations:
        scanned(location)
        assert cache.size_in_bytes <= cache.limit_in_bytes
    assert 4 <= len(cache) <= 5
    scanned(locations[-1])
    assert len(parsed) == 20
    scanned(locations[0])
    assert len(parsed) == 21


def test_a_footer_above_the_limit_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache: ByteLimitedCache[Any] = ByteLimitedCache(10, footers.size_in_memory)
    monkeypatch.setattr(footers, "_footers", cache)
    location = write_parquet(tmp_path / "a.parquet", rows(10))
    assert scanned(location) == scanned(location) == list(range(10))
    assert (len(cache), cache.size_in_bytes) == (0, 0)


def test_threads_share_footers(tmp_path: Path, parsed: list[str]) -> None:
    locations = [write_parquet(tmp_path / f"{n}.parquet", rows(500, n)) for n in range(4)]
    found: list[tuple[int, list[int]]] = []

    def read() -> None:
        for _ in range(10):
            found.extend((n, scanned(location)) for n, location in enumerate(locations))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert all(ids == list(range(first, first + 500)) for first, ids in found)
    assert len(parsed) <= 16
