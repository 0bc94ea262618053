// What the page adds to plain HTML: live updates, quiet forms, small comforts.
// The server makes every piece of HTML; text of models and tools arrives
// escaped, and the words of a turn that is being written are set as text.
"use strict";

(() => {
  const body = document.body;
  const csrf = document.querySelector("meta[name=csrf]")?.content ?? "";
  const byId = (id) => document.getElementById(id);
  const notice = byId("notice");

  function tell(text) {
    if (!notice) return;
    notice.textContent = text;
    notice.hidden = !text;
  }

  // --- replacing pieces without losing what the person was doing -----------

  function keep(old, change) {
    const open = new Map([...old.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const typed = new Map(
      [...old.querySelectorAll("input[id], textarea[id]")].map((f) => [f.id, f.value]));
    const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
    const fresh = change();
    for (const [id, state] of open) { const d = byId(id); if (d) d.open = state; }
    for (const [id, value] of typed) { const f = byId(id); if (f) f.value = value; }
    if (focus) byId(focus)?.focus({ preventScroll: true });
    return fresh;
  }

  function parsed(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  }

  function putPart(name, html) {
    const part = byId("part-" + name);
    if (!part) return;
    const had = part.childElementCount > 0;
    // A card above must not push away the form that somebody is writing in.
    if (name === "asks" && !had && byId("new")?.contains(document.activeElement) && html.trim()) {
      waitingHtml = html;
      return;
    }
    keep(part, () => part.replaceChildren(parsed(html)));
    if (name === "ask" && !had && part.childElementCount > 0) {
      part.scrollIntoView({ block: "center" });
    }
  }

  let waitingHtml = "";
  byId("new")?.addEventListener("focusout", () => setTimeout(() => {
    if (waitingHtml && !byId("new").contains(document.activeElement)) putPart("asks", waitingHtml);
    waitingHtml = "";
  }));

  function putItem(key, html) {
    const trace = byId("trace");
    if (!trace) return;
    const old = byId(key);
    if (old) keep(old, () => old.replaceWith(parsed(html)));
    else trace.append(parsed(html));
  }

  // --- following the end of the trace ---------------------------------------

  let following = false;
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  addEventListener("scroll", () => { following = scrollY > 40 && atEnd(); }, { passive: true });
  function follow() { if (following) scrollTo(0, document.documentElement.scrollHeight); }

  // --- clocks -------------------------------------------------------------

  function duration(ms) {
    if (ms < 1000) return Math.round(ms) + " ms";
    const s = ms / 1000;
    if (s < 60) return s.toFixed(1) + " s";
    const m = Math.floor(s / 60);
    return m < 60 ? `${m} min ${Math.floor(s % 60)} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
  }
  const clocks = new WeakMap();
  function tick() {
    for (const el of document.querySelectorAll("[data-since]")) {
      if (!clocks.has(el)) clocks.set(el, performance.now() - Number(el.dataset.since));
      el.textContent = duration(performance.now() - clocks.get(el));
    }
  }
  if (body.dataset.live) setInterval(tick, 100);

  // --- live updates -----------------------------------------------------------

  let after = Number(body.dataset.after ?? 0);
  const withAfter = (path) => `${path}${path.includes("?") ? "&" : "?"}after=${after}`;
  let source = null;
  let timer = 0;

  function apply(update) {
    if (update.seq !== undefined) {
      if (update.seq < after && !update.whole) return;
      after = Math.max(after, update.seq);
    }
    for (const { key, html } of update.items ?? []) putItem(key, html);
    if (update.items?.some((i) => i.turn) || update.quiet) hideWords();
    for (const [name, html] of Object.entries(update.parts ?? {})) putPart(name, html);
    if (update.title) document.title = update.title;
    if (update.waiting !== undefined) byId("waiting").replaceChildren(parsed(update.waiting));
    tick();
    follow();
  }

  function hideWords() {
    const live = byId("words");
    if (!live || live.hidden) return;
    live.hidden = true;
    live.querySelector(".words").textContent = "";
    delete live.dataset.turn;
  }

  function words({ turn, from, text }) {
    const live = byId("words");
    if (!live) return;
    const into = live.querySelector(".words");
    if (live.dataset.turn !== String(turn) || from === 0) into.textContent = "";
    live.dataset.turn = turn;
    live.hidden = false;
    into.append(text);
    follow();
  }

  function connect() {
    clearTimeout(timer);
    if (source || document.hidden) return;
    source = new EventSource(withAfter(body.dataset.live));
    source.onopen = () => tell("");
    source.onmessage = (message) => apply(JSON.parse(message.data));
    source.addEventListener("words", (message) => words(JSON.parse(message.data)));
    source.onerror = () => {
      // Opened anew each time, so that what was seen last is always said.
      disconnect();
      news("The connection is lost. Trying again…").finally(() => { timer = setTimeout(connect, 800); });
    };
  }

  function disconnect() {
    source?.close();
    source = null;
    hideWords();
  }

  // One answer instead of a stream: for tabs that are not looked at (a browser
  // keeps six connections a host, all tabs together) and when streams are full.
  async function news(problem) {
    try {
      const answer = await fetch(withAfter(body.dataset.news), { headers: { Accept: "application/json" } });
      if (answer.status === 401) { tell("This browser's access has ended. Open the address that the terminal shows."); return; }
      if (answer.ok) { apply(await answer.json()); tell(""); }
    } catch { if (problem) tell(problem); }
  }

  function watchHidden() {
    clearTimeout(timer);
    if (!document.hidden) { news().finally(connect); return; }
    disconnect();
    const again = () => { news().finally(() => { if (document.hidden) timer = setTimeout(again, 3000); }); };
    timer = setTimeout(again, 3000);
  }

  if (body.dataset.live) {
    connect();
    document.addEventListener("visibilitychange", watchHidden);
    addEventListener("pageshow", (event) => { if (event.persisted) { disconnect(); connect(); } });
    addEventListener("pagehide", disconnect);
  }

  // --- quiet forms: sent in the background, the answer arrives as an update ---

  function said(form, text) {
    const near = form.closest(".card, #part-actions") ?? form.parentElement;
    const place = near.querySelector(".said");
    if (place) { place.textContent = text; place.hidden = !text; } else tell(text);
  }

  async function send(form, button) {
    // getAttribute, since a button named "action" hides the property.
    const data = new FormData(form);
    if (button?.name) data.set(button.name, button.value);
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((b) => { b.disabled = true; });
    said(form, "");
    try {
      const answer = await fetch(button?.getAttribute("formaction") ?? form.getAttribute("action"), {
        method: "POST", body: new URLSearchParams(data),
        headers: { Accept: "application/json", "X-CSRF-Token": csrf },
      });
      const reply = await answer.json().catch(() => ({ error: "The page answered in a way that was not expected. Reload it." }));
      if (!answer.ok) said(form, reply.error);
      if (reply.to) { location.assign(reply.to); return; }
    } catch {
      said(form, "The page does not answer. Is Uitweg still running? Nothing has been decided.");
    }
    buttons.forEach((b) => { b.disabled = false; });
    if (!source) news();
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-quiet]")) {
      event.preventDefault();
      send(form, event.submitter);
    } else if (form.id === "new") {
      // Twice Enter must not start two runs.
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
    }
  });
  addEventListener("pageshow", () => { const form = byId("new"); if (form) delete form.dataset.sent; });

  // --- small comforts -----------------------------------------------------------

  byId("task")?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  document.addEventListener("click", (event) => {
    const opened = event.target.closest(".decide summary")?.parentElement;
    // The browser opens it after this.
    if (opened) setTimeout(() => { if (opened.open) opened.querySelector("input:not([type=hidden]), textarea").focus(); });
  });

  document.addEventListener("click", async (event) => {
    const el = event.target.closest("[data-fill], [data-task], a.more");
    if (!el || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (el.dataset.fill) {
      const field = byId(el.dataset.fill);
      field.value = el.textContent;
      field.focus();
    } else if (el.dataset.task !== undefined) {
      event.preventDefault();
      const form = byId("new");
      form.task.value = el.dataset.task;
      if (el.dataset.model && [...form.model.options].some((o) => o.value === el.dataset.model && !o.disabled)) form.model.value = el.dataset.model;
      if (el.dataset.turns) form.max_turns.value = el.dataset.turns;
      form.task.focus();
    } else if (el.matches("a.more")) {
      event.preventDefault();
      try {
        const answer = await fetch(el.href + "?piece=1");
        if (!answer.ok) throw new Error();
        byId(el.dataset.into).replaceChildren(parsed(await answer.text()));
        el.parentElement.remove();
      } catch { location.assign(el.href); }
    }
  });

  const compare = byId("compare");
  function marked() {
    const count = compare.querySelectorAll("input:checked").length;
    const button = byId("compare-button");
    button.disabled = count < 2;
    button.textContent = count < 2 ? "Mark two or more runs to compare" : `Compare the ${count} marked runs`;
  }
  if (compare) { compare.addEventListener("change", marked); addEventListener("pageshow", marked); marked(); }

  for (const select of document.querySelectorAll("[data-filter] select")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }

  const state = document.querySelector("[data-refresh]");
  if (state) {
    setInterval(async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch(state.dataset.refresh, { headers: { Accept: "text/html" } });
        if (answer.ok) { const html = await answer.text(); keep(state, () => state.replaceChildren(parsed(html))); tell(""); }
      } catch { tell("The page does not answer. Is Uitweg still running?"); }
    }, 2000);
  }
})();
