// <engine-log>: the end of what llama.cpp writes; the switch follows it live, over restarts. Only a page that is looked
// at follows, since a browser keeps no more than six connections to one address.

const TAIL = 200;
const MOST = 2000;
const AGAIN_MS = 1500;

class EngineLog extends HTMLElement {
  connectedCallback() {
    this.follow = this.part("follow");
    this.follow.addEventListener("change", () => this.switched());
    this.look = () => this.switched();
    document.addEventListener("visibilitychange", this.look);
    this.part("lines").scrollTop = this.part("lines").scrollHeight;
  }

  disconnectedCallback() {
    this.following?.abort();
    document.removeEventListener("visibilitychange", this.look);
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  switched() {
    this.following?.abort();
    this.part("trouble").textContent = "";
    if (!this.follow.checked || document.hidden) return;
    this.following = new AbortController();
    this.listen(this.following.signal);
  }

  // The lines as they are now, for a page that does not follow.
  async renew() {
    if (this.follow.checked) return;
    try {
      const response = await fetch(`/api/engine/log?tail=${TAIL}`);
      if (response.ok && !this.follow.checked) this.show((await response.json()).lines);
    } catch {
      // the page already says that clef does not answer
    }
  }

  async listen(signal) {
    while (!signal.aborted) {
      try {
        const response = await fetch(`/api/engine/log?follow=1&tail=${TAIL}`, { signal });
        this.part("trouble").textContent = "";
        let first = [];
        for await (const event of events(response.body)) {
          if (first && event.type === "line") first.push(event.text);
          else if (first) {
            this.show(first);
            first = null;
          }
          if (event.type === "start") this.add(`── start ${event.number} ──`);
          else if (!first && event.type === "line") this.add(event.text);
        }
      } catch {
        if (signal.aborted) return;
        this.part("trouble").textContent = "clef does not answer; trying again…";
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  show(lines) {
    this.lines = lines.slice(-MOST);
    this.write();
  }

  add(line) {
    this.lines.push(line);
    if (this.lines.length > MOST) this.lines.shift();
    this.pending ??= requestAnimationFrame(() => this.write());
  }

  // Whoever has scrolled up to read is left there.
  write() {
    this.pending = undefined;
    const box = this.part("lines");
    const atEnd = box.hidden || box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    box.textContent = this.lines.join("\n");
    box.hidden = this.lines.length === 0;
    this.part("none").hidden = this.lines.length > 0;
    if (atEnd) box.scrollTop = box.scrollHeight;
  }
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts.filter(Boolean)) yield JSON.parse(part);
  }
}

customElements.define("engine-log", EngineLog);
