// <ask-form>: keeps the draft, sends it, marks answers that belong to an earlier draft, and shows each problem beside
// the field it is in. The draft is what /ask takes and what the browser remembers.

import { drag } from "./drag-order.js";
import { clearProblem, field, showProblem } from "./field-problems.js";

const KEY = "clef.draft";
const EMPTY = { state: "", as: "text", questions: [{ type: "choice", question: "" }] };
const SLOW_MS = 300;

class AskForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.state = this.querySelector("#state");
    this.chat = this.querySelector("state-chat");
    this.images = this.querySelector("state-images");
    this.request = this.querySelector("#request");
    this.checks = [
      [this.querySelector("#json-check"), this.state],
      [this.querySelector("#request-check"), this.request],
    ];
    this.notes = this.querySelector("#notes");
    this.questions = this.querySelector(".questions");
    this.undoLine = this.querySelector(".undo");
    this.stopButton = this.querySelector('[data-action="stop"]');
    this.answers = document.getElementById("answers");
    this.examples = JSON.parse(document.getElementById("example-drafts").textContent);
    this.nothing = [...this.answers.children];
    const { shown, ...draft } = remembered() ?? this.examples[0];
    try {
      this.draft = draft;
    } catch {
      this.draft = this.examples[0]; // remembered by another version of clef
    }
    this.images.restore();
    this.listen();
    this.takeLink();
    this.follow(shown);
  }

  listen() {
    this.addEventListener("input", () => this.edited());
    this.addEventListener("change", ({ target }) => {
      if (target.name === "as") this.changeAs();
      if (target.name === "view") this.changeView(target.value);
      if (target.dataset.part === "question-file") this.takeFile(target);
    });
    this.addEventListener("pointerdown", (event) => this.grabbed(event));
    document.addEventListener("drop", (event) => this.droppedFile(event), true);
    this.addEventListener("click", (event) => this.clicked(event));
    this.addEventListener("question-action", (event) => this.act(event.detail));
    this.answers.addEventListener("click", (event) => this.goToProblem(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("pagehide", () => this.remember());
    addEventListener("hashchange", () => this.takeLink());
    addEventListener("popstate", () => this.follow());
    document.addEventListener("ask-open", ({ detail }) => this.open(detail, { push: true }));
    this.form.addEventListener("htmx:before:request", (event) => this.send(event));
    this.form.addEventListener("htmx:after:swap", (event) => this.answered(event));
    this.form.addEventListener("htmx:finally:request", (event) => event.target === this.form && this.rest());
    this.form.addEventListener("htmx:error", (event) => this.unreachable(event));
  }

  get draft() {
    const how = this.form.elements.how.value;
    const images = this.images.value.length ? { images: this.images.value } : {};
    if (this.view === "json") return { json: this.request.value, how, ...images };
    const cards = [...this.questions.querySelectorAll("question-card")];
    const state = { state: this.state.value, as: this.as };
    if (this.as === "chat" || !this.chat.isEmpty) state.messages = this.chat.value;
    return { ...state, questions: cards.map((card) => card.value), how, ...images };
  }

  set draft(draft) {
    this.form.elements.how.value = draft.how ?? "together";
    const isJson = typeof draft.json === "string";
    this.showView(isJson ? "json" : "form");
    this.images.value = draft.images;
    if (isJson) this.request.value = draft.json;
    else {
      this.state.value = draft.state;
      this.chat.value = draft.messages;
      this.form.elements.as.value = draft.as;
      this.questions.replaceChildren();
      for (const question of draft.questions) this.add(question);
      this.number();
    }
    this.showAs();
    this.edited();
  }

  // The draft as a text to compare.
  get key() {
    return small(this.draft);
  }

  get view() {
    return this.form.elements.view.value;
  }

  showView(view) {
    this.form.elements.view.value = view;
    for (const part of ["#view-form", "#view-questions"]) this.querySelector(part).hidden = view === "json";
    this.querySelector("#view-json").hidden = view === "form";
  }

  // clef itself turns one view into the other, so that no number is bent by a script; what cannot be turned stays.
  async changeView(to) {
    const from = to === "json" ? "form" : "json";
    this.showView(from);
    const { how, images = [], ...draft } = this.draft;
    const body = from === "json" ? draft.json : JSON.stringify(draft);
    try {
      const response = await fetch(`/ask/view?to=${to}`, { method: "POST", body });
      if (!response.ok) return this.showProblems(await response.text());
      const turned = to === "json" ? { json: await response.text() } : await response.json();
      this.draft = { ...turned, how, images: [...images, ...(turned.images ?? [])] };
      this.form.querySelector(`[name=view][value=${to}]`).focus();
    } catch {
      this.unreachable({ target: this.form });
    }
  }

  showProblems(html) {
    this.answers.replaceChildren(document.createRange().createContextualFragment(html));
    this.asked = undefined;
    this.showEachProblem();
  }

  showEachProblem() {
    for (const found of this.querySelectorAll("[aria-invalid]")) clearProblem(found.closest("[data-field]"));
    if (this.view === "form") {
      for (const item of this.answers.querySelectorAll("[data-path]")) showProblem(this, item.dataset);
    }
    document.getElementById("answers-heading")?.focus();
  }

  // A request in the fragment of the address: it stays on this machine, and the form that was there can be had back.
  takeLink() {
    const packed = /^#ask=([\w-]+)$/.exec(location.hash)?.[1];
    if (!packed) return;
    history.replaceState(null, "", location.pathname);
    this.before = this.draft;
    try {
      const bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
      const draft = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
      if (!isDraft(draft)) throw new TypeError("no draft");
      this.draft = draft;
      this.offerUndo("The request of the link is in the form.");
    } catch {
      this.draft = this.before;
      this.offerUndo("The link holds no request.");
    }
  }

  // The address names the ask whose answers are shown. `edited` is the one that the draft of this tab was made from: a
  // draft that was changed since then stays, beside the answers to what it was.
  follow(edited = undefined) {
    const id = new URLSearchParams(location.search).get("ask");
    if (id === (this.shown ?? null)) return;
    if (id) this.open(id, { keepDraft: id === edited });
    else this.show(undefined, this.nothing);
  }

  async open(id, { push = false, keepDraft = false } = {}) {
    try {
      const response = await fetch(`/ask/kept/${encodeURIComponent(id)}`);
      if (response.status === 404) return this.offerUndo("This ask is not kept any more.", false);
      const { draft, answers } = await response.json();
      if (push) history.pushState({}, "", `/?ask=${id}`);
      const mine = this.draft;
      this.draft = draft;
      this.asked = this.key;
      this.show(id, document.createRange().createContextualFragment(answers).childNodes);
      if (keepDraft) this.draft = mine;
      else if (push) document.getElementById("answers-heading").focus();
      this.edited();
    } catch {
      this.unreachable({ target: this.form });
    }
  }

  show(id, nodes) {
    this.shown = id;
    if (!id) this.asked = undefined;
    this.answers.replaceChildren(...nodes);
    this.answers.classList.toggle("stale", this.asked !== undefined && this.asked !== this.key);
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
    else if (action === "save") this.withFiles((files) => files.save(this));
    else if (action === "stop") this.form.dispatchEvent(new Event("htmx:abort"));
  }

  load(example) {
    document.getElementById("examples").hidePopover();
    const title = this.querySelector(`[data-example="${example}"] b`).textContent;
    this.replace(example === "empty" ? EMPTY : this.examples[Number(example)], `“${title}” is in the form.`);
    this.state.focus();
  }

  // Another draft in place of this one, which can be had back.
  replace(draft, words) {
    this.before = this.draft;
    this.draft = draft;
    this.offerUndo(words);
  }

  // What few need is loaded when it is needed.
  async withFiles(act) {
    try {
      await act(await import("./question-file.js"));
    } catch {
      this.unreachable({ target: this.form });
    }
  }

  takeFile(input) {
    const [file] = input.files;
    input.value = "";
    if (file) this.withFiles((files) => files.open(this, file));
  }

  // A file of questions that is dropped is for the questions; any other is an image, or nothing that can be taken.
  droppedFile(event) {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length !== 1 || !/\.(ya?ml|json)$/i.test(files[0].name)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.images.over(event, false);
    this.withFiles(({ open }) => open(this, files[0]));
  }

  grabbed(event) {
    const item = event.button === 0 && event.target.closest(".grip")?.closest("li");
    if (!item || this.questions.children.length < 2) return;
    event.preventDefault();
    drag(item, event, () => {
      this.number();
      this.edited();
    });
  }

  offerUndo(words, canUndo = true) {
    this.undoLine.querySelector("span").textContent = words;
    this.undoLine.querySelector("button").hidden = !canUndo;
    this.undoLine.hidden = false;
  }

  undo() {
    this.draft = this.before;
    this.undoLine.hidden = true;
    this.state.focus();
  }

  act({ action, card, from }) {
    const item = card.closest("li");
    if (action === "remove") return this.remove_(item, card);
    let moved = card;
    if (action === "duplicate") moved = this.add(card.value, item);
    else if (action === "up") item.previousElementSibling?.before(item);
    else if (action === "down") item.nextElementSibling?.after(item);
    this.number();
    this.edited();
    const button = moved.querySelector(`[data-do="${action}"]`);
    if (from) from.focus();
    else if (action === "duplicate") moved.part("question").focus();
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

  // What was typed as one kind stays for when one comes back to it; an empty chat begins with it, and an empty text
  // with the chat.
  changeAs() {
    const text = this.state.value;
    if (this.as === "chat" && this.chat.isEmpty) this.chat.value = messagesIn(text);
    else if (this.as === "json" && !text.trim() && !this.chat.isEmpty) {
      this.state.value = JSON.stringify(this.chat.value, null, 2);
    }
    this.showAs();
  }

  showAs() {
    const typed = this.querySelector("[data-part=typed]");
    const isChat = this.as === "chat";
    typed.hidden = isChat;
    this.chat.hidden = !isChat;
    delete (isChat ? typed : this.chat).dataset.field;
    (isChat ? this.chat : typed).dataset.field = "state";
    this.state.classList.toggle("code", this.as === "json");
    this.state.spellcheck = this.as !== "json";
    this.checkJson();
  }

  edited() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.remember();
      this.checkJson();
      this.notes.dispatchEvent(new Event("note"));
    }, 250);
    const stale = this.asked !== undefined && this.asked !== this.key;
    this.answers.classList.toggle("stale", stale);
    clearProblem(document.activeElement?.closest?.("[data-field]"));
  }

  remember() {
    const text = small({ ...this.draft, shown: this.shown });
    for (const storage of ["sessionStorage", "localStorage"]) {
      try {
        window[storage].setItem(KEY, text);
      } catch {
        // Too large, or storage is off: the draft lasts as long as the page.
      }
    }
  }

  checkJson() {
    const wanted = this.view === "json" ? this.request : this.as === "json" ? this.state : null;
    for (const [check, area] of this.checks) {
      if (area !== wanted) check.replaceChildren();
      else if (area.value !== check.checked || !check.childElementCount) {
        check.checked = area.value;
        check.dispatchEvent(new Event("check"));
      }
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
    const checked = this.checks.find(([check]) => check === event.target)?.[1];
    if (event.target !== this.form && event.target !== this.notes && !checked) return;
    request.headers["Content-Type"] = checked ? "text/plain" : "application/json";
    if (checked) request.body = checked.value;
    else if (event.target === this.notes) request.body = JSON.stringify({ ...this.draft, images: undefined });
    else request.body = JSON.stringify(this.draft);
    if (event.target !== this.form) return;
    this.sent = this.key;
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
    if (event.target === this.notes) this.showAdvice();
    if (event.target !== this.form) return;
    this.asked = this.sent;
    this.answers.classList.toggle("stale", this.asked !== this.key);
    this.undoLine.hidden = true;
    this.showEachProblem();
    this.address();
  }

  // Answers that are kept have an address: a reload and Back show them again.
  address() {
    const heading = document.getElementById("answers-heading");
    if (heading?.closest(".problems")) return;
    const id = heading?.dataset.ask;
    if (id && id !== this.shown) history.pushState({}, "", `/?ask=${id}`);
    else if (!id && location.search) history.replaceState({}, "", "/");
    this.shown = id;
    this.remember();
  }

  // Each line of advice under its question; a question that is as it was keeps the line it has.
  showAdvice() {
    const cards = [...this.questions.querySelectorAll("question-card")];
    const lines = [...this.notes.querySelectorAll("[data-advice]")];
    for (const [index, card] of cards.entries()) {
      const here = lines.filter((line) => line.dataset.advice === String(index)).map((line) => line.textContent);
      card.advise(this.view === "form" ? here : []);
    }
  }

  unreachable(event) {
    if (event.target !== this.form) return;
    const box = document.createElement("div");
    box.className = "problems";
    box.setAttribute("role", "alert");
    box.textContent = "clef does not answer. Is it still running? Your form is as you left it.";
    this.answers.replaceChildren(box);
  }

  goToProblem(event) {
    const path = event.target.closest("[data-go]")?.closest("[data-path]")?.dataset.path;
    if (path) field(this, path)?.querySelector("textarea, input, button")?.focus();
  }
}

// A draft as text, without the bytes of its images.
function small(draft) {
  return JSON.stringify(draft, (name, value) => (name === "url" ? undefined : value));
}

// A text as the first message of a chat, or the messages that it is the JSON of.
function messagesIn(text) {
  try {
    const found = JSON.parse(text);
    const isChat = Array.isArray(found) && found.every(({ role, content }) => role?.trim && content?.trim);
    if (isChat) return found.map(({ role, content }) => ({ role, content }));
  } catch {
    // Text, then.
  }
  return [{ role: "user", content: text }];
}

function isDraft(draft) {
  return typeof draft?.json === "string" || (typeof draft?.state === "string" && Array.isArray(draft.questions));
}

// The draft of this tab; in a new tab, the one that was last worked on.
function remembered() {
  try {
    const draft = JSON.parse(sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY));
    return isDraft(draft) ? draft : null;
  } catch {
    return null;
  }
}

customElements.define("ask-form", AskForm);
