"""Finds the tool calls in a reply while it is being written.

What counts as a call, in a reply of a model that was offered tools:
- JSON of exactly the shape `{"name": an offered tool, "arguments": ...}` (or `parameters`, or
  OpenAI's nested form), or a list of nothing but such objects;
- after a call tag anywhere; as the first thing in a code fence; or bare, where it begins a
  line (or follows another call) and nothing but a separator follows it on that line;
- a missing last brace is forgiven, missing arguments only inside a tag.

Everything else stays text, and so does what lies inside other JSON or another code fence:
an answer that is JSON is never a call. Calls are handed out whole only, so neither a reply cut
off by its token limit nor a stream ever holds half a call. Only text that may still become a
call, and white space before it, is held back.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from server.backend import CallPiece, TextPiece
from server.scan import Call, CallScanner, calls_of

Dialect = Literal["tag", "fence", "bare"]

MOST_CALLS = 64
"""Calls of one reply; a model that writes more is in a loop."""
MOST_ALIKE = 4
"""Of them, the same call in a row: small models repeat one until their limit ends the reply."""
_ARGUMENT_SLICE = 32
_TAG_NAMES = ("tool_call", "tools", "function_call")
_OPEN_TAGS = tuple(f"<{name}>" for name in _TAG_NAMES)
_CLOSE_TAGS = tuple(f"</{name}>" for name in _TAG_NAMES)
_LONGEST_INFO = 40
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class BegunCall:
    """A call that is being written: where its JSON begins in the reply, and what there is of it."""

    start: int
    text: str
    name: str | None


def new_call_id() -> str:
    """An id that no other call has."""
    return f"call_{uuid.uuid4().hex[:24]}"


class CallReader:
    """Takes a reply's text in pieces of any size; gives text and calls."""

    def __init__(
        self,
        names: Collection[str],
        *,
        most: int | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """`names`: the tools that may be called; `most`: calls after which the rest is dropped."""
        self.calls = 0
        self._names = frozenset(names)
        self._most = MOST_CALLS if most is None else most
        self._last: Call | None = None
        self._alike = 0
        self._new_id = new_id
        self._out: list[TextPiece | CallPiece] = []
        self._state: Callable[[str], None] = self._plain
        self._seen = 0
        # What is held back: white space, then what may become a call and its last mark.
        self._space = ""
        self._held = ""
        self._mark = ""
        self._opener: Dialect = "bare"
        self._in_code = False
        self._scanner = CallScanner(self._names)
        self._value_at = 0
        self._found: list[Call] = []
        # Where the text stands.
        self._line_start = True
        self._after_call = False
        self._open_fence = False
        self._any_text = False
        self._ticks = 0

    @property
    def full(self) -> bool:
        """As many calls as may be have been read: nothing that follows is looked at."""
        return self.calls >= self._most or self._alike >= MOST_ALIKE

    @property
    def begun(self) -> BegunCall | None:
        """The call that is being written now, if one is; for a grammar that takes over."""
        if self._state != self._value:
            return None
        text = self._held[self._value_at :]
        return BegunCall(self._seen - len(text), text, self._scanner.name)

    def feed(self, text: str) -> list[TextPiece | CallPiece]:
        """What is certain after some more of the reply's text."""
        if not self._names:
            return [TextPiece(text)] if text else []
        for char in text:
            if self.full:
                break
            self._seen += 1
            self._state(char)
        return self._taken()

    def finish(self, *, cut: bool = False) -> list[TextPiece | CallPiece]:
        """What was held back, once the reply has ended.

        `cut`: it was broken off by the token limit. Then the half of a call that it may end
        with is dropped beside whole calls, and is text where it is all there is.
        """
        in_value = self._state == self._value
        if in_value and self._scanner.closable and not cut:
            self._complete(self._scanner.missing)
        if self._state == self._settle:
            self._accept()
        if not (cut and in_value and self.calls):
            self._write(self._held)
        if self._space and not self.calls:
            self._out.append(TextPiece(self._space))
        self._held = self._space = ""
        return self._taken()

    # The states: each takes one character.

    def _plain(self, char: str) -> None:
        if char in _SPACE or (self._after_call and char in ",;}"):
            self._space += char
            self._line_start = self._line_start or char == "\n"
        elif char == "<":
            self._hold(self._tag)
            self._tag(char)
        elif char == "`":
            self._hold(self._fence)
            self._fence(char)
        elif char in "{[" and (self._line_start or self._after_call):
            self._hold(self._value)
            self._begin_value(char, "bare")
        else:
            self._write(char)

    def _tag(self, char: str) -> None:
        """Inside what may be a call tag."""
        mark = self._mark + char
        tags = _OPEN_TAGS + _CLOSE_TAGS if self._after_call else _OPEN_TAGS
        if not any(tag.startswith(mark) for tag in tags):
            self._release(char)
            return
        self._mark = mark
        self._held += char
        if mark in _OPEN_TAGS:
            self._opener = "tag"
            self._state = self._before_value
        elif mark in _CLOSE_TAGS:
            self._hold(self._plain)

    def _fence(self, char: str) -> None:
        """Inside the opening line of a code fence, or its closing ticks after a call."""
        mark = self._mark + char
        info = mark[3:]
        if not mark.startswith("```"[: len(mark)]) or "`" in info or len(info) > _LONGEST_INFO:
            self._release(char)
            return
        self._mark = mark
        self._held += char
        if mark == "```" and self._open_fence:
            self._open_fence = False
            self._hold(self._plain)
        elif char == "\n":
            self._in_code = True
            self._opener = "fence"
            self._state = self._before_value
            if not re.fullmatch(r"\w*\s*", info):
                self._surrender()
        elif char in "{[" and re.fullmatch(r"\w*\s*.", info):
            self._held = self._held[:-1]
            self._in_code = True
            self._begin_value(char, "fence")

    def _before_value(self, char: str) -> None:
        """After a tag or a fence's opening line, before the JSON."""
        if char in _SPACE:
            self._held += char
        elif char in "{[":
            self._begin_value(char, self._opener)
        elif char == "<" and self._opener == "fence":
            self._mark = ""
            self._state = self._tag
            self._tag(char)
        else:
            self._release(char)

    def _value(self, char: str) -> None:
        """Inside JSON that may be a call."""
        self._scanner.feed(char)
        if not self._scanner.valid:
            if char in "<`{" and self._scanner.closable:
                self._complete(self._scanner.missing)
                self._state(char)
            else:
                self._release(char)
            return
        self._held += char
        if self._scanner.done:
            self._complete("")
        elif not self._scanner.plausible:
            self._surrender()

    def _settle(self, char: str) -> None:
        """After a bare call: only what follows on its line tells whether it is one."""
        if char in " \t\r":
            self._held += char
        elif char in "\n,;{}[<`":
            self._accept()
            self._state(char)
        else:
            self._release(char)

    def _foreign_json(self, char: str) -> None:
        """Inside JSON that is no call: it stays text up to its end."""
        self._scanner.feed(char)
        if not self._scanner.valid:
            self._state = self._plain
            self._plain(char)
            return
        self._out.append(TextPiece(char))
        if self._scanner.done:
            self._state = self._plain

    def _foreign_fence(self, char: str) -> None:
        """Inside a code fence that holds something else: text up to the closing fence."""
        self._out.append(TextPiece(char))
        if char == "\n":
            self._ticks = 0
        elif char == "`" and self._ticks >= 0:
            self._ticks += 1
        elif char not in _SPACE or self._ticks > 0:
            self._ticks = -1
        if self._ticks == len("```"):
            self._state = self._plain

    # What the states do.

    def _hold(self, state: Callable[[str], None]) -> None:
        """Begin to hold text back, from nothing."""
        self._held = self._mark = ""
        self._in_code = False
        self._state = state

    def _begin_value(self, char: str, opener: Dialect) -> None:
        self._opener = opener
        self._value_at = len(self._held)
        self._scanner = CallScanner(self._names)
        self._state = self._value
        self._value(char)

    def _complete(self, missing: str) -> None:
        """The JSON is whole (with the `missing` brackets): calls, or text after all."""
        text = self._held[self._value_at :] + missing
        self._found = calls_of(text, self._names, tagged=self._opener == "tag")
        if not self._found:
            self._surrender()
        elif self._opener == "bare":
            self._state = self._settle
        else:
            self._accept()

    def _accept(self) -> None:
        """Hand the found calls out; what was held back was theirs."""
        self._open_fence = self._open_fence or self._in_code
        self._hold(self._plain)
        self._space = ""
        self._after_call = True
        for call in self._found:
            if self.full:
                break
            self._alike = self._alike + 1 if call == self._last else 1
            self._last = call
            self._out.append(CallPiece(self.calls, id=self._new_id(), name=call.name))
            for at in range(0, len(call.arguments), _ARGUMENT_SLICE):
                self._out.append(CallPiece(self.calls, call.arguments[at : at + _ARGUMENT_SLICE]))
            self.calls += 1

    def _release(self, char: str) -> None:
        """What was held back is text; `char`, which showed it, is looked at afresh."""
        in_code = self._in_code
        self._write(self._held)
        self._hold(self._foreign_fence if in_code else self._plain)
        self._state(char)

    def _surrender(self) -> None:
        """What was held back is text, and so is the rest of the JSON or fence it began."""
        in_code, in_json = self._in_code, not self._scanner.done
        self._write(self._held)
        self._hold(self._plain)
        if in_code:
            self._state = self._foreign_fence
        elif in_json:
            self._state = self._foreign_json

    def _write(self, text: str) -> None:
        """Give text out, after the white space before it; around calls, one line break."""
        if not text:
            return
        between = "\n" if self._any_text else ""
        self._out.append(TextPiece((between if self._after_call else self._space) + text))
        self._any_text = True
        self._space = ""
        self._after_call = False
        self._line_start = "\n" in text and not text.rpartition("\n")[2].strip()
        self._ticks = 0 if self._line_start else -1

    def _taken(self) -> list[TextPiece | CallPiece]:
        """The pieces so far, neighbouring texts as one."""
        taken: list[TextPiece | CallPiece] = []
        for piece in self._out:
            last = taken[-1] if taken else None
            if isinstance(piece, TextPiece) and isinstance(last, TextPiece):
                taken[-1] = TextPiece(last.text + piece.text)
            else:
                taken.append(piece)
        self._out = []
        return taken
