// <key-list>: what can be done with the keyboard, on `?` and on its button.

const TYPING = "input, textarea, select, [contenteditable]";

class KeyList extends HTMLElement {
  connectedCallback() {
    this.dialog = this.querySelector("dialog");
    this.querySelector("[data-do=keys]").addEventListener("click", () => this.dialog.showModal());
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && this.dialog.close());
    if (/Mac|iPhone|iPad/.test(navigator.platform)) {
      for (const key of document.querySelectorAll('[data-key="mod"]')) key.textContent = "⌘";
    }
    document.addEventListener("keydown", (event) => {
      if (event.key !== "?" || event.ctrlKey || event.metaKey || event.target.matches(TYPING)) return;
      event.preventDefault();
      if (!this.dialog.open) this.dialog.showModal();
    });
  }
}

customElements.define("key-list", KeyList);
