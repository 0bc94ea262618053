"""Hand-off: a run calls a tool to give the task to another one, which takes it over whole."""

import asyncio
from typing import Annotated, Literal

from common import Tree, Unfinished, answer_of

from harness import Call, Stop, tool
from harness.tools import list_files, read_file

DESKS = {
    "front": "You greet people. Hand over what is about files to the desk called files.",
    "files": "You know the files. Look before you answer.",
}
MOST_DESKS = 4


@tool(effect="read")
def hand_over(
    desk: Annotated[Literal["front", "files"], "Who takes over."],
    what: Annotated[str, "The whole task, in words."],
) -> str:
    """Hand the task over to another desk. It takes over at once."""
    return f"{desk} takes over: {what}"


async def serve(tree, task, workspace="."):
    """The answer, and the desks that the task went through."""
    desk, way = "front", []
    for _ in range(MOST_DESKS):
        way.append(desk)
        tools = [hand_over] if desk == "front" else [list_files, read_file]
        state = await tree.run(
            task,
            tools=tools,
            workspace=workspace,
            system_prompt=DESKS[desk],
            stop_conditions=[handed_over],
        )
        given = handed_over(state)
        if given is None:
            return answer_of(state), way
        args = hand_over.validate(given.reason)
        desk, task = args["desk"], args["what"]
    raise Unfinished(f"it was handed from desk to desk: {way}")


def handed_over(run):
    """A stop condition: the run is over once the tool has run. The reason is what was asked."""
    for call in run.calls.values():
        if call.tool_name == "hand_over" and call.outcome == "ok":
            return Stop("interrupted", call.arguments)
    return None


def script(task, later):
    """What stands in for the model."""
    if task.startswith("Please"):
        return Call("hand_over", {"desk": "files", "what": "Which files are there?"})
    return f"There are {later[-1]['content']}" if later else Call("list_files")


if __name__ == "__main__":
    print(asyncio.run(serve(Tree(script), "Please tell me which files there are.")))
