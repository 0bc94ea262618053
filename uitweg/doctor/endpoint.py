"""What an OpenAI-compatible endpoint can do, found out with a few short requests."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from harness.provider import Endpoint, OfferedModel, find_model, offered_models
from harness.provider.endpoint import is_local
from harness.provider.errors import ProviderError
from harness.tools import list_files, read_file
from uitweg.doctor.check import Check

READ_SECONDS = 120.0
"""A slow CPU takes long over the first prompt."""
REPLY_TOKENS = 160
HUGE = 100_000_000
"""More tokens than any context has: a server that refuses them usually says how many it has."""

_SYSTEM = "You work on the files in one folder. Look with the tools before you answer."
_LIST = "Which files are in the folder? Call list_files."
_BOTH = "Read a.txt and b.txt. Call read_file twice in this one reply, once for each file."
_KEYS = ("max_model_len", "context_length", "context_window", "n_ctx", "n_ctx_train", "context")
"""Names under which servers list the length of their context."""


@dataclass(slots=True)
class Answer:
    """One reply as it came."""

    error: str = ""
    events: int = 0
    """Pieces of a stream; 0 for one JSON object."""
    calls: set[object] = field(default_factory=set)
    usage: Mapping[str, Any] | None = None
    seconds: float = 0.0


def check_endpoint(endpoint: Endpoint) -> Iterator[Check]:
    """Try one thing after the other; what rests on one that fails is not tried."""
    try:
        offered = offered_models(endpoint.base_url, endpoint.api_key)
    except ProviderError as error:
        yield Check("endpoint", "wrong", str(error))
        return
    yield Check("endpoint", "ok", f"{endpoint.base_url} answers")
    if not (offered or endpoint.model):
        yield Check("models", "wrong", "it has none", "Load one there, or name it in LLM_MODEL.")
        return
    names = ", ".join(model.name for model in offered[:5])
    more = f" and {len(offered) - 5} more" if len(offered) > 5 else ""
    model = find_model(offered, endpoint.model) if endpoint.model else offered[0]
    known = model.name.partition("?")[0] in {one.name for one in offered}
    advice = "" if known else f"{model.name} is not among them: set LLM_MODEL to one that is."
    yield Check("models", "ok" if known else "note", (names or "no list") + more, advice)
    with _client(endpoint) as client:
        yield from _Probe(client, endpoint, model).checks()


def _client(endpoint: Endpoint) -> httpx.Client:
    local = is_local(endpoint.base_url)
    key = endpoint.api_key
    return httpx.Client(
        headers={"authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(READ_SECONDS, connect=10.0),
        trust_env=not local,
    )


class _Probe:
    """The questions to one model."""

    def __init__(self, client: httpx.Client, endpoint: Endpoint, model: OfferedModel) -> None:
        self._client = client
        self._url = f"{endpoint.base_url}/chat/completions"
        self._models_url = f"{endpoint.base_url}/models"
        self._model = model

    def checks(self) -> Iterator[Check]:
        streamed = self._ask(_LIST, stream=True)
        if streamed.error:
            yield Check(
                "reply",
                "wrong",
                f"{self._model.name} gave none: {streamed.error}",
                "Look at what that server printed.",
            )
            return
        yield Check("reply", "ok", f"{self._model.name} replied in {streamed.seconds:.1f} s")
        yield self._streaming(streamed)
        yield _usage(streamed)
        yield self._tools(streamed)
        if streamed.calls:
            yield self._parallel()
        yield self._context()

    def _streaming(self, answer: Answer) -> Check:
        if answer.events:
            return Check("streaming", "ok", f"yes, {answer.events} pieces")
        return Check(
            "streaming", "note", "no", "Runs work, but words are shown only when all came."
        )

    def _tools(self, answer: Answer) -> Check:
        if answer.calls:
            return Check("tools", "ok", "yes, it called list_files")
        plain = self._ask(_LIST, stream=False)
        if plain.calls:
            return Check(
                "tools",
                "wrong",
                "only without streaming",
                "Runs always stream. Update that server, or serve the model with another.",
            )
        return Check(
            "tools",
            "wrong",
            "it was asked to call one and did not",
            "Take a model that is made for tool calls; vLLM needs --enable-auto-tool-choice and "
            "--tool-call-parser, llama-server needs --jinja.",
        )

    def _parallel(self) -> Check:
        answer = self._ask(_BOTH, stream=True)
        if len(answer.calls) > 1:
            return Check("parallel calls", "ok", f"yes, {len(answer.calls)} in one reply")
        return Check(
            "parallel calls", "note", "not seen", "Runs work; they take a turn for each call."
        )

    def _context(self) -> Check:
        size = self._listed_context() or _said_context(
            self._ask(_LIST, stream=True, max_tokens=HUGE, only_begin=True).error
        )
        if size is None:
            return Check("context", "note", "it does not say", "Look into that server's settings.")
        if size < 4096:
            return Check(
                "context",
                "note",
                f"{size:,} tokens",
                "Little for a run with files in it: 8,192 or more is comfortable.",
            )
        return Check("context", "ok", f"{size:,} tokens")

    def _listed_context(self) -> int | None:
        """What the list of models says of it."""
        try:
            entries = self._client.get(self._models_url).json()["data"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None
        name = self._model.name.partition("?")[0]
        own = [entry for entry in entries if isinstance(entry, dict) and entry.get("id") == name]
        return next((size for entry in own if (size := _context_in(entry))), None)

    def _ask(
        self,
        question: str,
        *,
        stream: bool,
        max_tokens: int = REPLY_TOKENS,
        only_begin: bool = False,
    ) -> Answer:
        """One request with two tools. Never raises for what the server does."""
        body: dict[str, Any] = {
            "model": self._model.name,
            "messages": [
                {"role": "system", "content": _SYSTEM},
                {"role": "user", "content": question},
            ],
            "tools": [list_files.wire, read_file.wire],
            "temperature": 0,
            "max_tokens": max_tokens,
            "stream": stream,
        }
        if stream:
            body["stream_options"] = {"include_usage": True}
        started = time.monotonic()
        answer = Answer()
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                _read(response, answer, only_begin)
        except httpx.HTTPError as error:
            answer.error = f"{type(error).__name__}: {error}"
        except (ValueError, TypeError, AttributeError, KeyError, IndexError):
            answer.error = "it is not what an OpenAI-compatible server says"
        answer.seconds = time.monotonic() - started
        return answer


def _read(response: httpx.Response, answer: Answer, only_begin: bool) -> None:
    if response.status_code != 200:
        text = response.read().decode("utf-8", "replace")
        answer.error = f"status {response.status_code}: {_message(text)}"
        return
    if "text/event-stream" not in response.headers.get("content-type", ""):
        _take(json.loads(response.read()), answer)
        return
    for line in response.iter_lines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            answer.events += 1
            _take(json.loads(data), answer)
        if answer.error or only_begin:
            return
    if not answer.events:
        answer.error = "its stream was empty"


def _take(item: Mapping[str, Any], answer: Answer) -> None:
    """Note what one piece, or the whole reply, holds."""
    if item.get("error"):
        answer.error = _message(json.dumps(item))
        return
    answer.usage = item.get("usage") or answer.usage
    for choice in item.get("choices") or ():
        said = choice.get("delta") or choice.get("message") or {}
        for place, call in enumerate(said.get("tool_calls") or ()):
            answer.calls.add(call.get("index", place))


def _message(text: str) -> str:
    """The words of an error, as far as they can be found."""
    try:
        error = json.loads(text)
        error = error.get("error", error)
        found = error if isinstance(error, str) else error.get("message") or error.get("detail")
    except (ValueError, AttributeError):
        found = None
    return " ".join(str(found or text).split())[:300]


def _usage(answer: Answer) -> Check:
    usage = answer.usage or {}
    if usage.get("prompt_tokens"):
        found = f"yes, {usage['prompt_tokens']} in, {usage.get('completion_tokens', 0)} out"
        return Check("usage", "ok", found)
    return Check(
        "usage",
        "note",
        "it counts no tokens",
        "Costs stay unknown, and limits on money or tokens cannot be kept.",
    )


def _context_in(entry: Mapping[str, Any]) -> int | None:
    for part in (entry, entry.get("meta"), entry.get("uitweg")):
        if isinstance(part, Mapping):
            for key in _KEYS:
                size = part.get(key)
                if isinstance(size, int) and not isinstance(size, bool) and size > 0:
                    return size
    return None


def _said_context(error: str) -> int | None:
    """The length in a refusal such as "maximum context length is 8192 tokens"."""
    found = re.search(r"context[^0-9]{0,60}?(\d[\d,]{2,})", error)
    size = int(found[1].replace(",", "")) if found else None
    return size if size != HUGE else None
