// <row-details>: a table whose rows open to show everything; htmx fetches what is inside at the first opening.

class RowDetails extends HTMLElement {
  connectedCallback() {
    this.addEventListener("click", (event) => {
      const button = event.target.closest("[data-row]");
      if (!button) return;
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
    });
  }
}

customElements.define("row-details", RowDetails);

// A run under way is shown anew every few seconds: with the filter of the address, which may have changed since the
// page came, and not under the eyes of someone who reads a row.
document.addEventListener("htmx:before:request", (event) => {
  if (event.target.id !== "run") return;
  if (document.querySelector('[data-row][aria-expanded="true"]')) event.preventDefault();
  else event.detail.ctx.request.action = location.pathname + location.search;
});

// Focus goes to the rows when a filter has replaced them, since the link that was pressed is gone.
document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx.target?.id !== "rows") return;
  document.getElementById("rows-heading")?.focus({ preventScroll: true });
});
