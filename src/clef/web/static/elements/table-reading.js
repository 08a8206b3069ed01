// <table-reading>: says how clef read a table and lets a person say otherwise: encoding, separator, sheet, which
// column is what. `choices` are the query parameters of what was changed; each change is told as `reading-change`.

const ROLES = {
  state: "what is decided about",
  question: "the question",
  label: "the right answer",
  options: "the options",
  type: "the type of question",
  images: "the images",
};
const ENCODINGS = [
  "utf-8",
  "utf-16",
  "windows-1252",
  "iso-8859-15",
  "mac-roman",
  "windows-1251",
  "koi8-r",
  "shift_jis",
  "gb18030",
  "big5",
];
const SEPARATORS = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" };

// What begins the question of every row, where no column holds questions.
const EVERY_ROW = "=";

class TableReading extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", ({ target }) => {
      if (target.name === "every-row")
        this.columns.question = target.value.trim() && `${EVERY_ROW}${target.value.trim()}`;
      else if (target.dataset.role) this.columns[target.dataset.role] = target.value;
      else this.changed[target.name] = target.value;
      this.last = target.name;
      this.dispatchEvent(new Event("reading-change"));
    });
    this.forget();
  }

  // For another table: nothing of what was said about the last one holds, but what was said of this one before.
  forget({ columns = {}, changed = {} } = {}) {
    this.columns = columns;
    this.changed = changed;
    this.last = null;
  }

  // What a person said of the table.
  get said() {
    return { columns: this.columns, changed: this.changed };
  }

  get choices() {
    const columns = Object.entries(this.columns).map(([role, header]) => ["columns", `${role}:${header}`]);
    return [...Object.entries(this.changed), ...columns];
  }

  show(facts) {
    const fields = [];
    const encoding = facts.encoding ?? this.changed.encoding;
    if (encoding) {
      const names = new Set([encoding, ...ENCODINGS]);
      fields.push(
        choice(
          "encoding",
          "Encoding",
          encoding,
          [...names].map((name) => [name, name.toUpperCase()]),
        ),
      );
    }
    if (facts.separator) {
      const marks = { ...SEPARATORS, [facts.separator]: SEPARATORS[facts.separator] ?? facts.separator };
      fields.push(choice("separator", "Separator", facts.separator, Object.entries(marks)));
    }
    if (facts.sheets.length > 1) {
      fields.push(
        choice(
          "sheet",
          "Sheet",
          facts.sheet,
          facts.sheets.map((name) => [name, name]),
        ),
      );
    }
    for (const [role, words] of facts.columns.length ? Object.entries(ROLES) : []) {
      const columns = [["", "no column"], ...facts.columns.map((name) => [name, name])];
      const said = facts.roles[role] ?? "";
      const everyRow = role === "question" && (said === "" || said.startsWith(EVERY_ROW));
      fields.push(choice(`role-${role}`, capital(words), everyRow ? "" : said, columns, role));
      if (everyRow) fields.push(sentence("every-row", "The question of every row", said.slice(EVERY_ROW.length)));
    }
    if (facts.columns.length) {
      const kinds = [
        ["required", "in a column"],
        ["optional", "missing, to be labelled later"],
      ];
      fields.push(choice("labels", "Right answers", this.changed.labels ?? "required", kinds));
    }
    this.replaceChildren(...fields);
    if (this.last) this.querySelector(`[name="${this.last}"]`)?.focus();
    return fields.length > 0;
  }
}

function sentence(name, words, value) {
  const label = Object.assign(document.createElement("label"), { className: "sentence" });
  const input = Object.assign(document.createElement("input"), {
    name,
    value,
    placeholder: "Which team should handle it?",
  });
  input.setAttribute("aria-label", words);
  input.dir = "auto";
  label.append(Object.assign(document.createElement("span"), { textContent: words }), input);
  return label;
}

function choice(name, words, chosen, options, role = null) {
  const label = document.createElement("label");
  label.append(Object.assign(document.createElement("span"), { textContent: words }));
  const select = Object.assign(document.createElement("select"), { name });
  select.setAttribute("aria-label", words);
  if (role) select.dataset.role = role;
  for (const [value, text] of options) {
    const short = text.length > 40 ? `${text.slice(0, 39)}…` : text;
    select.append(Object.assign(document.createElement("option"), { value, textContent: short }));
  }
  select.value = chosen;
  label.append(select);
  return label;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

customElements.define("table-reading", TableReading);
