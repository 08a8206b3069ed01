// <evaluate-table>: takes a table by drop, choice or paste, shows how clef reads it, and runs it. The file goes to
// clef as its bytes: nothing here decodes it. What was given stays until something else is given.

const KEY = "clef.paste";
const SHOWN = 5;
const SEPARATORS = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" };

class EvaluateTable extends HTMLElement {
  connectedCallback() {
    this.problems = this.querySelector("problem-list");
    this.progress = this.querySelector("run-progress");
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
    this.progress.addEventListener("run-start", ({ detail }) => this.started(detail));
    this.progress.addEventListener("run-end", ({ detail }) => this.ended(detail));
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
      if (file && !this.progress.running) this.take(file);
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
    this.problems.clear();
    this.goodButton.hidden = true;
    this.part("chosen").hidden = false;
    this.part("name").textContent = file.name;
    this.part("facts").textContent = `${size(file.size)} · reading…`;
    this.part("preview").hidden = true;
    this.ready(false, "");
    const most = Number(this.dataset.maxBody);
    if (file.size > most) {
      const message = `${size(file.size)} is more than the ${size(most)} that one request may have`;
      this.refuse({ message, hint: "Raise CLEF_MAX_BODY, or give fewer rows.", fault: "input" });
      return;
    }
    const { preview, error } = await this.look(file);
    if (this.table !== file) return;
    this.part("facts").textContent = size(file.size);
    if (error) this.refuse(error);
    else this.show(preview);
  }

  async look(file) {
    try {
      const headers = { "Content-Type": "text/csv" };
      const response = await fetch(this.address("/api/tables/preview"), { method: "POST", body: file, headers });
      const answer = await response.json();
      return response.ok ? { preview: answer } : { error: answer.error };
    } catch {
      return { error: { message: "clef does not answer", hint: "is it still running? Your table is still chosen." } };
    }
  }

  address(path, query = {}) {
    return `${path}?${new URLSearchParams({ name: this.table.name, ...query })}`;
  }

  show({ facts, examples, problems, warnings }) {
    this.part("facts").textContent = [size(this.table.size), ...said(facts)].join(" · ");
    this.part("preview").replaceChildren(previewTable(examples.slice(0, SHOWN)));
    this.part("preview").hidden = !examples.length;
    const rows = facts.examples;
    if (problems.length) {
      this.problems.show(`${counted(problems.length, "problem")} in this table`, problems).focus();
      this.goodButton.hidden = !rows;
      this.goodButton.textContent = `Run the ${counted(rows, "good row")}`;
    }
    if (warnings.length) this.problems.show(`${counted(warnings.length, "thing")} to know`, warnings, "warning");
    this.ready(!problems.length && rows > 0, problems.length ? "Mend the table and give it again." : rowsReady(facts));
  }

  ready(yes, words) {
    this.runButton.disabled = !yes;
    this.part("ready").textContent = words;
  }

  run(query) {
    this.problems.clear();
    this.runButton.parentElement.hidden = true;
    this.progress.run(this.address("/api/evaluate", query), this.table);
    this.progress.querySelector('[data-do="stop"]').focus();
  }

  started({ warnings }) {
    if (warnings?.length) this.problems.show(`${counted(warnings.length, "thing")} to know`, warnings, "warning");
  }

  ended({ run, problem }) {
    this.runButton.parentElement.hidden = false;
    if (problem) this.refuse(problem, run);
    else if (run) location.assign(`/runs/${run}#result`);
    else this.part("ready").textContent = "Stopped before it began.";
  }

  refuse(error, run) {
    const found = error.problems ?? [];
    const title = found.length ? `${counted(found.length, "problem")} in this table` : capital(error.message);
    const heading = this.problems.show(title, found, "error", found.length ? "" : (error.hint ?? ""));
    if (run) {
      const link = Object.assign(document.createElement("a"), {
        href: `/runs/${run}`,
        textContent: "See the rows so far",
      });
      heading.after(link);
    }
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
