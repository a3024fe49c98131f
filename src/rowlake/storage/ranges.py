"""Many short ranges of one open file, read with as few requests as are worth it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

# Closer ranges are read in one go: a request to an object store takes as long as that many bytes.
_LOCAL_GAP, _REMOTE_GAP = 512, 64 * 1024
_REMOTE_THREADS = 16


def read_ranges(
    stream: pa.NativeFile, starts: Numbers, lengths: Numbers, *, is_local: bool
) -> NDArray[np.uint8]:
    """Return the bytes of ascending ranges, one after the other.

    Raises ValueError where the file ends early, OSError where it cannot be read.
    """
    if not len(starts):
        return np.empty(0, np.uint8)
    ends = starts + lengths
    gap = _LOCAL_GAP if is_local else _REMOTE_GAP
    is_first = np.concatenate([[True], starts[1:] - ends[:-1] > gap])
    first = np.flatnonzero(is_first)
    last = np.concatenate([first[1:], [len(starts)]]) - 1
    offsets, sizes = starts[first], ends[last] - starts[first]
    count_read(int(sizes.sum()))
    data = np.frombuffer(b"".join(_parts(stream, offsets, sizes, is_local=is_local)), np.uint8)
    if len(data) != int(sizes.sum()):
        raise ValueError("the file ends early")
    if len(data) == int(lengths.sum()):
        return data
    group = np.cumsum(is_first) - 1
    at = starts - offsets[group] + (np.cumsum(sizes) - sizes)[group]
    pairs = zip(at.tolist(), (at + lengths).tolist(), strict=True)
    return np.concatenate([data[start:end] for start, end in pairs])


def _parts(
    stream: pa.NativeFile, offsets: Numbers, sizes: Numbers, *, is_local: bool
) -> list[bytes]:
    pairs = list(zip(sizes.tolist(), offsets.tolist(), strict=True))
    if is_local or len(pairs) == 1:
        return [stream.read_at(size, offset) for size, offset in pairs]
    with ThreadPoolExecutor(min(_REMOTE_THREADS, len(pairs))) as pool:
        return list(pool.map(lambda pair: stream.read_at(*pair), pairs))
