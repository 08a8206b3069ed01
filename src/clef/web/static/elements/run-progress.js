// <run-progress>: follows a run that is under way by its events. The run belongs to the server: leaving this page, or
// losing the connection, does nothing to it. The numbers below are shown anew now and then, the whole page at the end.

const REFRESH_MS = 3000;
const SPEAK_MS = 10_000;
const AGAIN_MS = 1500;
const QUIET_MS = 2500; // without a row after which the engine is asked how it is
const WORDS = { queued: "waiting in line: another run comes first", paused: "paused" };
const ENDS = ["finished", "stopped", "failed"];

class RunProgress extends HTMLElement {
  connectedCallback() {
    this.refreshed = this.spoken = performance.now();
    this.following = new AbortController();
    this.heard = performance.now();
    this.wondering = setInterval(() => this.wonder(), QUIET_MS);
    this.follow(this.following.signal);
  }

  disconnectedCallback() {
    this.following.abort();
    clearTimeout(this.later);
    clearInterval(this.wondering);
  }

  // A run whose rows wait for an engine that is coming back is still running; whoever watches should know why it rests.
  async wonder() {
    if (this.dataset.state !== "running" || performance.now() - this.heard < QUIET_MS) return;
    try {
      const { phase, message } = await (await fetch("/api/health")).json();
      if (phase === "ready" || performance.now() - this.heard < QUIET_MS) return;
      this.part("pace").textContent = `waiting for the engine: ${message ?? phase}`;
    } catch {
      // the stream of events says when clef is gone
    }
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  async follow(signal) {
    while (!signal.aborted && !ENDS.includes(this.dataset.state)) {
      try {
        const response = await fetch(`/api/runs/${this.dataset.run}/events`, { signal });
        if (response.status === 404) return this.refresh("whole");
        if (response.ok) for await (const line of lines(response.body)) this.take(JSON.parse(line));
      } catch {
        if (signal.aborted) return;
        this.part("pace").textContent = "clef does not answer; trying again…";
      }
      if (!ENDS.includes(this.dataset.state)) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    if (!signal.aborted) this.refresh("whole");
  }

  take(event) {
    if (event.type !== "progress") return;
    this.dataset.state = event.state;
    this.heard = performance.now();
    const bar = this.querySelector("progress");
    bar.max = event.rows || 1;
    bar.value = event.done;
    this.part("done").textContent = `${figure(event.done)} of ${figure(event.rows)} rows`;
    this.part("pace").textContent = pace(event);
    const now = performance.now();
    if (now - this.refreshed > REFRESH_MS) this.refresh("run", now);
    if (now - this.spoken > SPEAK_MS) {
      this.spoken = now;
      this.part("spoken").textContent = `${event.done} of ${event.rows} rows done`;
    }
  }

  // Not under the eyes of someone who reads a row: the end is shown once it is closed.
  refresh(id, now = performance.now()) {
    this.refreshed = now;
    if (!document.querySelector('[data-row][aria-expanded="true"]')) {
      document.getElementById(id).dispatchEvent(new Event("refresh"));
    } else if (id === "whole") this.later = setTimeout(() => this.refresh(id), 300);
  }
}

function pace({ state, reason, rate, left_s, failed }) {
  if (WORDS[state]) return reason ? `${WORDS[state]}: ${reason}` : WORDS[state];
  if (state !== "running") return state === "finished" ? "done" : (reason ?? state);
  const said = [];
  if (rate) said.push(`${rate < 10 ? rate.toFixed(1) : figure(Math.round(rate))} rows a second`);
  if (left_s !== null) said.push(`${duration(left_s)} left`);
  if (failed) said.push(`${figure(failed)} failed`);
  return said.join(" · ");
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest) yield rest;
}

function figure(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

function duration(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

customElements.define("run-progress", RunProgress);
