"""Recorded runs as scenario files: written, edited by a person, played back.

    name = "notes"                       # the model name that plays it
    description = "What it shows."
    task = "Read notes.txt."             # left out: any task will do

    [[turn]]
    text = "Let me look."                # may be left out beside calls

        [[turn.call]]
        tool = "read_file"
        arguments = '{"path":"notes.txt"}'
        id = "call_1"                    # left out: c1, c2, …
        result = "Rotate the logs."      # left out: any result will do

    [[turn]]
    text = "notes.txt is about rotating the logs."

The recorded replies follow from the task and the results beside them. Where a conversation has
others, or goes on after the last turn, it has left the recording: the reply is then a text that
says at which turn and by what, so that it stands in the run's trace.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from server.scripted.conversation import Call, Conversation, Reply
from server.scripted.scenarios import Scenario
from server.scripted.settings import SettingsError

SHOWN = 120


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedCall(_Part):
    """One tool call and what the tool said then."""

    tool: Annotated[str, Field(min_length=1)]
    arguments: str = "{}"
    id: str | None = None
    result: str | None = None


class RecordedTurn(_Part):
    """One reply."""

    text: str | None = None
    call: tuple[RecordedCall, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> RecordedTurn:
        if self.text is None and not self.call:
            raise ValueError("a turn needs a text or a call")
        return self

    def reply(self) -> Reply:
        """The turn as the scripted provider sends it."""
        return Reply(self.text, tuple(Call(c.tool, c.arguments, c.id) for c in self.call))


class Recording(_Part):
    """A whole conversation, from its task to the last reply."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\-]{1,100}$")]
    description: str = "A recorded run."
    task: str | None = None
    turn: Annotated[tuple[RecordedTurn, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_once(self) -> Recording:
        ids = [call.id for turn in self.turn for call in turn.call if call.id is not None]
        twice = next((i for i in ids if ids.count(i) > 1), None)
        if twice is not None:
            raise ValueError(f"two calls have the id {twice!r}")
        return self

    def scenario(self) -> Scenario:
        """The recording as a scripted model."""
        return Scenario(self.name, self.description, self.play)

    def play(self, talk: Conversation) -> Reply:
        """The recorded reply, or where the conversation left the recording."""
        departure = self.departure(talk)
        if departure is None:
            return self.turn[talk.turn].reply()
        turn, why = departure
        text = f"The conversation left the recording {self.name} at turn {turn}: {why}"
        return Reply(text=text, note=text)

    def departure(self, talk: Conversation) -> tuple[int, str] | None:
        """The first turn (from 1) at which the conversation is another one, and by what."""
        if self.task is not None and self.task != talk.task:
            return 1, f"the task is {_shown(talk.task)}, recorded was {_shown(self.task)}."
        for number, turn in enumerate(self.turn[: talk.turn], start=1):
            said = [result for result in talk.results if result.turn == number]
            if len(said) != len(turn.call):
                return number, f"{len(said)} tool results, recorded were {len(turn.call)}."
            for call, result in zip(turn.call, said, strict=True):
                if result.tool != call.tool:
                    return number, f"{result.tool} was called, recorded was {call.tool}."
                if call.result is not None and result.content != call.result:
                    now, then = _shown(result.content), _shown(call.result)
                    return number, f"{call.tool} returned {now}, recorded was {then}."
        if talk.turn >= len(self.turn):
            return talk.turn + 1, f"the recording ends after turn {len(self.turn)}."
        return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")


def read_recording(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        SettingsError: when there is no such file, or it is no recording; says where.
    """
    try:
        return Recording.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise SettingsError(f"{path}: {where}: {first['msg']}.") from None
    except ValueError as error:  # not UTF-8, or no TOML
        raise SettingsError(f"{path} is not a recording: {error}.") from None


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def toml_text(text: str) -> str:
    """A text as a TOML string, in the form that is easiest to read and edit.

    Half surrogates, which TOML cannot hold, become U+FFFD.
    """
    text = text.encode("utf-8", "replace").decode() if _has_surrogates(text) else text
    plain = not _CONTROL.search(text)
    if plain and "\n" in text and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    if plain and "\n" not in text and "'" not in text and ('"' in text or "\\" in text):
        return f"'{text}'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04x}" if _CONTROL.match(character) else character


def write_recording(recording: Recording, heading: str = "") -> str:
    """The recording as a file that `read_recording` reads back as the same.

    Args:
        recording: What to write.
        heading: Lines for people, written as comments at the top.
    """
    lines = [f"# {_CONTROL.sub('?', line)}".rstrip() for line in heading.splitlines()]
    lines.append(f"name = {toml_text(recording.name)}")
    lines.append(f"description = {toml_text(recording.description)}")
    if recording.task is not None:
        lines.append(f"task = {toml_text(recording.task)}")
    for number, turn in enumerate(recording.turn, start=1):
        lines += ["", f"[[turn]]  # {number}"]
        if turn.text is not None:
            lines.append(f"text = {toml_text(turn.text)}")
        for call in turn.call:
            lines += ["", "[[turn.call]]"]
            fields = call.model_dump(exclude_none=True)
            lines += [f"{name} = {toml_text(value)}" for name, value in fields.items()]
    return "\n".join(lines) + "\n"
