"""Parallel workers: the same question about each part, all at once, and one answer from all."""

import asyncio

from common import Tree

QUESTION = "Does this text mention a timeout? Answer yes or no. Text: {}"


async def parallel(tree, parts):
    """The parts that mention one, in their order."""
    answers = await asyncio.gather(*(tree.ask(QUESTION.format(part)) for part in parts))
    return [
        part
        for part, answer in zip(parts, answers, strict=True)
        if answer.lower().startswith("yes")
    ]


def script(task, _later):
    """What stands in for the model."""
    return "Yes." if "timed out" in task else "No."


if __name__ == "__main__":
    LINES = ("worker 3 started", "worker 7 timed out after 30000 ms", "worker 3 done")
    print(asyncio.run(parallel(Tree(script), LINES)))
