"""The cache of parsed manifests: bounded, shared, never in the way."""

from __future__ import annotations

import os
import stat
import threading

import pyarrow as pa

from rowlake.iceberg.cache import FOLDER_VARIABLE, ManifestCache, ManifestKey, default_cache

LAYOUT = pa.schema([("status", pa.int8()), ("location", pa.string())])


def key(name: str) -> ManifestKey:
    return ManifestKey(name, 100, 1, None, "[]")


def table(rows: int = 1000) -> pa.Table:
    return pa.table([pa.nulls(rows, pa.int8()).fill_null(1), ["x" * 10] * rows], schema=LAYOUT)


def test_memory_drops_what_was_used_longest_ago():
    cache = ManifestCache(memory_bytes=3 * table().nbytes)
    for name in "abc":
        cache.put(key(name), table())
    assert cache.find(key("a"), LAYOUT) is not None
    cache.put(key("d"), table())
    assert cache.find(key("b"), LAYOUT) is None
    assert cache.find(key("a"), LAYOUT) is not None
    assert cache.held_bytes <= cache.memory_bytes


def test_a_table_larger_than_the_limit_is_not_kept():
    cache = ManifestCache(memory_bytes=10)
    cache.put(key("a"), table())
    assert cache.find(key("a"), LAYOUT) is None
    assert cache.held_bytes == 0


def test_keys_differ_in_everything_that_entries_depend_on():
    keys = {
        key("a"),
        ManifestKey("a", 101, 1, None, "[]"),
        ManifestKey("a", 100, 2, None, "[]"),
        ManifestKey("a", 100, 1, 0, "[]"),
        ManifestKey("a", 100, 1, None, "[x]"),
    }
    assert len({made.file_name for made in keys}) == 5


def test_other_processes_find_what_is_on_disk(tmp_path):
    ManifestCache(folder=tmp_path).put(key("a"), table())
    other = ManifestCache(folder=tmp_path)
    found = other.find(key("a"), LAYOUT)
    assert found.equals(table())
    assert other.held_bytes > 0
    assert ManifestCache(folder=tmp_path).find(key("b"), LAYOUT) is None


def test_other_users_cannot_look_into_the_folder(tmp_path):
    ManifestCache(folder=tmp_path / "cache").put(key("a"), table())
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == stat.S_IRWXU


def test_local_tables_stay_in_memory(tmp_path):
    ManifestCache(folder=tmp_path / "cache").put(key("a"), table(), on_disk=False)
    assert not (tmp_path / "cache").exists()


def test_damaged_files_count_as_absent(tmp_path):
    ManifestCache(folder=tmp_path).put(key("a"), table())
    (path,) = tmp_path.iterdir()
    for damage in (b"", path.read_bytes()[:-40], b"x" * 500):
        path.write_bytes(damage)
        assert ManifestCache(folder=tmp_path).find(key("a"), LAYOUT) is None


def test_columns_that_are_not_cached_count_as_absent(tmp_path):
    narrow = pa.schema([LAYOUT.field("status")])
    cache = ManifestCache(folder=tmp_path)
    cache.put(key("a"), table().select(["status"]))
    assert cache.find(key("a"), LAYOUT) is None
    assert cache.find(key("a"), narrow).schema == narrow
    assert ManifestCache(folder=tmp_path).find(key("a"), LAYOUT) is None


def test_the_folder_stays_below_its_limit(tmp_path):
    one = ManifestCache(folder=tmp_path)
    one.put(key("first"), table())
    size = next(tmp_path.iterdir()).stat().st_size
    cache = ManifestCache(folder=tmp_path, disk_bytes=size * 5)
    for number in range(20):
        cache.put(key(str(number)), table())
        os.utime(tmp_path / key(str(number)).file_name, (number, number))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= size * 5
    assert ManifestCache(folder=tmp_path).find(key("19"), LAYOUT) is not None


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = ManifestCache(folder=blocked)
    cache.put(key("a"), table())
    assert cache.find(key("a"), LAYOUT) is not None


def test_threads_share_a_cache(tmp_path):
    cache = ManifestCache(folder=tmp_path, memory_bytes=3 * table().nbytes)
    failures = []

    def work(start: int) -> None:
        for number in range(30):
            name = key(str((start + number) % 7))
            found = cache.find(name, LAYOUT)
            if found is None:
                cache.put(name, table())
            elif found.num_rows != 1000:
                failures.append(name)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert cache.held_bytes <= cache.memory_bytes


def test_the_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    default_cache.cache_clear()
    try:
        assert default_cache().folder == tmp_path / "manifests"
    finally:
        default_cache.cache_clear()
