// <evaluate-table>: takes a table by drop, choice or paste, shows how clef reads it and what a run would ask, and makes
// the run. The file goes to clef as its bytes: nothing here decodes it. What was given stays until something else is.

const KEY = "clef.paste";
const SHOWN = 5;
const SEPARATORS = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" };

class EvaluateTable extends HTMLElement {
  connectedCallback() {
    this.problems = this.querySelector("problem-list");
    this.reading = this.querySelector("table-reading");
    this.runButton = this.querySelector('[data-do="run"]');
    this.goodButton = this.querySelector('[data-do="run-good"]');
    this.file = this.querySelector("#file");
    this.pasted = this.querySelector("#pasted");
    this.pasted.value = remembered();
    this.listen();
    if (this.file.files.length) this.take(this.file.files[0]);
  }

  listen() {
    this.addEventListener("click", (event) => this.clicked(event));
    this.file.addEventListener("change", () => this.file.files.length && this.take(this.file.files[0]));
    this.pasted.addEventListener("input", () => remember(this.pasted.value));
    this.addEventListener("change", (event) => event.target.name === "shape" && this.table && this.plan());
    this.reading.addEventListener("reading-change", () => this.read());
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
      const [file] = event.dataTransfer.files;
      if (file && !this.sending) this.take(file);
    });
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  async clicked(event) {
    const action = event.target.closest("[data-do]")?.dataset.do;
    if (action === "paste") this.togglePaste(event.target.closest("button"));
    else if (action === "use-paste") this.take(new File([this.pasted.value], "pasted.csv", { type: "text/csv" }));
    else if (action === "sample") {
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

  async take(file) {
    this.table = file;
    this.reading.forget();
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
    this.ready(!problems.length && rows > 0, problems.length ? "Mend the table and give it again." : rowsReady(facts));
    if (rows) this.plan();
  }

  // What a run would send, told beside the button once it is known; nobody has to wait for it.
  async plan() {
    this.planning?.abort();
    this.planning = new AbortController();
    const { table } = this;
    this.problems.clear("plan");
    const address = this.address("/api/runs/plan", { shape: this.shape, bad_rows: "skip" });
    try {
      const response = await this.send(address, this.planning.signal);
      if (response.ok && this.table === table) this.planned(await response.json());
    } catch {
      // Given up for another plan, or clef is gone, which the next press of a button tells.
    }
  }

  planned({ rows, requests, too_long }) {
    if (!this.skips) this.part("ready").textContent = `${counted(rows, "row")}, ${counted(requests, "request")}`;
    if (!too_long.length) return;
    const problems = too_long.map(({ row, tokens, limit }) => ({
      row,
      message: `too long: ${figure(tokens)} of ${figure(limit)} tokens`,
    }));
    const title = `${counted(too_long.length, "row")} too long for this model: not asked, and counted as failed`;
    this.problems.show(title, problems, "warning", "", "plan");
  }

  send(address, signal) {
    return fetch(address, { method: "POST", body: this.table, headers: { "Content-Type": "text/csv" }, signal });
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
      const response = await this.send(this.address("/api/runs", { title, shape: this.shape, cache, ...query }));
      const answer = await response.json();
      return response.ok ? { made: answer } : { error: answer.error };
    } catch {
      return { error: { message: "clef does not answer", hint: "Is it still running? Your table is still chosen." } };
    }
  }

  refuse(error) {
    const found = error.problems ?? [];
    const title = found.length ? `${counted(found.length, "problem")} in this table` : capital(error.message);
    const heading = this.problems.show(title, found, "error", found.length ? "" : (error.hint ?? ""));
    this.ready(error.fault !== "input", "");
    heading.focus();
  }
}

// How clef read the table, as a list of words.
function said(facts) {
  const words = [facts.format.toUpperCase()];
  if (facts.separator) words.push(SEPARATORS[facts.separator] ?? `separator ${facts.separator}`);
  if (facts.encoding) words.push(facts.encoding.toUpperCase() + (facts.encoding_guessed ? " (a guess)" : ""));
  words.push(counted(facts.read, "row"), counted(facts.questions, "question"));
  if (facts.unlabelled) words.push(`${figure(facts.unlabelled)} without a label`);
  return words;
}

function rowsReady(facts) {
  return facts.examples ? "" : "There is no row to ask.";
}

function previewTable(examples) {
  const table = document.createElement("table");
  table.className = "list small";
  table.createCaption().textContent = "The first rows as clef reads them";
  const titles = table.createTHead().insertRow();
  for (const name of ["Row", "State", "Question", "Options", "Label"]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    titles.append(cell);
  }
  const body = table.createTBody();
  for (const { row, state, question, options, label } of examples) {
    const cells = [
      row,
      typeof state === "string" ? state : JSON.stringify(state),
      question,
      options.join(" · "),
      label ?? "none",
    ];
    const line = body.insertRow();
    for (const text of cells) {
      const cell = line.insertCell();
      cell.dir = "auto";
      cell.textContent = shortened(String(text));
    }
  }
  return table;
}

function shortened(text) {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function figure(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

function counted(number, noun) {
  return `${figure(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function capital(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function remember(text) {
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // Too large, or storage is off: the paste lasts as long as the page.
  }
}

customElements.define("evaluate-table", EvaluateTable);
