"""50 hostile texts in every place where text of others is shown: none of them runs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness import events as ev
from harness.state import ApprovalNeeded, CallRecord, RunState, Settings
from harness.store import Step, Store

MARK = "window.pwned=1"
TEXTS = (
    f"<script>{MARK}</script>",
    f"<SCRIPT SRC=//evil.example/x.js>{MARK}</SCRIPT>",
    f"<img src=x onerror={MARK}>",
    f"<svg onload={MARK}>",
    f"<svg><script>{MARK}</script></svg>",
    f"<svg><animate onbegin={MARK} attributeName=x dur=1s>",
    f"<iframe src='javascript:{MARK}'></iframe>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<body onload={MARK}>",
    f"<details open ontoggle={MARK}><summary>x</summary></details>",
    f"<input autofocus onfocus={MARK}>",
    f"<video><source onerror={MARK}></video>",
    f"<audio src=x onerror={MARK}>",
    f"<object data='javascript:{MARK}'></object>",
    f"<embed src='javascript:{MARK}'>",
    f"<a href='javascript:{MARK}'>press</a>",
    f"<form action='javascript:{MARK}'><button>press</button></form>",
    f"<button formaction='javascript:{MARK}'>press</button>",
    f"<math><maction xlink:href='javascript:{MARK}'>x</maction></math>",
    f"<style>@import 'javascript:{MARK}';</style>",
    "<style>body{background:url(//evil.example/s)}</style>",
    "<link rel=stylesheet href=//evil.example/s.css>",
    "<base href=//evil.example/>",
    f"<meta http-equiv=refresh content='0;url=javascript:{MARK}'>",
    "<meta http-equiv=refresh content='0;url=//evil.example/'>",
    f'"><script>{MARK}</script>',
    f"'><script>{MARK}</script>",
    f'" onmouseover={MARK} autofocus onfocus={MARK} x="',
    f"' onmouseover={MARK} autofocus onfocus={MARK} x='",
    f"--><script>{MARK}</script><!--",
    f"]]><script>{MARK}</script>",
    f"</textarea><script>{MARK}</script>",
    f"</title><script>{MARK}</script>",
    f"</style><script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f"</template><script>{MARK}</script>",
    f"</select><img src=x onerror={MARK}>",
    f"</pre></div></li></ol><script>{MARK}</script>",
    f"{{{{ ''.__class__ }}}} {{% raw %}} ${{{MARK}}} #{{{MARK}}} <%= {MARK} %>",
    f"data:text/html,<script>{MARK}</script>",
    f"javascript:{MARK}//",
    f"\x00<script\x00>{MARK}</script>",
    f"<scr\x00ipt>{MARK}</scr\x00ipt>",
    f"\x1b[2J\x1b]0;title\x07<b>\x1b[31m{MARK}",
    f"\u202e>tpircs/<{MARK}>tpircs<\u202c",
    f"\u200b<\u200bscript\u200b>{MARK}",
    f"\uff1cscript\uff1e{MARK}\uff1c/script\uff1e",
    f'data: {{"x":1}}\n\nevent: words\ndata: {{"text":"<img src=x onerror={MARK}>"}}\n\n',
    f"&lt;script&gt;{MARK}&lt;/script&gt;&#60;img src=x onerror={MARK}&#62;",
    f'<noscript><p title="</noscript><img src=x onerror={MARK}>">',
)


def test_there_are_fifty() -> None:
    assert len(set(TEXTS)) == 50


def hostile_run(store: Store, number: int, text: str) -> str:
    """A run in which every text that others write is `text`, and which waits for approval."""
    run_id = f"hostile{number:02}"
    args = {"path": text, text: [text, {text: text}]}
    call = CallRecord(
        call_id=f"call {text}", turn=1, tool_name=text, arguments=text, child_run_id=None
    )
    waiting = ApprovalNeeded(call_id=call.call_id, tool_name=text, args=args, digest="d")
    common: dict[str, Any] = {"call_id": call.call_id, "tool_name": text}
    turn: dict[str, Any] = {
        "turn": 1, "prompt_tokens": 9, "cached_tokens": 3, "completion_tokens": 2,
        "total_tokens": 11, "cost_usd": Decimal("0.1"), "run_cost_usd": Decimal("0.1"), "ms": 5.0,
    }  # fmt: skip
    told: list[Any] = [
        ev.RunStarted(
            run_id=run_id, task=text, model=text, workspace=text, tools=(text,), guidance=(text,)
        ),
        ev.Retry(run_id=run_id, attempt=1, error=text, wait_seconds=1.0),
        ev.Turn(
            run_id=run_id, finish_reason=text, content=text, tool_calls=(call.call_id,), **turn
        ),
        ev.Guidance(run_id=run_id, policy=text, detail=text),
        ev.ToolStart(run_id=run_id, args=args, idempotency_key=text, **common),
        ev.ToolProgress(run_id=run_id, message=text, done=1, total=2, **common),
        ev.ToolResult(run_id=run_id, outcome="error", content=text, **common),
        ev.ApprovalDecided(
            run_id=run_id, action="edit", args=args, reason=text, decided_by=text, **common
        ),
        ev.ApprovalRequired(run_id=run_id, args=args, digest="d", effect=text, **common),
        ev.RunStopped(
            run_id=run_id, status="interrupted", reason=text, interruption=waiting, answer=text,
            turns=1, tool_runs=1, prompt_tokens=9, completion_tokens=2, cost_usd=Decimal("0.1"),
        ),
    ]  # fmt: skip
    numbered = tuple(
        event.model_copy(update={"seq": seq, "time": "2026-01-01T00:00:00.000Z"})
        for seq, event in enumerate(told, start=1)
    )
    wire = {"id": call.call_id, "type": "function", "function": {"name": text, "arguments": text}}
    messages = (
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": [wire]},
        {"role": "tool", "tool_call_id": call.call_id, "name": text, "content": text},
    )
    state = RunState(
        run_id=run_id,
        task=text,
        settings=Settings(base_url=text, model=text, workspace=text, tools=(text,)),
        created_at="2026-01-01T00:00:00.000Z",
        status="interrupted",
        reason=text,
        interruption=waiting,
        answer=text,
        turns=1,
        last_seq=len(numbered),
        messages=messages,
        calls={call.call_id: call},
    )
    with store.claim(run_id):
        step = Step(
            store.lease(run_id), state, 0, new=True,
            messages=messages, calls=(call,), events=numbered, release=True,
        )  # fmt: skip
        store.commit(step).result()
    return run_id


@pytest.fixture(scope="module")
def runs(own: Any) -> list[str]:
    with Store.open(Path(own.data) / "runs.db") as store:
        return [hostile_run(store, number, text) for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, stack: Any, browser: Any) -> Any:
    """A stack whose store holds nothing but these."""
    made = type(stack)(tmp_path_factory.mktemp("hostile"))
    made.start()
    made.enter(browser)
    yield made
    made.end()


WATCH = """
  window.pwned = 0; window.refused = [];
  document.addEventListener('securitypolicyviolation', (e) => window.refused.push(e.blockedURI));
"""
LOOK = """() => ({
  pwned: window.pwned, refused: window.refused,
  scripts: [...document.scripts].map((s) => s.getAttribute('src') ?? 'inline')
    .filter((s) => !s.startsWith('/static/page.js')),
  foreign: [...document.querySelectorAll(
    'iframe, object, embed, img, video, audio, base, math, style, noscript, meta[http-equiv]')]
    .map((e) => e.outerHTML),
  handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) =>
    a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value) && a.name !== 'value'))
    .map((e) => e.outerHTML.slice(0, 200)),
})"""


def test_w1_nothing_hostile_runs_anywhere(
    own: Any, open_context: Any, runs: list[str], faults: Any
) -> None:
    context = open_context(own)
    context.add_init_script(WATCH)
    page = context.new_page()
    found: list[str] = []
    for address in addresses(runs):
        answer = page.goto(own.address + address, wait_until="domcontentloaded")
        seen = page.evaluate(LOOK)
        if any(seen.values()) or answer.status >= 500:
            found.append(f"{address} {answer.status} {seen}")
    assert found == []
    assert faults == []


def addresses(runs: list[str]) -> list[str]:
    found = ["/", f"/compare?{'&'.join('run=' + run for run in runs)}"]
    for number, run in enumerate(runs):
        found += [f"/runs/{run}", f"/?q={quote(TEXTS[number])}", f"/?like={run}"]
        other = runs[(number + 1) % len(runs)]
        found.append(f"/compare?run={run}&run={other}")
    for run in runs[::5]:
        found += [f"/runs/{run}/{part}" for part in ("transcript", "trace", "events/7")]
    return found


def test_w1_nothing_hostile_runs_as_it_streams_in(
    own: Any, open_context: Any, runs: list[str]
) -> None:
    context = open_context(own)
    context.add_init_script(WATCH)
    page = context.new_page()
    found = []
    for run in runs[::3]:
        page.goto(f"{own.address}/runs/{run}", wait_until="domcontentloaded")
        # As if the page had seen nothing: everything comes again, by the stream's own path.
        page.evaluate("""() => { document.getElementById('trace').replaceChildren();
          document.body.dataset.after = '0'; }""")
        page.evaluate(
            """async (run) => {
              const news = await (await fetch(`/runs/${run}/news?after=0`)).json();
              const trace = document.getElementById('trace');
              for (const { html } of news.items) {
                const template = document.createElement('template');
                template.innerHTML = html;
                trace.append(template.content);
              }
              for (const [name, html] of Object.entries(news.parts)) {
                const template = document.createElement('template');
                template.innerHTML = html;
                document.getElementById('part-' + name).replaceChildren(template.content);
              }
              await new Promise((done) => setTimeout(done, 50));
            }""",
            run,
        )
        seen = page.evaluate(LOOK)
        if any(seen.values()):
            found.append(f"{run} {seen}")
    assert found == []
