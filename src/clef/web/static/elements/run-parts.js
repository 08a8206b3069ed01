// What the elements of a run's page share: showing rows, showing the page anew, giving a row its label.

// What a filter leaves as it is: the order, and what is looked at besides the rows.
const KEPT = ["sort", "order", "gate", "pool", "labels"];

// The address of the rows of a filter, and nothing but this filter: on this page, or beside it.
export function addressOf(filter, beside = "") {
  const query = new URLSearchParams(filter);
  const now = new URLSearchParams(location.search);
  for (const name of KEPT) {
    query.delete(name);
    if (now.has(name)) query.set(name, now.get(name));
  }
  return `${location.pathname}${beside}?${query}${beside ? "" : "#rows"}`;
}

// Show the rows of a filter.
export function showRows(filter) {
  const address = addressOf(filter).replace("#rows", "");
  window.htmx.ajax("GET", address, { target: "#rows-now", select: "#rows-now", swap: "outerHTML", push: address });
  document.getElementById("rows").scrollIntoView();
  document.getElementById("rows-heading").focus({ preventScroll: true });
}

// What leads to its rows, wherever on the page; with a modifier the browser opens the address itself.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-shows]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  showRows(link.dataset.shows);
});

// Show the page anew, as its address says.
export function showWhole() {
  document.getElementById("whole")?.dispatchEvent(new Event("refresh"));
}

// Give a row its label, or take it back: what went wrong, in words; null where nothing did.
export async function label(address, method, name, note) {
  const body = name === undefined ? {} : { body: JSON.stringify({ label: name, note: note ?? "" }) };
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(address, { method, headers, ...body });
    if (response.ok) return null;
    const { error } = await response.json();
    return error.hint ? `${error.message}: ${error.hint}` : error.message;
  } catch {
    return "clef does not answer. Is it still running?";
  }
}

// <rows-shown>: comes with the rows, wherever their filter was chosen, and sets the fields of the form to it.
class RowsShown extends HTMLElement {
  connectedCallback() {
    const { elements } = document.getElementById("filters");
    for (const [name, value] of Object.entries(this.dataset)) {
      const field = elements[name];
      if (!field || field === document.activeElement) continue;
      field.value = value;
      if (field.value !== value) field.value = "";
    }
  }
}

customElements.define("rows-shown", RowsShown);
