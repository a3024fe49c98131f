"""An S3 server of one's own (moto), whose conditional writes are atomic."""

from __future__ import annotations

import importlib.util
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.parts.process import LOOPBACK, free_port, server
from tests.parts.require import skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "lake"
# moto looks whether an object exists and then writes it: that is one step only while requests are
# served one by one.
ONE_BY_ONE = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
app = DomainDispatcherApplication(create_backend_app)
run_simple(sys.argv[1], int(sys.argv[2]), app, threaded=False)
"""


@contextmanager
def s3(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the io properties of a server that has the bucket `lake`."""
    if importlib.util.find_spec("moto") is None:
        skip_or_fail("moto is not installed")
    port = free_port()
    command = [sys.executable, "-c", ONE_BY_ONE, LOOPBACK, str(port)]
    with server(command, port, folder / "moto.log"):
        endpoint = f"http://{LOOPBACK}:{port}"
        made = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=30).close()
        yield {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }
