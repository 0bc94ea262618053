"""One thing that was looked at."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "note", "wrong"]


class Check(NamedTuple):
    """What was found, and for all but `ok` what to do about it."""

    name: str
    state: State
    found: str
    advice: str = ""
