// <ask-form>: keeps the draft, sends it, marks answers that belong to an earlier draft, and shows each problem beside
// the field it is in. The draft is what /ask takes and what the browser remembers.

const KEY = "clef.draft";
const EMPTY = { state: "", as: "text", questions: [{ type: "choice", question: "" }] };
const SLOW_MS = 300;

class AskForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.state = this.querySelector("#state");
    this.check = this.querySelector("#json-check");
    this.questions = this.querySelector(".questions");
    this.undoLine = this.querySelector(".undo");
    this.stopButton = this.querySelector('[data-action="stop"]');
    this.answers = document.getElementById("answers");
    this.examples = JSON.parse(document.getElementById("example-drafts").textContent);
    try {
      this.draft = remembered() ?? this.examples[0];
    } catch {
      this.draft = this.examples[0]; // remembered by another version of clef
    }
    this.listen();
  }

  listen() {
    this.addEventListener("input", () => this.edited());
    this.addEventListener("change", (event) => event.target.name === "as" && this.showAs());
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("question-action", (event) => this.act(event.detail));
    this.answers.addEventListener("click", (event) => this.goToProblem(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("pagehide", () => this.remember());
    this.form.addEventListener("htmx:before:request", (event) => this.send(event));
    this.form.addEventListener("htmx:after:swap", (event) => this.answered(event));
    this.form.addEventListener("htmx:finally:request", () => this.rest());
    this.form.addEventListener("htmx:error", (event) => this.unreachable(event));
    const mac = /Mac|iPhone|iPad/.test(navigator.platform);
    if (mac) this.querySelector('[data-key="mod"]').textContent = "⌘";
  }

  get draft() {
    const cards = [...this.questions.querySelectorAll("question-card")];
    return { state: this.state.value, as: this.as, questions: cards.map((card) => card.value) };
  }

  set draft(draft) {
    this.state.value = draft.state;
    this.form.elements.as.value = draft.as;
    this.questions.replaceChildren();
    for (const question of draft.questions) this.add(question);
    this.number();
    this.showAs();
    this.edited();
  }

  get as() {
    return this.form.elements.as.value;
  }

  add(question, after = null) {
    const item = document.getElementById("question-template").content.firstElementChild.cloneNode(true);
    if (after) after.after(item);
    else this.questions.append(item);
    const card = item.querySelector("question-card");
    card.value = question;
    return card;
  }

  number() {
    const cards = [...this.questions.querySelectorAll("question-card")];
    for (const [index, card] of cards.entries()) {
      card.number(index + 1, cards.length);
      card.dataset.field = `questions[${index}]`;
    }
  }

  clicked(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const { add, example, action } = button.dataset;
    if (add) {
      const card = this.add({ type: add, question: "" });
      this.number();
      this.edited();
      card.part("question").focus();
    } else if (example) this.load(example);
    else if (action === "undo") this.undo();
    else if (action === "stop") this.form.dispatchEvent(new Event("htmx:abort"));
  }

  load(example) {
    this.before = this.draft;
    this.draft = example === "empty" ? EMPTY : this.examples[Number(example)];
    document.getElementById("examples").hidePopover();
    const title = this.querySelector(`[data-example="${example}"] b`).textContent;
    this.offerUndo(`“${title}” is in the form.`);
    this.state.focus();
  }

  offerUndo(words) {
    this.undoLine.querySelector("span").textContent = words;
    this.undoLine.hidden = false;
  }

  undo() {
    this.draft = this.before;
    this.undoLine.hidden = true;
    this.state.focus();
  }

  act({ action, card }) {
    const item = card.closest("li");
    if (action === "remove") return this.remove_(item, card);
    let moved = card;
    if (action === "duplicate") moved = this.add(card.value, item);
    else if (action === "up") item.previousElementSibling?.before(item);
    else if (action === "down") item.nextElementSibling?.after(item);
    this.number();
    this.edited();
    const button = moved.querySelector(`[data-do="${action}"]`);
    if (action === "duplicate") moved.part("question").focus();
    else (button.disabled ? moved.part("question") : button).focus();
  }

  remove_(item, card) {
    this.before = this.draft;
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.number();
    this.edited();
    this.offerUndo(`Question ${card.position} is removed.`);
    (next?.querySelector("textarea") ?? this.querySelector("[data-add]")).focus();
  }

  showAs() {
    this.state.classList.toggle("code", this.as === "json");
    this.state.spellcheck = this.as !== "json";
    this.checkState();
  }

  edited() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.remember();
      this.checkState();
    }, 250);
    const stale = this.asked !== undefined && this.asked !== JSON.stringify(this.draft);
    this.answers.classList.toggle("stale", stale);
    clearProblem(document.activeElement?.closest?.("[data-field]"));
  }

  remember() {
    try {
      localStorage.setItem(KEY, JSON.stringify(this.draft));
    } catch {
      // Too large, or storage is off: the draft lasts as long as the page.
    }
  }

  checkState() {
    if (this.as !== "json") this.check.replaceChildren();
    else if (this.state.value !== this.checked || !this.check.childElementCount) {
      this.checked = this.state.value;
      this.check.dispatchEvent(new Event("check"));
    }
  }

  pressed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  send(event) {
    const { request } = event.detail.ctx;
    const checking = event.target === this.check;
    if (event.target !== this.form && !checking) return;
    request.headers["Content-Type"] = checking ? "text/plain" : "application/json";
    request.body = checking ? this.state.value : JSON.stringify(this.draft);
    if (checking) return;
    this.sent = request.body;
    this.form.setAttribute("aria-busy", "true");
    this.slow = setTimeout(() => {
      this.stopButton.hidden = false;
    }, SLOW_MS);
  }

  rest() {
    clearTimeout(this.slow);
    this.form.removeAttribute("aria-busy");
    this.stopButton.hidden = true;
  }

  answered(event) {
    if (event.target !== this.form) return;
    this.asked = this.sent;
    this.answers.classList.toggle("stale", this.asked !== JSON.stringify(this.draft));
    for (const field of this.querySelectorAll("[aria-invalid]")) clearProblem(field.closest("[data-field]"));
    for (const item of this.answers.querySelectorAll("[data-path]")) this.showProblem(item.dataset);
    this.undoLine.hidden = true;
    document.getElementById("answers-heading")?.focus();
  }

  unreachable(event) {
    if (event.target !== this.form) return;
    const box = document.createElement("div");
    box.className = "problems";
    box.setAttribute("role", "alert");
    box.textContent = "clef does not answer. Is it still running? Your form is as you left it.";
    this.answers.replaceChildren(box);
  }

  // The element a path such as questions[0].answers[1] leads to; the nearest one above it where there is none.
  field(path) {
    const [first, ...rest] = path.split(".");
    const within = this.querySelector(`[data-field="${CSS.escape(first)}"]`);
    for (let parts = rest; parts.length; parts = parts.slice(0, -1)) {
      for (const name of [parts.join("."), parts[0].replace(/\[\d+\]$/, "")]) {
        const found = within?.querySelector(`[data-field="${CSS.escape(name)}"]`);
        if (found && !found.hidden) return found;
      }
    }
    return within;
  }

  showProblem({ path, message }) {
    const field = this.field(path);
    const control = field?.querySelector("textarea, input");
    if (!control) return;
    const words = document.createElement("p");
    words.className = "field-problem";
    words.id = `problem-${path.replace(/\W+/g, "-")}`;
    words.textContent = message[0].toUpperCase() + message.slice(1);
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", words.id);
    if (path === "state" && this.check.childElementCount) return;
    if (field.matches("ol")) field.after(words);
    else field.append(words);
  }

  goToProblem(event) {
    const path = event.target.closest("[data-go]")?.closest("[data-path]")?.dataset.path;
    if (path) this.field(path)?.querySelector("textarea, input, button")?.focus();
  }
}

function clearProblem(field) {
  if (!field) return;
  const control = field.querySelector("[aria-invalid]");
  if (!control || field.matches("question-card, .questions")) return;
  const words = document.getElementById(control.getAttribute("aria-describedby"));
  if (words?.matches(".field-problem")) words.remove();
  control.removeAttribute("aria-invalid");
  if (control.id === "state") control.setAttribute("aria-describedby", "json-check");
  else control.removeAttribute("aria-describedby");
}

function remembered() {
  try {
    const draft = JSON.parse(localStorage.getItem(KEY));
    return typeof draft?.state === "string" && Array.isArray(draft.questions) ? draft : null;
  } catch {
    return null;
  }
}

customElements.define("ask-form", AskForm);
