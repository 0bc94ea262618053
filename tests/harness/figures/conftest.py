"""The scripted provider behind real HTTP, and a lab that makes runs against it."""

import socket
import threading

import pytest
import uvicorn

from harness.figures.lab import Lab
from local.guard import loopback_hosts
from server.app import create_app
from server.scripted import ScriptedBackend
from server.scripted.attempt import AttemptLayer


@pytest.fixture(scope="session")
def scripted_url():
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    app = AttemptLayer(create_app(ScriptedBackend(), allowed_hosts=loopback_hosts(port)))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture
def lab(scripted_url, tmp_path):
    made = Lab(scripted_url, tmp_path)
    yield made
    made.close()
