"""What tests of several packages share: the models that ./scripts/test has fetched, and the
scripted provider."""

import threading

import pytest
from hypothesis import HealthCheck, settings

from models.errors import ModelError
from models.store import Store
from server.run import Server, bind, url_of
from server.scripted import ScriptedBackend
from server.scripted.attempt import AttemptLayer

# A machine that is busy must not make a test fail.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def fetched(names):
    """The first of some models that is here and right; no test asks a network for one."""
    reasons = []
    for name in names:
        try:
            return Store().verify(name)
        except ModelError as error:
            reasons.append(str(error))
    pytest.fail(f"no model to test with: {' '.join(reasons)} ./scripts/test fetches what is needed")


@pytest.fixture(scope="session")
def model():
    """The default model or what stands in for it: half a billion parameters, calls tools."""
    choices = Store().catalogue.choices(None)
    return fetched([choice.name for choice in choices if choice.bytes > 200_000_000])


@pytest.fixture(scope="session")
def small_model():
    """A small model that loads quickly, for what does not depend on what it says."""
    return fetched(["smollm2-135m-instruct"])


@pytest.fixture(scope="session")
def scripted_url():
    """The base URL of the scripted provider, behind real HTTP in a thread of this process."""
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    server = Server(ScriptedBackend(), host="127.0.0.1", port=port, layer=AttemptLayer)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield url_of(bound, "127.0.0.1")
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Those with a browser come last: while one is open, its event loop is the main thread's,
    and a test that starts a loop of its own would fail."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
