// <run-actions>: buttons that do something to a run. A button names a method, an address, and what comes then:
// "refresh" shows the page anew, "stay" leaves that to whoever watches the run, an address goes there.

class RunActions extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("submit", (event) => this.submitted(event));
    this.addEventListener(
      "keydown",
      (event) => event.key === "Escape" && this.part("rename")?.contains(event.target) && this.rename(false),
    );
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  clicked(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.method) this.act(button, button.dataset.method, button.dataset.address, button.dataset.then);
    else if (button.dataset.do === "rename") this.rename(true);
    else if (button.dataset.do === "keep") this.rename(false);
  }

  async act(button, method, address, then) {
    button.disabled = true;
    const trouble = await send(method, address);
    button.disabled = false;
    if (trouble) this.complain(trouble);
    else if (then === "refresh") this.refresh();
    else if (then !== "stay") location.assign(then);
  }

  refresh() {
    document.getElementById("whole").dispatchEvent(new Event("refresh"));
  }

  complain(trouble) {
    this.part("trouble").textContent = trouble;
    this.part("trouble").hidden = false;
  }

  rename(open) {
    this.part("rename").hidden = !open;
    if (open) this.querySelector("#run-name").select();
    else this.querySelector('[data-do="rename"]').focus();
  }

  async submitted(event) {
    const form = event.target.closest('[data-part="rename"]');
    if (!form) return;
    event.preventDefault();
    const name = this.querySelector("#run-name").value.trim();
    if (!name) return;
    const trouble = await send("PATCH", `${form.dataset.address}?${new URLSearchParams({ name })}`);
    if (trouble) {
      this.complain(trouble);
      return;
    }
    this.part("name").textContent = name;
    document.title = `${name} · clef`;
    this.rename(false);
  }
}

// What went wrong, in words; null where nothing did.
async function send(method, address) {
  try {
    const response = await fetch(address, { method });
    if (response.ok) return null;
    const { error } = await response.json();
    return error.hint ? `${error.message}: ${error.hint}` : error.message;
  } catch {
    return "clef does not answer. Is it still running?";
  }
}

customElements.define("run-actions", RunActions);
