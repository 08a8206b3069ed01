// <row-label>: a person says what is right for one row. The page shows the numbers anew, the row still open.

import { label as give, showWhole } from "./run-parts.js";

class RowLabel extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", (event) => event.target.value && this.say("PUT", event.target.value));
    this.addEventListener("submit", (event) => event.preventDefault());
    this.addEventListener("click", (event) => {
      const { do: what } = event.target.closest("button")?.dataset ?? {};
      if (what === "accept") this.say("PUT", this.querySelector("select").dataset.prediction);
      else if (what === "undo") this.say("DELETE");
    });
  }

  async say(method, label) {
    const trouble = await give(this.dataset.address, method, label);
    if (trouble) this.querySelector('[data-part="said"]').textContent = trouble;
    else showWhole();
  }
}

customElements.define("row-label", RowLabel);
