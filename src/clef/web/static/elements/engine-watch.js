// <engine-watch>: keeps the Engine page fresh while it is looked at, and does what its buttons say. A button names an
// address to post to and a body; what goes wrong is said beside it. Parts are morphed, so focus and places stay.

const LOOK_MS = 1000;
const QUIET_LOOKS = 10;

globalThis.htmx.config.morphIgnore.push("open"); // whether a twisty is open is the person's to say

class EngineWatch extends HTMLElement {
  connectedCallback() {
    this.looks = 0;
    this.state = this.status.dataset.state;
    this.addEventListener("click", (event) => this.clicked(event.target.closest("button[data-post]")));
    this.addEventListener("htmx:after:swap", () => this.swapped());
    this.addEventListener("htmx:error", () => this.away(true));
    this.comeBack = () => document.hidden || this.look();
    document.addEventListener("visibilitychange", this.comeBack);
    this.timer = setInterval(() => document.hidden || this.look(), LOOK_MS);
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    document.removeEventListener("visibilitychange", this.comeBack);
  }

  get status() {
    return this.querySelector("#engine-status");
  }

  get models() {
    return this.querySelector("#engine-models");
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  // What changes seldom is asked for seldom.
  look() {
    refresh(this.status);
    if (this.models.dataset.busy === "true" || ++this.looks % QUIET_LOOKS === 0) refresh(this.models);
  }

  swapped() {
    this.away(false);
    this.keepPlace();
    const { state, spoken } = this.status.dataset;
    if (state === this.state) return;
    this.state = state;
    this.part("spoken").textContent = spoken;
    refresh(this.models);
    this.querySelector("engine-log").renew();
  }

  // A button that was pressed and is gone leaves the focus to what it was part of.
  keepPlace() {
    if (!this.pressed || this.pressed.button.isConnected) return;
    const place = document.getElementById(this.pressed.place) ?? this.querySelector("#engine-heading");
    this.pressed = null;
    if (document.activeElement === document.body) place.focus({ preventScroll: true });
  }

  away(isAway) {
    this.part("away").hidden = !isAway;
  }

  async clicked(button) {
    if (!button || button.getAttribute("aria-disabled") === "true" || button.dataset.pending) return;
    if (button.dataset.remove && !(await this.mayRemove(button.dataset))) return;
    const acts = button.closest("[data-acts]");
    const beside = acts.querySelector('[data-part="trouble"]');
    this.pressed = { button, place: acts.id };
    button.dataset.pending = "true";
    beside.textContent = (await post(button.dataset.post, button.dataset.body)) ?? "";
    delete button.dataset.pending;
    refresh(this.status);
    refresh(this.models);
  }

  mayRemove({ remove, size }) {
    const dialog = this.querySelector("#engine-remove");
    this.part("remove-name").textContent = remove;
    this.part("remove-size").textContent = size;
    dialog.returnValue = "keep";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "remove"), { once: true });
    });
  }
}

function refresh(part) {
  if (!part.classList.contains("htmx-request")) part.dispatchEvent(new Event("refresh"));
}

// What went wrong, in words; null where nothing did.
async function post(address, body) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  try {
    const response = await fetch(address, { method: "POST", headers, body });
    if (response.ok) return null;
    const { error } = await response.json();
    return error.hint ? `${error.message}: ${error.hint}` : error.message;
  } catch {
    return "clef does not answer. Is it still running?";
  }
}

customElements.define("engine-watch", EngineWatch);
