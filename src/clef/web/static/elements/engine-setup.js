// <engine-setup>: what a llama.cpp of ours is to be run with. Its button asks for what was chosen differently, and can
// be pressed when something was; <engine-watch> does what the button says.

class EngineSetup extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", () => this.chosen());
  }

  chosen() {
    const changes = {};
    for (const select of this.querySelectorAll("select")) {
      if (select.value !== select.dataset.now) changes[select.name] = select.value;
    }
    if (changes.context) changes.context = Number(changes.context);
    const button = this.querySelector("button");
    button.dataset.body = JSON.stringify(changes);
    button.setAttribute("aria-disabled", String(Object.keys(changes).length === 0));
  }
}

customElements.define("engine-setup", EngineSetup);
