// <state-chat>: the messages of a chat as the state. `value` is the list that is sent, `[{role, content}]`.

const ROLES = ["user", "assistant", "system", "tool"];

class StateChat extends HTMLElement {
  connectedCallback() {
    this.list = this.querySelector("ol");
    this.addEventListener("click", (event) => {
      const action = event.target.closest("[data-chat]")?.dataset.chat;
      if (action === "add") this.addNext();
      else if (action === "remove") this.remove_(event.target.closest("li"));
    });
  }

  get value() {
    return [...this.list.children].map((item) => ({
      role: item.querySelector("select").value,
      content: item.querySelector("textarea").value,
    }));
  }

  set value(messages) {
    this.list.replaceChildren();
    for (const message of messages?.length ? messages : [{ role: "user", content: "" }]) this.add(message);
    this.number();
  }

  get isEmpty() {
    return this.value.every(({ content }) => !content.trim());
  }

  add({ role, content }) {
    const item = document.getElementById("message-template").content.firstElementChild.cloneNode(true);
    const select = item.querySelector("select");
    for (const name of new Set([...ROLES, role])) select.add(new Option(name, name));
    select.value = role;
    item.querySelector("textarea").value = content;
    this.list.append(item);
    return item;
  }

  addNext() {
    const last = this.value.at(-1)?.role;
    const item = this.add({ role: last === "user" ? "assistant" : "user", content: "" });
    this.number();
    item.querySelector("textarea").focus();
    this.changed();
  }

  remove_(item) {
    const beside = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.number();
    beside.querySelector("textarea").focus();
    this.changed();
  }

  number() {
    for (const [index, item] of [...this.list.children].entries()) {
      const here = `message ${index + 1}`;
      item.querySelector("select").setAttribute("aria-label", `Role of ${here}`);
      item.querySelector("textarea").setAttribute("aria-label", `Message ${index + 1}`);
      const button = item.querySelector("button");
      button.setAttribute("aria-label", `Remove ${here}`);
      button.disabled = this.list.children.length === 1;
    }
  }

  changed() {
    this.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

customElements.define("state-chat", StateChat);
