"""Prompt chain: each answer becomes part of the next task, and a check stands between them."""

import asyncio

from common import Tree, Unfinished

STEPS = (
    "Write a title of at most eight words for a note about: {}",
    "Write one sentence under this title: {}",
)


async def chain(tree, subject):
    """The last step's answer."""
    text = subject
    for step in STEPS:
        text = await tree.ask(step.format(text))
        if not text or len(text) > 500:
            raise Unfinished(f"the step {step!r} gave nothing to go on with")
    return text


def script(task, _later):
    """What stands in for the model."""
    return "Rust in the cellar" if "eight words" in task else "The pipes have begun to rust."


if __name__ == "__main__":
    print(asyncio.run(chain(Tree(script), "rusty pipes")))
