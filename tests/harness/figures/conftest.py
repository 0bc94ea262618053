"""The scripted provider behind real HTTP, and a lab that makes runs against it."""

import threading

import pytest

from harness.figures.lab import Lab
from server.run import Server, bind, url_of
from server.scripted import ScriptedBackend
from server.scripted.attempt import AttemptLayer


@pytest.fixture(scope="session")
def scripted_url():
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    server = Server(ScriptedBackend(), host="127.0.0.1", port=port, layer=AttemptLayer)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield url_of(bound, "127.0.0.1")
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture
def lab(scripted_url, tmp_path):
    made = Lab(scripted_url, tmp_path)
    yield made
    made.close()
