// <engine-standing>: the engine's dot and words, which htmx keeps fresh; says so when clef itself does not answer.

class EngineStanding extends HTMLElement {
  connectedCallback() {
    this.addEventListener("htmx:error", () => {
      const link = this.querySelector("#standing");
      link.dataset.phase = "failed";
      link.querySelector(".standing-words").textContent = "clef does not answer";
      link.querySelector(".standing-rest")?.remove();
    });
  }
}

customElements.define("engine-standing", EngineStanding);
