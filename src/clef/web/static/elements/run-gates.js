// <run-gates>: the rule of the gates, and their policy as a file. <gate-slider>: where one gate stands and what that
// means. Every place of a slider comes with the page, so moving it asks nothing of the server; a rule is asked for.

import { count, percent, threshold as said } from "./figures.js";
import { addressOf, showRows } from "./run-parts.js";

class RunGates extends HTMLElement {
  connectedCallback() {
    this.addEventListener(
      "change",
      (event) => event.target.closest(".gate-rule") && this.ruled(event.target.name === "pool"),
    );
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.target.matches(".save-policy")) this.save(new FormData(event.target).get("name").trim());
    });
    this.addEventListener("click", (event) => event.target.closest('[data-do="policy"]') && this.download());
  }

  // A way that was just chosen has no number yet: the server gives the usual one.
  ruled(poolChosen) {
    const form = this.querySelector(".gate-rule");
    const given = new FormData(form);
    const way = given.get("way");
    let gate = way;
    if (way === this.dataset.way) {
      if (!form.reportValidity()) return;
      const share = (name) => Number(given.get(name)) / 100;
      gate = way === "cost" ? `cost-${given.get("wrong")}-${given.get("check")}` : `${way}-${share(way)}`;
    }
    const query = new URLSearchParams(location.search);
    query.set("gate", gate);
    if (poolChosen) query.set("pool", given.get("pool"));
    history.replaceState(history.state, "", `${location.pathname}?${query}${location.hash}`);
    window.htmx.ajax("GET", `${this.dataset.address}?${query}`, { target: "#gates", swap: "innerMorph" });
  }

  // The policy as the sliders stand; what was set by hand says so.
  get policy() {
    const policy = JSON.parse(this.dataset.policy);
    for (const slider of this.querySelectorAll("gate-slider")) {
      const { question, pooled, side } = slider.dataset;
      if (slider.threshold === undefined || !slider.isMoved) continue;
      const { thresholds, measured } = pooled ? policy.pooled[pooled] : policy.questions[question];
      if (slider.threshold === null) delete thresholds[side];
      else thresholds[side] = slider.threshold;
      measured.set_by_hand = [...(measured.set_by_hand ?? []), side];
    }
    return policy;
  }

  async save(name) {
    const said = this.querySelector('[data-part="said"]');
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ name, policy: this.policy });
      const response = await fetch("/api/policies", { method: "POST", headers, body });
      const { error } = await response.json();
      said.textContent = response.ok
        ? `Saved. Every export and the API take “${name}” by its name.`
        : [error.message, error.hint].filter(Boolean).join(": ");
    } catch {
      said.textContent = "clef does not answer. Is it still running?";
    }
  }

  download() {
    const href = URL.createObjectURL(new Blob([JSON.stringify(this.policy, null, 2)], { type: "application/json" }));
    Object.assign(document.createElement("a"), { href, download: `${this.dataset.name}-policy.json` }).click();
    URL.revokeObjectURL(href);
  }
}

class GateSlider extends HTMLElement {
  static observedAttributes = ["data-points", "data-recommended", "data-wrong", "data-check"];

  connectedCallback() {
    this.addEventListener("input", () => this.show());
    this.addEventListener("click", (event) => this.clicked(event));
    this.read();
  }

  attributeChangedCallback() {
    if (!this.points || this.waiting) return;
    this.waiting = true; // several attributes change together
    queueMicrotask(() => {
      this.waiting = false;
      this.read();
    });
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  // Place 0 acts on nothing; each further place is one threshold lower.
  read() {
    this.points = JSON.parse(this.dataset.points);
    this.range = this.querySelector("input");
    if (!this.range) return;
    const best = Number(this.dataset.recommended);
    this.recommended = this.dataset.recommended ? this.points.findIndex(([threshold]) => threshold === best) + 1 : 0;
    this.range.max = this.points.length;
    this.range.value = this.recommended;
    const mark = this.part("mark");
    mark.hidden = !this.recommended;
    mark.style.setProperty("--at", this.recommended / this.points.length);
    this.show();
  }

  get isMoved() {
    return this.range !== null && Number(this.range.value) !== this.recommended;
  }

  get threshold() {
    return this.range ? (this.points[this.range.value - 1]?.[0] ?? null) : undefined;
  }

  show() {
    const total = Number(this.dataset.count);
    const [threshold, acted, right, low, high] = this.points[this.range.value - 1] ?? [null, 0, 0, 0, 0];
    const wrong = acted - right;
    const say = (name, text) => {
      this.part(name).textContent = text;
    };
    say("coverage", percent(acted / total, 0));
    say("rows", `${count(acted)} of ${count(total)} rows`);
    say("accuracy", acted ? percent(right / acted) : "–");
    say("interval", acted ? `${(low * 100).toFixed(1)} to ${percent(high)}` : "nothing is acted on");
    say("errors", count(wrong));
    say("rate", wrong ? `1 in ${count(Math.round(total / wrong))} rows` : "of these rows");
    this.sayCost(total, acted, wrong);
    const at = threshold === null ? "Check everything" : `From a top probability of ${said(threshold)} on`;
    say("at", this.isMoved ? `${at}, on the rows at hand (optimistic).` : `${at}.`);
    this.part("back").hidden = !this.isMoved || !this.recommended;
    const below = { show: "judged", ...(threshold === null ? {} : { unsure: threshold }) };
    this.link("below", total - acted, below);
    this.link("review", total - acted, below, "/review");
    this.link("through", wrong, { sure: threshold ?? 1, show: "wrong" });
    const spoken = acted ? `${percent(acted / total, 0)} not checked, ${percent(right / acted)} of them right` : "";
    this.range.setAttribute("aria-valuetext", threshold === null ? at : `${said(threshold)}: ${spoken}`);
    this.dataset.moved = this.isMoved;
  }

  // To the place that acts on what is at least so sure.
  moveTo(threshold) {
    this.range.value = this.points.findLastIndex(([at]) => at >= threshold) + 1;
    this.show();
  }

  // Whether it is about any of the rows that a filter leads to.
  isAbout(query) {
    const { question, type, side } = this.dataset;
    const same = (given, own) => !given || own === undefined || given === own;
    const sided = side === "all" ? undefined : side;
    return (
      same(query.get("question"), question) && same(query.get("type"), type) && same(query.get("prediction"), sided)
    );
  }

  sayCost(total, acted, wrong) {
    if (!this.part("cost") || this.dataset.wrong === undefined) return;
    const { wrong: error, check } = this.dataset;
    const cost = (error * wrong + check * (total - acted)) / total;
    this.part("cost").textContent = cost.toFixed(2);
    this.part("saved").textContent = `checking all: ${Number(check).toFixed(2)}`;
  }

  // A link to so many rows; none to no row.
  link(name, rows, filter, to = "") {
    const { question, type, side } = this.dataset;
    const whose = question === undefined ? (type ? { type } : {}) : { question };
    const link = this.part(name);
    link.hidden = !rows;
    link.href = addressOf({ ...whose, ...(side === "all" ? {} : { prediction: side }), ...filter }, to);
    const counted = link.querySelector("b");
    if (counted) counted.textContent = count(rows);
  }

  clicked(event) {
    const { part } = event.target.closest("[data-part]")?.dataset ?? {};
    if (part === "back") {
      this.range.value = this.recommended;
      this.show();
      this.range.focus();
    } else if (part === "below" || part === "through") {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      showRows(new URL(this.part(part).href).searchParams);
    }
  }
}

// Rows that were narrowed at a threshold offer the gates that are about them to stand there.
document.addEventListener("click", (event) => {
  const { gate } = event.target.closest("button[data-gate]")?.dataset ?? {};
  if (gate === undefined) return;
  const query = new URLSearchParams(location.search);
  const able = [...document.querySelectorAll("gate-slider")].filter((slider) => slider.range);
  const meant = able.filter((slider) => slider.isAbout(query));
  for (const slider of meant.length ? meant : able) slider.moveTo(Number(gate));
  (meant[0] ?? able[0])?.range.focus();
});

customElements.define("gate-slider", GateSlider);
customElements.define("run-gates", RunGates);
