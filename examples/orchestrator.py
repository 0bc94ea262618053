"""Orchestrator and workers: one run splits the task, others do the pieces, one joins them."""

import asyncio

from common import Tree, Unfinished

MOST_PIECES = 5


async def orchestrate(tree, task):
    """The answer that was put together of the workers' answers."""
    plan = await tree.ask(f"Split this task into at most three pieces, one a line: {task}")
    pieces = [line.strip(" -*0123456789.") for line in plan.splitlines() if line.strip()]
    if not 0 < len(pieces) <= MOST_PIECES:
        raise Unfinished(f"that is no plan: {plan!r}")
    done = await asyncio.gather(*(tree.ask(f"Do only this: {piece}") for piece in pieces))
    notes = "\n".join(f"{piece}: {answer}" for piece, answer in zip(pieces, done, strict=True))
    return await tree.ask(f"Answer the task from the notes alone. Task: {task}\nNotes:\n{notes}")


def script(task, _later):
    """What stands in for the model."""
    if task.startswith("Split"):
        return "1. count the apples\n2. count the pears"
    if task.startswith("Do only this"):
        return "3" if "apples" in task else "4"
    return "7 fruits" if "3" in task and "4" in task else "unknown"


if __name__ == "__main__":
    print(asyncio.run(orchestrate(Tree(script), "How many fruits are there?")))
