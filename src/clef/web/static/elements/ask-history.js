// <ask-history>: what was asked before, in a drawer at the side. clef keeps it, so every tab and browser sees the same;
// the list is fetched at each opening. What is chosen is told as `ask-open` with its id.

class AskHistory extends HTMLElement {
  connectedCallback() {
    this.dialog = this.querySelector("dialog");
    this.form = this.querySelector("form");
    this.list = this.querySelector("#kept");
    this.opener = document.querySelector("[data-do=history]");
    this.opener.addEventListener("click", () => this.open());
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("change", ({ target }) => target.dataset.part === "keep" && this.keep(target));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.addEventListener("htmx:error", () => this.away());
  }

  open() {
    this.dialog.showModal();
    this.form.elements.search.focus();
    this.refresh();
  }

  refresh() {
    this.form.dispatchEvent(new Event("refresh"));
  }

  clicked(event) {
    const button = event.target.closest("button");
    if (!button) {
      if (event.target === this.dialog) this.dialog.close();
      return;
    }
    const { open, forget, do: action } = button.dataset;
    if (action === "close") this.dialog.close();
    else if (open) {
      this.dialog.close();
      this.dispatchEvent(new CustomEvent("ask-open", { bubbles: true, detail: open }));
    } else if (forget) this.forget(button, forget);
    else if (action === "forget-all") this.confirm(button);
  }

  async forget(button, id) {
    const item = button.closest("li");
    const beside = item.nextElementSibling ?? item.previousElementSibling;
    if (!(await this.send("DELETE", `/api/asks/${id}`))) return;
    (beside?.querySelector("[data-forget]") ?? this.form.elements.search).focus();
    item.remove();
    this.refresh();
  }

  // All of it is asked for twice, in the same place.
  async confirm(button) {
    if (!button.dataset.sure) {
      button.dataset.sure = "yes";
      button.textContent = `Delete ${button.dataset.count} for good?`;
      return;
    }
    if (!(await this.send("DELETE", "/api/asks"))) return;
    this.form.elements.search.value = "";
    this.form.elements.search.focus();
    this.refresh();
  }

  async keep(box) {
    if (await this.send("PATCH", `/api/asks?keep=${box.checked}`)) this.refresh();
    else box.checked = !box.checked;
  }

  async send(method, address) {
    try {
      const { ok, status } = await fetch(address, { method });
      return ok || status === 404; // another tab was quicker
    } catch {
      this.away();
      return false;
    }
  }

  away() {
    const words = document.createElement("p");
    words.className = "problems";
    words.setAttribute("role", "alert");
    words.textContent = "clef does not answer. Is it still running?";
    this.list.replaceChildren(words);
  }
}

customElements.define("ask-history", AskHistory);
