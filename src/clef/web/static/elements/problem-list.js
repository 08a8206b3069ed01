// <problem-list>: what is wrong with a table, row by row; all of it can be downloaded where the list is cut.

const SHOWN = 20;
const FIELDS = ["row", "line", "column", "message", "hint"];

class ProblemList extends HTMLElement {
  // Takes everything away, or only what was shown as about one thing.
  clear(about = "") {
    for (const box of [...this.children]) if (!about || box.dataset.about === about) box.remove();
  }

  // `level` is "error" for what stops a run, "warning" for what a person should know.
  show(title, problems, level = "error", hint = "", about = "") {
    const box = element("div", { className: level === "error" ? "problems" : "problems warnings" });
    box.dataset.about = about;
    box.setAttribute("role", level === "error" ? "alert" : "status");
    const heading = element("h3", { textContent: title, tabIndex: -1 });
    box.append(heading);
    if (hint) box.append(element("p", { textContent: hint }));
    if (problems.length) box.append(table(problems.slice(0, SHOWN)));
    if (problems.length) box.append(this.rest(problems));
    this.append(box);
    return heading;
  }

  rest(problems) {
    const cut = problems.length > SHOWN ? `The first ${SHOWN} of ${problems.length}. ` : "";
    const line = element("p", { className: "hint", textContent: cut });
    const link = element("a", { textContent: `Download ${cut ? "all of " : ""}them (CSV)`, download: "problems.csv" });
    link.href = URL.createObjectURL(new Blob([csv(problems)], { type: "text/csv" }));
    line.append(link);
    return line;
  }
}

function table(problems) {
  const scroll = element("div", { className: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Problems");
  const body = element("tbody");
  for (const problem of problems) {
    const row = body.insertRow();
    row.insertCell().textContent = problem.row ?? "";
    const line = row.insertCell();
    line.className = "wide";
    line.textContent = problem.line ?? "";
    const column = row.insertCell();
    column.textContent = problem.column ?? "";
    const said = row.insertCell();
    said.dir = "auto";
    said.textContent = problem.message;
    if (problem.hint) said.append(element("small", { textContent: problem.hint }));
  }
  const head = element("thead");
  const titles = head.insertRow();
  for (const name of ["Row", "Line", "Column", "Problem"]) {
    titles.append(element("th", { scope: "col", textContent: name, className: name === "Line" ? "wide" : "" }));
  }
  const whole = element("table", { className: "list small" });
  whole.append(head, body);
  scroll.append(whole);
  return scroll;
}

// A byte order mark for spreadsheets, and no cell that one would run as a formula.
function csv(problems) {
  const cell = (value) => {
    const text = String(value ?? "");
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [FIELDS, ...problems.map((problem) => FIELDS.map((field) => problem[field]))];
  return `\ufeff${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
}

function element(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

customElements.define("problem-list", ProblemList);
