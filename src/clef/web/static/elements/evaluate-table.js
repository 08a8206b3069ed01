// <evaluate-table>: takes a table by drop, choice or paste, shows how clef reads it and what a run would ask, and makes
// the run. The file goes to clef as its bytes: nothing here decodes it. What was given stays until something else is.

import { capital, counted, duration, figure, previewTable, said, size } from "./evaluate-words.js";
import { forget, keep, kept } from "./kept-files.js";

const KEY = "clef.paste";
const TAB = "clef.evaluate";
const FIELDS = ["run-name", "rows", "seed"];
const SHOWN = 5;

class EvaluateTable extends HTMLElement {
  connectedCallback() {
    this.problems = this.querySelector("problem-list");
    this.reading = this.querySelector("table-reading");
    this.runButton = this.querySelector('[data-do="run"]');
    this.goodButton = this.querySelector('[data-do="run-good"]');
    this.file = this.querySelector("#file");
    this.questionFile = this.querySelector("#question-file");
    this.pasted = this.querySelector("#pasted");
    this.pasted.value = remembered(localStorage, KEY, "");
    this.listen();
    this.restore();
  }

  // The table and the settings of this tab come back after a reload, and when Back leads here from a run.
  async restore() {
    const { id, choices, settings } = remembered(sessionStorage, TAB, {});
    this.id = id ?? Math.random().toString(36).slice(2);
    for (const name of FIELDS) this.querySelector(`#${name}`).value = settings?.[name] ?? this.field(name);
    if (settings) {
      this.querySelector("#cache").checked = settings.cache;
      this.querySelector(`[name=shape][value=${settings.shape}]`).checked = true;
    }
    const [file, questions] = id ? await Promise.all([kept(`table.${id}`), kept(`questions.${id}`)]) : [];
    if (!file || this.table) return;
    this.ask(questions);
    this.take(file, choices);
  }

  save() {
    const settings = { shape: this.shape, cache: this.querySelector("#cache").checked };
    for (const name of FIELDS) settings[name] = this.field(name);
    remember(sessionStorage, TAB, { id: this.id, choices: this.table && this.reading.said, settings });
  }

  field(name) {
    return this.querySelector(`#${name}`).value;
  }

  listen() {
    this.addEventListener("click", (event) => this.clicked(event));
    this.file.addEventListener("change", () => this.file.files.length && this.take(this.file.files[0]));
    this.questionFile.addEventListener("change", () => {
      const [file] = this.questionFile.files;
      if (!file) return;
      keep(`questions.${this.id}`, file);
      this.ask(file);
      this.read();
    });
    this.pasted.addEventListener("input", () => remember(localStorage, KEY, this.pasted.value));
    this.addEventListener("input", (event) => event.target.closest(".settings") && this.save());
    this.addEventListener("change", (event) => event.target.matches("[name=shape], #rows, #seed") && this.plan());
    this.reading.addEventListener("reading-change", () => {
      this.save();
      this.read();
    });
    document.addEventListener("paste", (event) => this.offered(event));
    const drop = this.part("drop");
    for (const name of ["dragenter", "dragover"]) {
      document.addEventListener(name, (event) => {
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.dropped(event.dataTransfer);
    });
  }

  // One file is a table; anything else is answered in words, and what was there before stays.
  dropped({ files, items }) {
    if (this.sending) return;
    const isFolder = [...items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
    if (isFolder) this.decline("That is a folder. Drop the table in it.");
    else if (files.length > 1) this.decline(`${files.length} files were given. A run has one table: drop one of them.`);
    else if (files.length) this.take(files[0]);
    else this.decline("That is no file. Drop a table, or paste its rows.");
  }

  decline(words) {
    this.part("declined").textContent = words;
    this.part("declined").hidden = false;
  }

  // Rows or a file from the clipboard, wherever the cursor is but in a field.
  offered(event) {
    if (event.target.closest?.("input, textarea")) return;
    const { clipboardData } = event;
    if (clipboardData.files.length) return this.dropped(clipboardData);
    const text = clipboardData.getData("text");
    if (!text.includes("\n")) return;
    this.pasted.value = text;
    remember(localStorage, KEY, text);
    this.usePaste();
  }

  usePaste() {
    this.take(new File([this.pasted.value], "pasted.csv", { type: "text/csv" }));
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  async clicked(event) {
    const action = event.target.closest("[data-do]")?.dataset.do;
    if (action === "paste") this.togglePaste(event.target.closest("button"));
    else if (action === "use-paste") this.usePaste();
    else if (action === "put-away") this.putAway();
    else if (action === "unask") {
      this.ask();
      this.questionFile.focus();
      this.read();
    } else if (action === "sample") {
      const response = await fetch(this.dataset.sample);
      this.take(new File([await response.blob()], "sample.csv", { type: "text/csv" }));
    } else if (action === "run") this.run();
    else if (action === "run-good") this.run({ bad_rows: "skip" });
  }

  togglePaste(button) {
    const box = this.querySelector("#paste");
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", String(!box.hidden));
    if (!box.hidden) this.pasted.focus();
  }

  // The question file that goes with the table; none where none is given.
  ask(file = undefined) {
    this.questions = file;
    this.questionFile.value = "";
    if (!file) forget(`questions.${this.id}`);
    this.part("asked").textContent = file ? file.name : "YAML or JSON, where the table holds labels only";
    this.querySelector('[data-do="unask"]').hidden = !file;
  }

  putAway() {
    this.planning?.abort();
    this.current = undefined;
    this.table = undefined;
    this.file.value = "";
    forget(`table.${this.id}`);
    this.ask();
    this.reading.forget();
    this.problems.clear();
    this.part("chosen").hidden = true;
    this.goodButton.hidden = true;
    this.ready(false, "Choose a table first.");
    this.save();
    this.file.focus();
  }

  async take(file, choices = undefined) {
    this.table = file;
    this.part("declined").hidden = true;
    this.reading.forget(choices);
    if (!choices) keep(`table.${this.id}`, file);
    this.save();
    this.part("reading").hidden = true;
    this.part("reading").open = false;
    this.part("chosen").hidden = false;
    this.part("name").textContent = file.name;
    this.part("preview").hidden = true;
    const most = Number(this.dataset.maxBody);
    if (file.size <= most) return this.read();
    this.problems.clear();
    this.part("facts").textContent = size(file.size);
    const message = `${size(file.size)} is more than the ${size(most)} that one request may have`;
    this.refuse({ message, hint: "Raise CLEF_MAX_BODY, or give fewer rows.", fault: "input" });
  }

  // As clef reads the table now, with what the person has said about it.
  async read() {
    const { table } = this;
    const reading = Symbol("one reading");
    this.current = reading;
    this.goodButton.hidden = true;
    this.ready(false, "");
    this.part("facts").textContent = `${size(table.size)} · reading…`;
    const { preview, error } = await this.look();
    if (this.current !== reading) return;
    this.problems.clear();
    this.part("facts").textContent = size(table.size);
    if (error) this.refuse(error);
    else this.show(preview);
  }

  async look() {
    try {
      const response = await this.send(this.address("/api/tables/preview"));
      const answer = await response.json();
      return response.ok ? { preview: answer } : { error: answer.error };
    } catch {
      return { error: { message: "clef does not answer", hint: "is it still running? Your table is still chosen." } };
    }
  }

  address(path, query = {}) {
    const given = [["name", this.table.name], ...Object.entries(query), ...this.reading.choices];
    return `${path}?${new URLSearchParams(given)}`;
  }

  get shape() {
    return this.querySelector("[name=shape]:checked").value;
  }

  show({ facts, examples, problems, warnings }) {
    this.part("facts").textContent = [size(this.table.size), ...said(facts)].join(" · ");
    this.part("preview").replaceChildren(previewTable(examples.slice(0, SHOWN)));
    this.part("preview").hidden = !examples.length;
    this.part("reading").hidden = !this.reading.show(facts);
    if (problems.some(({ code }) => code === "missing_column")) this.part("reading").open = true;
    const rows = facts.examples;
    this.skips = problems.length > 0;
    if (problems.length) {
      const heading = this.problems.show(`${counted(problems.length, "problem")} in this table`, problems);
      if (!this.reading.last) heading.focus();
      this.goodButton.hidden = !rows;
      this.goodButton.textContent = `Run the ${counted(rows, "good row")}`;
    }
    if (warnings.length) this.problems.show(`${counted(warnings.length, "thing")} to know`, warnings, "warning");
    this.ready(!problems.length && rows > 0, this.notReady(problems, rows));
    if (rows) this.plan();
  }

  notReady(problems, rows) {
    const missing = problems.filter(({ code }) => code === "missing_column");
    if (missing.some(({ column }) => column !== "question")) return "Say above which column is which.";
    if (missing.length) return "Write above what is asked of every row.";
    if (problems.length) return "Mend the table and give it again.";
    return rows ? "" : "There is no row to ask.";
  }

  // What a run would send, told beside the button once it is known; nobody has to wait for it.
  async plan() {
    this.planning?.abort();
    const { table } = this;
    if (!table) return;
    this.planning = new AbortController();
    this.problems.clear("plan");
    const address = this.address("/api/runs/plan", { shape: this.shape, bad_rows: "skip", ...this.draw });
    try {
      const response = await this.send(address, this.planning.signal);
      if (response.ok && this.table === table) this.planned(await response.json());
    } catch {
      // Given up for another plan, or clef is gone, which the next press of a button tells.
    }
  }

  // How many rows to draw, and with which seed; nothing for all of them.
  get draw() {
    const rows = Number.parseInt(this.field("rows"), 10);
    return rows > 0 ? { rows, seed: Number.parseInt(this.field("seed"), 10) || 0 } : {};
  }

  planned({ rows, requests, too_long, max_tokens, seconds }) {
    const words = [`${counted(rows, "row")}, ${counted(requests, "request")}`];
    if (seconds !== null) words.push(duration(seconds));
    if (max_tokens && !too_long.length) words.push(`all within ${figure(max_tokens)} tokens`);
    if (!this.skips) this.part("ready").textContent = words.join(" · ");
    if (!too_long.length) return;
    const problems = too_long.map(({ row, tokens, limit }) => ({
      row,
      message: `too long: ${figure(tokens)} of ${figure(limit)} tokens`,
    }));
    const title = `${counted(too_long.length, "row")} too long for this model: not asked, and counted as failed`;
    this.problems.show(title, problems, "warning", "", "plan");
  }

  send(address, signal) {
    if (!this.questions) {
      return fetch(address, { method: "POST", body: this.table, headers: { "Content-Type": "text/csv" }, signal });
    }
    const body = new FormData();
    body.append("table", this.table, this.table.name);
    body.append("questions", this.questions, this.questions.name);
    return fetch(address, { method: "POST", body, signal });
  }

  ready(yes, words) {
    this.runButton.disabled = !yes;
    this.part("ready").textContent = words;
  }

  async run(query = {}) {
    this.planning?.abort();
    this.problems.clear();
    const buttons = [this.runButton, this.goodButton];
    const disabled = buttons.map((button) => button.disabled);
    this.sending = true;
    for (const button of buttons) button.disabled = true;
    this.part("ready").textContent = "Handing the table over…";
    const { made, error } = await this.make(query);
    if (made) {
      location.assign(`/runs/${made.id}#result`);
      return;
    }
    this.sending = false;
    for (const [index, button] of buttons.entries()) button.disabled = disabled[index];
    this.refuse(error);
  }

  async make(query) {
    const title = this.querySelector("#run-name").value;
    const cache = String(this.querySelector("#cache").checked);
    try {
      const response = await this.send(
        this.address("/api/runs", { title, shape: this.shape, cache, ...this.draw, ...query }),
      );
      const answer = await response.json();
      return response.ok ? { made: answer } : { error: answer.error };
    } catch {
      return { error: { message: "clef does not answer", hint: "Is it still running? Your table is still chosen." } };
    }
  }

  refuse(error) {
    const found = error.problems ?? [];
    const inTable = found.length && !this.questions; // else it may be the question file, and the message says so
    const title = inTable ? `${counted(found.length, "problem")} in this table` : capital(error.message);
    const heading = this.problems.show(title, found, "error", found.length ? "" : (error.hint ?? ""));
    this.ready(error.fault !== "input", "");
    heading.focus();
  }
}

function remembered(storage, key, otherwise) {
  try {
    return JSON.parse(storage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function remember(storage, key, value) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // Too large, or storage is off: it lasts as long as the page.
  }
}

customElements.define("evaluate-table", EvaluateTable);
