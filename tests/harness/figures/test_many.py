"""A hundred runs at once on one event loop, with every figure unchanged."""

import asyncio

from harness.figures.compare import read_published
from harness.figures.lab import WHICH_FILE, Carried
from harness.figures.tools import plain_tools


async def test_a_hundred_runs_at_once(lab):
    published = read_published()["plan"]
    async with lab.runner(plain_tools()) as runner:
        settings = [lab.settings("plan", plain_tools()) for _ in range(100)]
        states = await asyncio.gather(*(runner.start(WHICH_FILE, one) for one in settings))
    for state in states:
        figures = Carried(state, []).figures()
        assert figures == {name: published[name] for name in figures}
