"""What the examples share: one run of a tree, with a real model or a scripted one."""

import os
from dataclasses import dataclass, field

from harness import Budget, CancelToken, ScriptedModel, run


@dataclass
class Tree:
    """Runs that belong together: one Stop for all of them, and one budget.

    `script` stands in for the model where LLM_BASE_URL is not set: a function from the task
    to what the model says to it (or calls).
    """

    script: object
    stop: CancelToken = field(default_factory=CancelToken)
    budget: Budget = field(default_factory=lambda: Budget(max_total_tokens=50_000))
    store: object = None

    async def run(self, task, **more):
        """Carry out one task of the tree; the run's state when it has ended."""
        return await run(
            task,
            model=None if os.environ.get("LLM_BASE_URL") else self._scripted(),
            cancel=self.stop.child(),
            budget=self.budget,
            store=self.store,
            **more,
        )

    async def ask(self, task, **more):
        """The answer to a task. Raises `Unfinished` where there is none."""
        return answer_of(await self.run(task, **more))

    def _scripted(self):
        return ScriptedModel(lambda messages: self.script(messages[1]["content"], messages[2:]))


def answer_of(state):
    """The answer of a run that has ended. Raises `Unfinished` where there is none."""
    if state.status != "completed":
        raise Unfinished(f"{state.status}: {state.reason}")
    return state.answer.strip()


class Unfinished(Exception):
    """A run of the tree ended without an answer: its limit, its budget, or Stop."""
