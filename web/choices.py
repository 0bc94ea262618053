"""The models that a new task can choose from, and how a choice is written in a form."""

from __future__ import annotations

from dataclasses import dataclass

from web.endpoints import Model, ServerState

WORDS = {
    "ready": "ready",
    "loading": "loading",
    "failed": "failed",
    "absent": "not running",
    "unknown": "state unknown",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One option: `server key`, a bar, the model's name."""

    value: str
    label: str
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The choices of one server."""

    label: str
    choices: tuple[Choice, ...]


def groups(states: tuple[ServerState, ...]) -> tuple[Group, ...]:
    """All choices by server. A server without a model still says why."""
    return tuple(_group(state) for state in states)


def _group(state: ServerState) -> Group:
    label = f"{state.label} · {WORDS[state.condition]}"
    if not state.models:
        reason = state.detail or WORDS[state.condition]
        return Group(label, (Choice("", f"No model: {reason}", disabled=True),))
    return Group(
        label,
        tuple(Choice(f"{state.key}|{model.name}", _label(state, model)) for model in state.models),
    )


def _label(state: ServerState, model: Model) -> str:
    description = model.extra.get("description")
    if isinstance(description, str) and description:
        return f"{model.name}: {description}"
    return model.name if state.condition == "ready" else f"{model.name} ({WORDS[state.condition]})"


def default(states: tuple[ServerState, ...]) -> str:
    """The first model that is ready."""
    for state in states:
        if state.condition == "ready" and state.models:
            return f"{state.key}|{state.models[0].name}"
    return ""


def find(states: tuple[ServerState, ...], server: str, model: str) -> str:
    """The value for a model of a server; for an empty name its first."""
    for state in states:
        if state.key == server:
            name = model or (state.models[0].name if state.models else "")
            return f"{server}|{name}" if name else ""
    return ""
