// <review-queue>: rows one at a time, by keys alone if wanted. What is said is kept by the server before the next row
// shows; the next row is fetched while this one is read. The address names the row, so a reload begins with it.

import { count } from "./figures.js";
import { label as give } from "./run-parts.js";

const TYPING = "input, textarea, select, [contenteditable]";
const KEYS = { Enter: "accept", l: "keep", s: "skip", u: "undo", j: "on", k: "back" };

class ReviewQueue extends HTMLElement {
  connectedCallback() {
    this.queue = JSON.parse(this.dataset.queue);
    this.at = 0;
    this.past = []; // what was done last stands last: { at, said }
    this.fetched = new Map();
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("change", (event) => {
      if (event.target.dataset.part === "others" && event.target.value) this.say(event.target.value);
    });
    this.keyed = (event) => this.key(event);
    document.addEventListener("keydown", this.keyed);
    this.shown();
  }

  disconnectedCallback() {
    document.removeEventListener("keydown", this.keyed);
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  get row() {
    return this.querySelector(".review-row");
  }

  get isOver() {
    return this.at >= this.queue.length;
  }

  clicked(event) {
    const button = event.target.closest("button");
    if (!button || button.disabled) return;
    if (button.dataset.answer !== undefined) this.say(button.dataset.answer);
    else this.act(button.dataset.do);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && event.target === this.part("note")) this.part("heading").focus();
    if (event.target.matches(TYPING)) return;
    if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
    const answers = this.isOver ? [] : this.querySelectorAll("[data-answer]");
    const answer = /^[1-9]$/.test(event.key) ? answers[event.key - 1] : undefined;
    if (answer) this.say(answer.dataset.answer);
    else if (KEYS[event.key]) this.act(KEYS[event.key]);
    else return;
    event.preventDefault();
  }

  act(what) {
    if (what === "undo") return this.undo();
    if (what === "back") return this.go(Math.max(0, this.at - 1));
    if (this.isOver) return;
    const { prediction, label } = this.row.dataset;
    if (what === "accept" && prediction) this.say(prediction);
    else if (what === "keep" && label) this.say(label);
    else if (what === "skip" || what === "on") this.pass();
  }

  pass() {
    this.past.push({ at: this.at, said: null });
    this.go(this.at + 1, "Skipped.");
  }

  async say(name) {
    if (this.busy || this.isOver) return;
    this.busy = true;
    const { at } = this;
    const changed = name !== this.row.dataset.label;
    const trouble = await give(this.address(at), "PUT", name, this.part("note").value.trim());
    this.busy = false;
    if (trouble) return this.complain(trouble);
    this.past.push({ at, said: changed ? "corrected" : "confirmed" });
    this.part("note").value = "";
    this.fetched.delete(this.queue[at]);
    this.go(at + 1, `${name}.`);
  }

  async undo() {
    const last = this.past.at(-1);
    if (!last || this.busy) return;
    this.busy = true;
    const trouble = last.said ? await give(this.address(last.at), "DELETE") : null;
    this.busy = false;
    if (trouble) return this.complain(trouble);
    this.past.pop();
    this.fetched.delete(this.queue[last.at]);
    this.go(last.at, "Undone.");
  }

  address(at) {
    return `/api/runs/${this.dataset.run}/rows/${this.queue[at]}/label`;
  }

  complain(trouble) {
    this.part("trouble").textContent = trouble;
    this.part("trouble").hidden = false;
  }

  async go(at, said = "") {
    this.at = at;
    this.part("trouble").hidden = true;
    if (!this.isOver) {
      const text = await this.text(at);
      if (this.at !== at) return;
      if (text === null) return this.complain("clef does not answer. Is it still running?");
      this.part("row").innerHTML = text;
    }
    this.shown(said);
    (this.isOver ? this.part("end").querySelector("h2") : this.part("heading")).focus({ preventScroll: true });
  }

  // The markup of a row; null where it cannot be had.
  text(at) {
    const position = this.queue[at];
    if (!this.fetched.has(position)) {
      const asked = fetch(`/runs/${this.dataset.run}/review/${position}`)
        .then((response) => (response.ok ? response.text() : null))
        .catch(() => null)
        .then((text) => {
          if (text === null) this.fetched.delete(position);
          return text;
        });
      this.fetched.set(position, asked);
    }
    return this.fetched.get(position);
  }

  shown(said = "") {
    const { isOver } = this;
    for (const name of ["row", "keys"]) this.part(name).hidden = isOver;
    this.querySelector(".review-note").hidden = isOver;
    this.part("end").hidden = !isOver;
    const tally = { corrected: 0, confirmed: 0 };
    for (const { said: what } of this.past) if (what) tally[what] += 1;
    const words = Object.entries(tally)
      .filter(([, number]) => number)
      .map(([what, number]) => `${count(number)} ${what}`)
      .join(" · ");
    this.querySelector("progress").value = this.at;
    this.part("done").textContent = `${count(this.at)} of ${count(this.queue.length)}`;
    this.part("tally").textContent = words;
    this.part("sum").textContent = words
      ? `${words}. The numbers of the run go by your labels.`
      : "Nothing was changed.";
    for (const button of this.querySelectorAll('[data-do="undo"]')) button.disabled = !this.past.length;
    if (isOver) return;
    const { prediction, label } = this.row.dataset;
    this.querySelector('[data-do="accept"]').disabled = !prediction;
    this.querySelector('[data-do="keep"]').disabled = !label;
    this.part("accept").textContent =
      prediction && prediction === label ? "Prediction and label are right" : "The prediction is right";
    this.part("spoken").textContent = said ? `${said} ${this.part("heading").textContent}.` : "";
    if (this.at + 1 < this.queue.length) this.text(this.at + 1);
    const query = new URLSearchParams(location.search);
    query.set("row", this.queue[this.at]);
    history.replaceState(history.state, "", `${location.pathname}?${query}`);
  }
}

customElements.define("review-queue", ReviewQueue);
