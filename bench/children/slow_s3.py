"""An S3 server (moto) behind a proxy that waits before each answer and counts requests.

Argument: seconds to wait. Prints its port, and runs until its input is closed. `GET /-/requests`
answers with the counts by method so far, without waiting; `GET /-/delay/0.2` changes the wait.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

LOOPBACK = "127.0.0.1"
COUNTS, DELAY = "/-/requests", "/-/delay/"
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Proxy(BaseHTTPRequestHandler):
    """Hands requests on to moto over a connection of its own."""

    protocol_version = "HTTP/1.1"
    delay_s = 0.0
    upstream = 0
    counts: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def handle_request(self) -> None:
        if self.path == COUNTS:
            with self.lock:
                self._answer(200, {}, json.dumps(self.counts).encode())
            return
        if self.path.startswith(DELAY):
            Proxy.delay_s = float(self.path.removeprefix(DELAY))
            self._answer(200, {}, b"")
            return
        with self.lock:
            self.counts[self.command] += 1
        time.sleep(self.delay_s)
        status, headers, body = self._forwarded(self._body())
        self._answer(status, headers, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forwarded(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
        headers["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection(LOOPBACK, self.upstream, timeout=60)
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            if key.lower() not in HOP_BY_HOP:
                self.send_header(key, value)
        # The answer to HEAD says how long the body would be.
        length = headers.get("Content-Length", str(len(body)))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: each request would be a line."""


def main(delay: str) -> None:
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(LOOPBACK, 0, verbose=False)
    moto.start()
    Proxy.delay_s, Proxy.upstream = float(delay), moto.get_host_and_port()[1]
    proxy = ThreadingHTTPServer((LOOPBACK, 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    print(proxy.server_address[1], flush=True)
    sys.stdin.read()
    proxy.shutdown()
    moto.stop()


if __name__ == "__main__":
    main(sys.argv[1])
