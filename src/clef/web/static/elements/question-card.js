// <question-card>: one question of the Ask form. `value` is its part of the draft; all three types keep their own
// fields, so that changing the type and back loses nothing.

const FIRST = { choice: ["", ""], score: ["", "", ""] };
const LIST = { choice: "answers", score: "levels" };
const NAMES = { choice: "Option", score: "Level" };

class QuestionCard extends HTMLElement {
  connectedCallback() {
    if (this.started) return;
    this.started = true;
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("keydown", (event) => this.pressed(event));
    this.part("type").addEventListener("change", () => this.showType());
    this.part("question").addEventListener("input", () => grow(this.part("question")));
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  list(type = this.type) {
    return this.querySelector(`[data-field="${LIST[type]}"]`);
  }

  get type() {
    return this.part("type").value;
  }

  get value() {
    const value = { ...this.told, type: this.type, question: this.part("question").value };
    if (this.type === "noul") {
      for (const side of ["true", "false"]) {
        const text = this.part(side).value;
        if (text.trim()) value[side] = text;
      }
      return value;
    }
    const items = [...this.list().children].map((item) => [named(item, "name"), named(item, "description")]);
    while (items.length && !items.at(-1)[0].trim() && !items.at(-1)[1].trim()) items.pop();
    value[LIST[this.type]] = items.map(([name, description]) => {
      if (this.type === "score") return name;
      return description.trim() ? { answer: name, description } : name;
    });
    return value;
  }

  set value(value) {
    this.told = value.id ? { id: value.id } : {}; // what a file calls it
    this.part("type").value = value.type ?? "choice";
    this.part("question").value = value.question ?? "";
    this.part("true").value = value.true ?? "";
    this.part("false").value = value.false ?? "";
    this.querySelector(".meanings").open = Boolean(value.true || value.false);
    for (const type of Object.keys(LIST)) {
      const items = value[LIST[type]];
      this.list(type).replaceChildren();
      for (const item of items?.length ? items : FIRST[type]) this.addItem(type, item);
    }
    this.showType();
    grow(this.part("question"));
  }

  addItem(type, item = "") {
    const row = document.getElementById("option-template").content.firstElementChild.cloneNode(true);
    const { answer, description } = typeof item === "object" ? item : { answer: item, description: "" };
    row.querySelector('[data-part="name"]').value = answer ?? "";
    const described = row.querySelector('[data-part="description"]');
    described.value = description ?? "";
    described.hidden = !description;
    const twisty = row.querySelector('[data-do="describe"]');
    twisty.setAttribute("aria-expanded", String(!described.hidden));
    twisty.hidden = type === "score";
    this.list(type).append(row);
    return row;
  }

  showType() {
    const { type } = this;
    this.list("choice").hidden = type !== "choice";
    this.list("score").hidden = type !== "score";
    this.querySelector(".meanings").hidden = type !== "noul";
    const add = this.querySelector('[data-do="add"]');
    add.hidden = type === "noul";
    add.querySelector("span").textContent = type === "score" ? "level" : "option";
    this.number(this.position, this.total);
  }

  // Names every control after its place, and switches off what is not possible there.
  number(position, total) {
    this.position = position;
    this.total = total;
    const here = `question ${position}`;
    this.querySelector(".number").textContent = position;
    this.part("type").setAttribute("aria-label", `Type of ${here}`);
    this.part("question").setAttribute("aria-label", `Question ${position}`);
    const tools = { up: "Move up", down: "Move down", duplicate: "Duplicate", remove: "Remove" };
    for (const [action, words] of Object.entries(tools)) {
      const button = this.querySelector(`[data-do="${action}"]`);
      button.setAttribute("aria-label", `${words}: ${here}`);
      button.title = words;
    }
    this.querySelector('[data-do="up"]').disabled = position === 1;
    this.querySelector('[data-do="down"]').disabled = position === total;
    for (const type of Object.keys(LIST)) this.numberItems(type, here);
  }

  numberItems(type, here) {
    const items = [...this.list(type).children];
    const least = type === "score" ? Number(this.dataset.minLevels) : 1;
    const most = Number(type === "score" ? this.dataset.maxLevels : this.dataset.maxOptions);
    items.forEach((item, index) => {
      const name = `${NAMES[type]} ${type === "score" ? index : index + 1}`;
      item.dataset.field = `${LIST[type]}[${index}]`;
      const field = item.querySelector('[data-part="name"]');
      field.setAttribute("aria-label", `${name} of ${here}`);
      field.placeholder = name;
      item.querySelector('[data-part="description"]').setAttribute("aria-label", `${name} of ${here}: what it means`);
      item
        .querySelector('[data-do="describe"]')
        .setAttribute("aria-label", `Describe ${name.toLowerCase()} of ${here}`);
      item.querySelector('[data-do="describe"]').title = "Describe";
      const drop = item.querySelector('[data-do="drop"]');
      drop.setAttribute("aria-label", `Remove ${name.toLowerCase()} of ${here}`);
      drop.title = "Remove";
      drop.disabled = items.length <= least;
    });
    if (type === this.type) this.querySelector('[data-do="add"]').disabled = items.length >= most;
  }

  clicked(event) {
    const button = event.target.closest("[data-do]");
    if (!button) return;
    const action = button.dataset.do;
    const row = button.closest("li[data-field]");
    if (action === "add") this.addAfter(null);
    else if (action === "describe") this.describe(row, button);
    else if (action === "drop") this.dropItem(row);
    else this.tell(action);
  }

  // `from` is where the focus shall stay, where that is not the button of the action.
  tell(action, from = null) {
    this.dispatchEvent(new CustomEvent("question-action", { bubbles: true, detail: { action, card: this, from } }));
  }

  describe(row, button) {
    const field = row.querySelector('[data-part="description"]');
    field.hidden = !field.hidden;
    button.setAttribute("aria-expanded", String(!field.hidden));
    if (!field.hidden) field.focus();
  }

  dropItem(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    next?.querySelector("input").focus();
    this.changed();
  }

  addAfter(row) {
    const { type } = this;
    if (this.querySelector('[data-do="add"]').disabled) return;
    const added = this.addItem(type);
    if (row) row.after(added);
    added.querySelector("input").focus();
    this.changed();
  }

  // Enter goes to the next option, and makes one after the last; it never sends the form by accident.
  // Alt with an arrow moves the question.
  pressed(event) {
    const move = event.altKey && { ArrowUp: "up", ArrowDown: "down" }[event.key];
    if (move) {
      event.preventDefault();
      const button = this.querySelector(`[data-do="${move}"]`);
      if (!button.disabled) this.tell(move, event.target);
      return;
    }
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) return;
    if (!event.target.matches("input, textarea")) return;
    event.preventDefault();
    const row = event.target.closest(".options li");
    if (!row) {
      this.list()?.querySelector("input")?.focus();
      return;
    }
    const next = row.nextElementSibling;
    if (next) next.querySelector("input").focus();
    else if (event.target.value.trim()) this.addAfter(row);
  }

  // What could be said better: small lines at the end of the card.
  advise(lines) {
    const box = this.querySelector(".advice");
    if (lines.join("\n") === [...box.children].map((line) => line.textContent).join("\n")) return;
    box.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  }

  changed() {
    this.number(this.position, this.total);
    this.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

function named(item, part) {
  return item.querySelector(`[data-part="${part}"]`).value;
}

// A textarea as high as its text, for browsers whose style sheets cannot say so. Heights are set through the style
// object, which the content policy allows.
function grow(area) {
  if (CSS.supports("field-sizing", "content")) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

customElements.define("question-card", QuestionCard);
