"""Evaluator and optimiser: one run writes and another judges, until it is good."""

import asyncio

from common import Tree

ROUNDS = 3


async def improve(tree, task):
    """The last draft, and whether the judge accepted it."""
    draft = await tree.ask(task)
    for _ in range(ROUNDS):
        verdict = await tree.ask(
            f"Judge this answer. Say GOOD, or say in one sentence what is wrong.\n"
            f"Task: {task}\nAnswer: {draft}"
        )
        if verdict.upper().startswith("GOOD"):
            return draft, True
        draft = await tree.ask(f"{task}\nYour last answer: {draft}\nWhat was wrong: {verdict}")
    return draft, False


def script(task, _later):
    """What stands in for the model."""
    if task.startswith("Judge"):
        return "GOOD" if "degrees Celsius" in task else "The unit is missing."
    return "100 degrees Celsius" if "unit" in task else "100"


if __name__ == "__main__":
    print(asyncio.run(improve(Tree(script), "At what temperature does water boil?")))
