"""What tests of several packages share: the models that ./scripts/test has fetched."""

import pytest
from hypothesis import HealthCheck, settings

from models.errors import ModelError
from models.store import Store

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Those with a browser come last: while one is open, its event loop is the main thread's,
    and a test that starts a loop of its own would fail."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
