"""The front page: give a task, see what waits, look back over all runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, redirect, render_template, request

from harness.errors import HarnessError, SettingsError
from harness.state import ENDINGS, Limits, Settings
from web import choices
from web.begin import settings_for
from web.endpoints import ServerState
from web.examples import EXAMPLES
from web.faces import ENDING_WORDS
from web.reading import Filters
from web.reply import count_in
from web.rules import rules_shown
from web.services import services
from web.text import whole as sendable
from web.views.act import amount, whole

views = Blueprint("runs", __name__)

MOST_TASK = 20_000


@dataclass(slots=True)
class Form:
    """What stands in the form of a new task."""

    task: str = ""
    model: str = ""
    max_turns: str = "20"
    max_cost_usd: str = ""
    workspace: str = ""


@views.get("/")
def front() -> str:
    """The form and the list."""
    states = services().endpoints.states()
    return _page(_form_asked(states), states)


@views.post("/runs")
def start() -> Any:
    """Start a run; its page is shown as soon as it stands in the store."""
    made = services()
    states = made.endpoints.states()
    form = Form(**{name: request.form.get(name, "") for name in Form.__slots__})
    try:
        run_id = made.carrier.start(_task(form), _settings(form))
    except HarnessError as error:
        return _page(form, states, str(error)), 422
    return redirect(f"/runs/{run_id}", code=303)


def filters_asked() -> Filters:
    """The filters in the address. An ending that is none is left out."""
    ending = request.args.get("ending", "")
    return Filters(
        q=request.args.get("q", "").strip()[:200],
        ending=ending if ending in ENDING_WORDS else "",
        model=request.args.get("model", "")[:300],
    )


def _page(form: Form, states: tuple[ServerState, ...], problem: str = "") -> str:
    made = services()
    filters = filters_asked()
    before = count_in(request.args.get("before", ""))
    rows, following = made.reader.rows(filters, before)
    waiting = made.reader.waiting()
    asked = {"q": filters.q, "ending": filters.ending, "model": filters.model}
    query = {name: sendable(value) for name, value in asked.items() if value}
    return render_template(
        "runs.html",
        here="runs",
        form=form,
        problem=problem,
        focus=not filters and before is None and not waiting,
        choices=choices.groups(states),
        examples=[_example(example, states) for example in EXAMPLES],
        rules=rules_shown(made.config),
        rules_file=made.config.rules,
        asks=made.reader.asks(waiting),
        waiting_count=len(waiting),
        rows=rows,
        next=following and "/?" + urlencode(query | {"before": str(following)}),
        live="?" + urlencode(query) if query else "",
        streamed=before is None,
        filters=filters,
        filtered=bool(filters) or before is not None,
        endings=[(status, ENDING_WORDS[status]) for status in ("running", *ENDINGS)],
        models=_models(states, filters, [row.model for row in rows]),
    )


def _models(states: tuple[ServerState, ...], filters: Filters, seen: list[str]) -> list[str]:
    """Names for the filter: what is served, what is shown, what was asked for."""
    served = [model.name for state in states for model in state.models]
    asked = [filters.model] if filters.model else []
    return list(dict.fromkeys([*asked, *served, *seen]))


def _example(example: Any, states: tuple[ServerState, ...]) -> dict[str, Any]:
    values: dict[str, Any] = example._asdict()
    values["model"] = choices.find(states, example.server, example.model)
    return values


def _form_asked(states: tuple[ServerState, ...]) -> Form:
    """An empty form, or one filled from an example or from another run."""
    config = services().config
    form = Form(model=choices.default(states), workspace=str(config.folder))
    _put_limits(form, config.limits)
    key, like = request.args.get("example"), request.args.get("like")
    example = next((e for e in EXAMPLES if e.key == key), None)
    if example is not None:
        form.task, form.max_turns = example.task, str(example.max_turns)
        form.model = choices.find(states, example.server, example.model)
    elif like:
        state = services().store.load(like)
        settings = state.settings
        form.task, form.workspace = sendable(state.task), settings.workspace
        _put_limits(form, settings.limits)
        server = next((s.key for s in states if s.base_url == settings.base_url), "")
        form.model = f"{server}|{settings.model}"
    return form


def _put_limits(form: Form, limits: Limits) -> None:
    form.max_turns = str(limits.max_turns or "")
    form.max_cost_usd = "" if limits.max_cost_usd is None else f"{limits.max_cost_usd:f}"


def _task(form: Form) -> str:
    task = form.task.strip()
    if not task:
        raise SettingsError("Write what should be done.")
    if len(task) > MOST_TASK:
        raise SettingsError(f"The task is too long: at most {MOST_TASK:,} characters.")
    return task


def _settings(form: Form) -> Settings:
    server, _, model = form.model.partition("|")
    place = services().endpoints.place(server)
    if place is None or not model:
        raise SettingsError("Choose a model. If there is none, start a server: see the page Model.")
    config = services().config
    asked = {
        "max_turns": whole(form.max_turns, "The limit of turns"),
        "max_cost_usd": amount(form.max_cost_usd, "The limit of cost"),
    }
    limits = config.limits.model_copy(update=asked)
    return settings_for(config, place, model, form.workspace, limits)
