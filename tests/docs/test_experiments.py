"""docs/experiments.md and docs/guidance.md name all there is."""

from pathlib import Path

import pytest

from harness.experiments.plan import Judge, Provider, Setting, Task
from harness.guidance import policies
from harness.profiles import PROFILES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("part", [Judge, Provider, Setting, Task])
def test_every_field_of_the_file_is_documented(part: type):
    text = (DOCS / "experiments.md").read_text()
    left_out = {"max_seconds"}
    missing = {name for name in part.model_fields if name not in text} - left_out
    assert not missing


def test_every_policy_and_profile_is_documented():
    text = (DOCS / "guidance.md").read_text()
    assert not {name for name in [*policies(), *PROFILES] if f"`{name}`" not in text}
