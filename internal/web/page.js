"use strict";
(() => {
  const line = (l) => {
    const p = document.createElement("p");
    p.className = l.kind || "";
    p.textContent = l.text;
    return p;
  };
  const most = 2000; // lines that stay in a page that nobody scrolls
  const log = document.querySelector(".log[data-older]");
  let from = 0, asking = false;
  if (log) {
    log.scrollTop = log.scrollHeight;
    from = Number(log.dataset.from);
    log.addEventListener("scroll", async () => {
      if (asking || from <= 0 || log.scrollTop > 400) return;
      asking = true;
      try {
        const answer = await fetch(log.dataset.older + from, { credentials: "same-origin" });
        if (!answer.ok) return;
        const part = await answer.json();
        const before = log.scrollHeight - log.scrollTop;
        log.prepend(...(part.lines || []).map(line));
        log.scrollTop = log.scrollHeight - before; // what is read stays where it is
        from = part.from;
      } finally {
        asking = false;
      }
    });
  }
  const live = document.querySelector("[data-live]");
  if (!live || !window.EventSource) return;
  const set = (name, text) => {
    const at = live.querySelector("[data-" + name + "]");
    if (at && text && at.textContent !== text) at.textContent = text;
  };
  const source = new EventSource(live.dataset.live);
  source.onmessage = (message) => {
    const now = JSON.parse(message.data);
    if (now.changed) document.querySelector("[data-changed]").hidden = false;
    if (now.ended) {
      source.close();
      live.querySelector("h2").textContent = "The attempt has ended";
      const steer = live.querySelector(".steer");
      // A typed text may still be sent, as feedback. Hiding keeps the form's room: what is being read does not move.
      if (steer && !steer.elements.text.value) steer.style.visibility = "hidden";
      return;
    }
    set("elapsed", now.elapsed);
    set("used", now.used);
    set("call", now.call);
    set("note", now.note);
    if (!now.lines || !now.lines.length) return;
    const note = live.querySelector("[data-note]");
    if (note) note.style.visibility = "hidden"; // removed it would move what is read
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(...now.lines.map(line));
    if (!atEnd) return;
    while (log.childElementCount > most) {
      log.firstElementChild.remove();
      from = 0; // what stands before is in the whole log
    }
    log.scrollTop = log.scrollHeight;
  };
})();
