"""A reply that is wanted: what goes in, where its text goes, and how it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from server.engine.calls import BegunArguments
from server.engine.ids import Ids
from server.engine.picker import Sampling

Reason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended, and what it took. Times in seconds."""

    reason: Reason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queue_s: float
    prefill_s: float
    decode_s: float


class Sink(Protocol):
    """Where a reply goes. Called in the engine's thread, so it returns at once."""

    def text(self, text: str) -> bool:
        """Some more text; True when that is enough and the reply ends here."""
        ...

    def begun(self) -> BegunArguments | None:
        """If a tool call's arguments begin just here: what they must follow."""
        ...

    def in_call(self) -> bool:
        """Whether the text so far ends inside a tool call."""
        ...

    def end(self, ending: Ending) -> None:
        """The last that comes."""
        ...

    def fail(self, error: Exception) -> None:
        """The last that comes, instead of `end`."""
        ...


@dataclass(eq=False, slots=True)
class Job:
    """One reply that is wanted."""

    prompt: Ids
    limit: int
    """Most tokens of the reply."""
    sink: Sink
    sampling: Sampling | None = None
    """None is greedy."""
    stops: Sequence[str] = ()
    grammar: str | None = None
    """What the whole reply must follow, in GBNF."""
    keep: int = 0
    """How many first tokens of the prompt are worth keeping on disk: what others begin with."""
    usual: Sequence[Sequence[int]] = ()
    """How replies to this prompt often begin; see `usual_calls`."""
    asked_at: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def need(self) -> int:
        """Cells that it takes at most. The reply's last token is never computed itself."""
        return len(self.prompt) + self.limit - 1
