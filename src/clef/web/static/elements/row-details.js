// <row-details>: a table whose rows open to show everything; htmx fetches what is inside at the first opening.
// Besides, what keeps the rows in step with the address, which holds every filter.

const TYPING = "input, textarea, select, [contenteditable]";

class RowDetails extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => {
      const button = event.target.closest("[data-row]");
      if (!button) return;
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
      remember(open ? button.dataset.row : null, button.dataset.row);
    });
  }
}

// The address names the row that was opened last, so that it can be sent and come back to.
function remember(row, closed) {
  const query = new URLSearchParams(location.search);
  if (row !== null) query.set("row", row);
  else if (query.get("row") === closed) query.delete("row");
  history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
}

customElements.define("row-details", RowDetails);

// What is shown anew is shown with the filter of the address, which may have changed since the page came. The filter
// form changes its own part of the address and begins at the first page.
document.addEventListener("htmx:before:request", (event) => {
  const { request } = event.detail.ctx;
  if (["run", "whole"].includes(event.target.id)) request.action = location.pathname + location.search;
  if (event.target.id !== "filters") return keepGate(event.target, request);
  const query = new URLSearchParams(location.search);
  for (const [name, value] of new FormData(event.target)) {
    if (value.trim()) query.set(name, value.trim());
    else query.delete(name);
  }
  for (const name of ["page", "row"]) query.delete(name);
  request.action = `${location.pathname}${query.size ? `?${query}` : ""}`;
});

// A link was written when the page came; the gate may have been chosen since.
function keepGate(link, request) {
  const gate = new URLSearchParams(location.search).get("gate");
  if (!gate || link.getAttribute("hx-target") !== "#rows-now") return;
  const address = new URL(request.action, location.href);
  address.searchParams.set("gate", gate);
  request.action = address.pathname + address.search;
}

// A filter that was pressed elsewhere shows in the form. Focus goes to the rows when the link that was pressed is gone.
document.addEventListener("htmx:after:swap", (event) => {
  const { ctx } = event.detail;
  if (ctx.target?.id !== "rows-now") return;
  const form = document.getElementById("filters");
  if (form.contains(document.activeElement)) return;
  const query = new URLSearchParams(location.search);
  for (const field of form.elements) if (field.name) field.value = query.get(field.name) ?? "";
  document.getElementById("rows-heading")?.focus({ preventScroll: true });
});

// j and k go through the rows, Enter opens one (it is a button), / searches.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches(TYPING)) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector("#filters [name=text]").select();
  } else if (event.key === "j" || event.key === "k") {
    const buttons = [...document.querySelectorAll("[data-row]")];
    const at = buttons.indexOf(document.activeElement.closest("tr")?.querySelector("[data-row]"));
    const next = buttons[event.key === "k" ? at - 1 : at + 1];
    next?.focus({ preventScroll: true });
    next?.closest("tr").scrollIntoView({ block: "nearest" });
  }
});
