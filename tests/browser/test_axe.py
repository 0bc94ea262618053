"""No page has an accessibility violation that axe-core knows, light or dark, wide or narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LOOKS = [("light", 1280), ("dark", 1280), ("light", 375), ("dark", 375)]


def violations(page: Any) -> list[str]:
    # Through the debugger: the page's own policy lets in no script of another.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{rule['id']}: {node['html'][:150]} {node.get('failureSummary', '')[:250]}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.fixture(scope="module")
def addresses(stack: Any, browser: Any) -> list[str]:
    """Runs with every kind of ending, and all the pages that show them."""
    context = browser.new_context(storage_state=stack.cookies)
    page = context.new_page()
    runs = []
    for example, word in (
        ("Find a timeout", "Completed"),
        ("Hit a limit", "Turn limit"),
        ("Ask a subagent", "Completed"),
        ("Approve a deletion", "Waits for approval"),
    ):
        page.goto(stack.address)
        page.get_by_role("link", name=example).click()
        page.locator("#task").press("Enter")
        page.wait_for_url("**/runs/*")
        page.locator("#part-state .chip", has_text=word).wait_for()
        runs.append(page.url)
    context.close()
    ids = [url.rsplit("/", 1)[1] for url in runs]
    plain = ["/", "/?q=timeout", "/?q=nothing-is-called-so", "/model", "/nothing", "/compare"]
    compare = [f"/compare?run={ids[0]}", f"/compare?run={ids[0]}&run={ids[1]}"]
    compare.append("/compare?" + "&".join(f"run={run}" for run in ids))
    parts = [f"/runs/{ids[0]}/{part}" for part in ("transcript", "trace", "events/3")]
    return [*runs, *(stack.address + path for path in [*plain, *compare, *parts])]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_no_violation(
    stack: Any, open_context: Any, addresses: list[str], faults: Any, scheme: str, width: int
) -> None:
    context = open_context(
        stack,
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        reduced_motion="reduce",
    )
    page = context.new_page()
    found = []
    for address in addresses:
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        found += [f"{address.replace(stack.address, '')} {line}" for line in violations(page)]
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"{address} is {wide} px wide")
    assert found == []
    faults.clear()  # the page that is not there


def test_the_runs_that_wait_are_ended(stack: Any, open_context: Any) -> None:
    page = open_context(stack).new_page()
    page.goto(stack.address)
    while page.locator(".ask").count():
        page.locator(".ask button[value=approve]").first.click()
        page.locator(".ask").first.wait_for(state="detached")
        page.reload()
