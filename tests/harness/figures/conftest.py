"""A lab that makes runs against the scripted provider."""

import pytest

from harness.figures.lab import Lab


@pytest.fixture
def lab(scripted_url, tmp_path):
    made = Lab(scripted_url, tmp_path)
    yield made
    made.close()
