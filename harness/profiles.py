"""Profiles: named sets of guidance policies, and which one a model gets.

What each is worth is in docs/guidance.md, measured by the experiments. `none` is the
plain loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import SettingsError

PROFILES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "evidence": ("evidence", "check"),
    "small": ("look_first", "names_exist", "plan", "done", "evidence", "check"),
}
"""Name to policies, in the order in which they are asked."""

UNKNOWN_MODEL = "evidence"
"""For a model that nobody says a profile of: what does nothing while a model does well."""


def policies_of(profile: str, advertised: str | None = None) -> tuple[str, ...]:
    """The policies of a profile.

    Args:
        profile: Its name, or `default` for the model's own.
        advertised: What the model's server says of it, where it says something.

    Raises `SettingsError` for a name that is none.
    """
    name = (advertised or UNKNOWN_MODEL) if profile == "default" else profile
    if name not in PROFILES:
        known = ", ".join(["default", *PROFILES])
        raise SettingsError(f"There is no profile {name}. There are: {known}.")
    return PROFILES[name]
