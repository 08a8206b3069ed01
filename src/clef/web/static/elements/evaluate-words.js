// How clef read a table and what a run of it would be, in words and as a small table.

const SEPARATORS = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" };

// How clef read the table, as a list of words.
export function said(facts) {
  const words = [facts.format.toUpperCase()];
  if (facts.separator) words.push(SEPARATORS[facts.separator] ?? `separator ${facts.separator}`);
  if (facts.encoding) words.push(facts.encoding.toUpperCase() + (facts.encoding_guessed ? " (a guess)" : ""));
  words.push(counted(facts.read, "row"), counted(facts.questions, "question"));
  if (facts.unlabelled) words.push(`${figure(facts.unlabelled)} without a label`);
  return words;
}

export function previewTable(examples) {
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
  for (const { row, state, images, question, options, label } of examples) {
    const text = typeof state === "string" ? state : JSON.stringify(state);
    const cells = [
      row,
      images ? `[${counted(images, "image")}] ${text}` : text,
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

export function figure(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

export function counted(number, noun) {
  return `${figure(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function capital(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// How long a run takes, roughly.
export function duration(seconds) {
  if (seconds < 5) return "a moment";
  if (seconds < 90) return `about ${Math.round(seconds / 5) * 5} seconds`;
  if (seconds < 5400) return counted(Math.round(seconds / 60), "minute").replace(/^/, "about ");
  return counted(Math.round(seconds / 3600), "hour").replace(/^/, "about ");
}
