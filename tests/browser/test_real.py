"""A run on the real model, watched in the browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine


@pytest.fixture
def real(tmp_path: Path, stack: Any, browser: Any, model: Any) -> Iterator[Any]:
    """A stack whose real server hosts the default model, or what stands in for it."""
    command = [sys.executable, "-m", "uitweg", "serve", "--port", "0", "--model", model.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)
        made = type(stack)(tmp_path / "data", real="http://" + line.split("http://")[1].split()[0])
        made.start()
        made.enter(browser)
        yield made
        made.end()
        process.terminate()
        process.communicate()


def test_a_run_on_the_real_model(real: Any, open_context: Any, begin: Any, ending: Any) -> None:
    page = open_context(real).new_page()
    page.set_default_timeout(240_000)
    page.goto(f"{real.address}/model")
    page.locator("section", has_text="Real model").locator(".chip", has_text="Ready").wait_for()
    page.goto(real.address)
    # From the page's first moment on: a short answer may have come before a test could look.
    page.add_init_script(
        """addEventListener('DOMContentLoaded', () => {
          window.streamed = 0;
          new MutationObserver(() => {
            if (document.querySelector('#words .words')?.textContent) window.streamed += 1;
          }).observe(document.body, { childList: true, subtree: true, characterData: true });
        });"""
    )
    begin(page, "Read my notes")
    ending(page, "Completed")
    assert page.locator(".trace .call").count() >= 1
    assert "Friday" in page.locator("#part-state .answer").inner_text()
    # How many pieces a browser sees of it depends on how busy it is.
    assert page.evaluate("window.streamed") >= 1
    assert "cached" in page.locator("#part-figures").inner_text()
