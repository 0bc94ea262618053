"""A source that does not answer is given up within seconds, and only then."""

import socket
import sys
import threading

import pytest

from models import download
from models.download import Address
from models.errors import Unreachable


def never(done, total):
    raise AssertionError("nothing can have come")


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        yield server


def address(listener):
    return Address(f"http://127.0.0.1:{listener.getsockname()[1]}/x", "the source", 100)


@pytest.mark.skipif(sys.platform != "linux", reason="fills the queue as Linux has it")
def test_a_host_that_takes_no_connection(listener, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "CONNECT_SECONDS", 0.2)
    waiting = [socket.socket() for _ in range(4)]
    try:
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        with pytest.raises(Unreachable, match=r"The source cannot be reached at 127\.0\.0\.1"):
            download.download(address(listener), tmp_path / "x", never)
    finally:
        for one in waiting:
            one.close()


def test_a_host_that_says_nothing_is_asked_once(listener, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.2)
    with pytest.raises(Unreachable, match="cannot be reached"):
        download.download(address(listener), tmp_path / "x", never)
    listener.accept()[0].close()
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_host_that_falls_silent_within_the_file_is_asked_again(listener, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.2)
    data = bytes(range(100))
    done = threading.Event()

    def serve():
        first, _ = listener.accept()
        first.recv(10_000)
        first.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + data[:40])
        second, _ = listener.accept()
        request = second.recv(10_000)
        assert b"Range: bytes=40-" in request
        head = (
            b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 40-99/100\r\nContent-Length: 60\r\n\r\n"
        )
        second.sendall(head + data[40:])
        done.wait(10)
        first.close()
        second.close()

    thread = threading.Thread(target=serve)
    thread.start()
    told = []
    download.download(address(listener), tmp_path / "x", lambda *step: told.append(step))
    done.set()
    thread.join()
    assert (tmp_path / "x").read_bytes() == data
    assert told[-1] == (100, 100)


def test_a_file_of_this_machine(tmp_path):
    source = tmp_path / "with a space"
    source.write_bytes(b"abc")
    download.download(Address(source.as_uri(), "the index"), tmp_path / "x", lambda *_: None)
    assert (tmp_path / "x").read_bytes() == b"abc"


def test_patience_has_an_end(listener, tmp_path, monkeypatch):
    def serve():
        for _ in range(download.TRIES):
            connection, _ = listener.accept()
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(Unreachable, match="broke off 4 times in a row"):
        download.download(address(listener), tmp_path / "x", never)
    thread.join()
