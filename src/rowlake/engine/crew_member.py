"""What runs in a process of the crew: `python -m rowlake.engine.crew_member MODULE`.

Comes in, on standard input: frames of a packed (kernel, task). Goes out, on what was standard
output: one frame for each, the results as an Arrow stream or the error. A frame is its length (8
bytes, little-endian) and so many bytes. Ends when standard input does, or when nothing came for a
while. Imports neither pyspark nor PyIceberg.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
from importlib import import_module
from typing import IO

import pyarrow as pa

from rowlake.engine.sealed_errors import as_plain
from rowlake.engine.worker import unpack
from rowlake.errors import InternalError, RowlakeError

READY, DONE, FAILED = b"ready", b"+", b"-"
IDLE_SECONDS = 300.0
_LENGTH = 8


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame; None at the end of the stream."""
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    wanted = int.from_bytes(length, "little")
    found = stream.read(wanted)
    return found if len(found) == wanted else None


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Write a frame."""
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)
    stream.flush()


def answer(packed: bytes) -> bytes:
    """Return the answer to a task."""
    try:
        kernel, task = unpack(packed)
        batches = [batch for batch in kernel(task) if batch.num_rows]
        return DONE + _stream(batches)
    except RowlakeError as error:
        return FAILED + json.dumps(as_plain(error)).encode()
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver hears of it
        told = InternalError(f"A task failed: {type(error).__name__}: {error}")
        return FAILED + json.dumps(as_plain(told)).encode()


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def main() -> None:
    """Answer tasks until there are no more."""
    # What kernels print must not get between the frames.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for module in sys.argv[1:]:
        import_module(module)  # what most tasks need, before the first one comes
    pa.set_cpu_count(1)  # the others have the other processors
    gc.collect()
    gc.freeze()
    write_frame(answers, READY)
    tasks = sys.stdin.buffer
    while select.select([tasks], [], [], IDLE_SECONDS)[0]:
        packed = read_frame(tasks)
        if packed is None:
            return
        write_frame(answers, answer(packed))


if __name__ == "__main__":
    main()
