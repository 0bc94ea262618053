"""A command's run arrives at a receiver of OTLP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_uitweg_run_sends_its_spans(uitweg, monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.got = []
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        assert uitweg("run", "Which file mentions a timeout?", "--model", "plan").code == 0
        server.shutdown()
    sent = b"".join(server.got)
    assert b"invoke_agent" in sent
    assert b"chat plan" in sent
    assert b"execute_tool read_file" in sent
