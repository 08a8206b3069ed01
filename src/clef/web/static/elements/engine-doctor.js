// <engine-doctor>: has the machine examined when asked to, which takes some seconds, and shows the findings.

class EngineDoctor extends HTMLElement {
  connectedCallback() {
    this.button = this.querySelector('[data-do="examine"]');
    this.said = this.querySelector('[data-part="said"]');
    this.findings = this.querySelector('[data-part="findings"]');
    this.button.addEventListener("click", () => this.examine());
  }

  async examine() {
    if (this.button.getAttribute("aria-disabled") === "true") return;
    this.button.setAttribute("aria-disabled", "true");
    this.said.textContent = "Examining; this takes some seconds…";
    try {
      const response = await fetch("/engine/doctor");
      if (response.ok) this.show(await response.text());
      else this.said.textContent = "The machine could not be examined; clef's own output says why.";
    } catch {
      this.said.textContent = "clef does not answer. Is it still running?";
    }
    this.button.removeAttribute("aria-disabled");
  }

  show(html) {
    this.findings.replaceChildren(document.createRange().createContextualFragment(html));
    this.said.textContent = this.findings.querySelector("[data-summary]").dataset.summary;
    this.button.textContent = "Examine again";
  }
}

customElements.define("engine-doctor", EngineDoctor);
