"""From a request to token ids: the model's own template, and nothing that text can forge.

Control tokens such as `<|im_start|>` are what a template marks turns with. The same characters in
a message are only text: otherwise a file that an agent reads could end the turn it stands in and
begin another. So they are taken out before the template runs, and put back as plain text after.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from server.engine.calls import usual_calls
from server.engine.ids import Ids, shared_length
from server.engine.model import Model
from server.template import ChatTemplate
from server.wire import ChatRequest, Message

_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
_PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_PLAIN_TEMPLATE = """\
{% for message in messages %}<|{{ message.role }}|>
{{ message.content }}
{% endfor %}<|assistant|>
"""


class Prompts:
    """Renders and tokenises; safe to use from several threads."""

    def __init__(self, model: Model) -> None:
        """Takes the template out of the model's file.

        Raises:
            ValueError: if the template there cannot be used.
        """
        self._model = model
        source = model.template or _PLAIN_TEMPLATE
        self._controls = [text for text in model.control if len(text) > 1]
        longest_first = sorted(self._controls, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._numbers = {text: number for number, text in enumerate(self._controls)}
        self._template = ChatTemplate(source, bos=model.bos, eos=model.eos, guard=self._guard)

    def tokens(self, request: ChatRequest) -> Ids:
        """The prompt's token ids.

        Raises:
            BadRequest: if the template refuses the messages.
        """
        text = self._template.render(request)
        return np.array(self._ids(text), np.int32)

    def usual(self, request: ChatRequest) -> list[list[int]]:
        """The token ids of what replies to a request often begin with."""
        texts = usual_calls(request.callable_tools)
        return [self._model.tokenize(text) for text in texts]

    def common_part(self, request: ChatRequest, prompt: Ids) -> int:
        """How many first tokens any conversation with this system prompt and these tools has.

        Found by rendering another conversation with the same beginning.
        """
        system = [message for message in request.messages[:1] if message.role == "system"]
        if not system and not request.tools:
            return 0
        other = Message(role="user", content="\u2021 another conversation")
        probe = request.model_copy(update={"messages": [*system, other]})
        return shared_length(self.tokens(probe), prompt)

    def _guard(self, text: str) -> str:
        """The text with a place for each control token in it; and no places of its own."""
        plain = text.replace(_OPEN, "").replace(_CLOSE, "")
        return self._control.sub(self._place, plain)

    def _place(self, found: re.Match[str]) -> str:
        return f"{_OPEN}{self._numbers[found[0]]}{_CLOSE}"

    def _ids(self, text: str) -> list[int]:
        if _OPEN not in text:
            return self._model.tokenize(text, begin=True)
        ids: list[int] = []
        parts: list[Any] = _PLACE.split(text)
        for number, part in enumerate(parts):
            if number % 2:
                ids += self._model.tokenize(self._controls[int(part)], special=False)
            elif part:
                ids += self._model.tokenize(part, begin=number == 0)
        return ids
