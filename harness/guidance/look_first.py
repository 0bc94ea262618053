"""Look first: the folder's listing stands in the first prompt, so no name need be guessed.

It is taken once, when the run begins, and stays as it was then, so that the
model server's cache holds from turn to turn.
"""

from __future__ import annotations

from harness.guidance.protocol import Policy
from harness.state import Settings
from harness.workspace import Workspace

MOST_NAMES = 40
"""More than these would cost more prompt than they save."""


class LookFirst(Policy):
    """See the module's docstring."""

    name = "look_first"

    def first_prompt(self, settings: Settings, workspace: Workspace, prompt: str) -> str:
        """The prompt with the names of the files after it."""
        if "list_files" not in settings.tools:
            return prompt
        names = workspace.listing()
        if not names:
            return f"{prompt}\n\nThe folder is empty."
        shown = ", ".join(names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"{prompt}\n\nThe files in the folder: {shown}{more}."
