// <run-choice>: runs that are ticked to be compared, earliest first. The list may be shown anew meanwhile.

class RunChoice extends HTMLElement {
  connectedCallback() {
    this.chosen = new Map();
    this.button = this.querySelector("button");
    document.addEventListener("change", ({ target }) => target.matches("[data-choice]") && this.tick(target));
    document.addEventListener("htmx:after:swap", () => this.show());
    this.button.addEventListener("click", () => this.go());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.matches("input, textarea, select")) return;
      event.preventDefault();
      document.querySelector("[type=search]")?.select();
    });
    for (const box of document.querySelectorAll("[data-choice]:checked")) this.tick(box);
    this.show();
  }

  tick({ checked, value, dataset }) {
    if (checked) this.chosen.set(value, dataset.choice);
    else this.chosen.delete(value);
    this.show();
  }

  show() {
    const boxes = [...document.querySelectorAll("[data-choice]")];
    this.hidden = boxes.length < 2 && this.chosen.size < 2;
    for (const box of boxes) box.checked = this.chosen.has(box.value);
    const count = this.chosen.size;
    this.button.disabled = count < 2;
    this.button.textContent = count < 2 ? "Compare" : `Compare ${count} runs`;
    this.querySelector("[role=status]").textContent = ["Tick two runs to compare them.", "Tick one more."][count] ?? "";
  }

  go() {
    const inTime = [...this.chosen].sort(([, one], [, other]) => (one < other ? -1 : 1));
    const query = new URLSearchParams(inTime.map(([id]) => ["run", id]));
    location.assign(`/compare?${query}`);
  }
}

customElements.define("run-choice", RunChoice);
