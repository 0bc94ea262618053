"""The scripted model: the same endpoint, the same wire, no model behind it.

The request's `model` names a scenario (`scenarios.py`) or a recording (`recording.py`). Either is
a pure function of the conversation: how many replies it holds and what its tools said. Nothing is
remembered between two requests, so a run can be killed and resumed against it, and every figure
comes out the same on every machine.
"""

from server.scripted.backend import ScriptedBackend

__all__ = ["ScriptedBackend"]
