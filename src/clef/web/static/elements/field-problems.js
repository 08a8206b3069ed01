// What is wrong, beside the field it is in.

// The element a path such as questions[0].answers[1] leads to; the nearest one above it where there is none.
export function field(form, path) {
  const [first, ...rest] = path.split(".");
  const within = form.querySelector(`[data-field="${CSS.escape(first)}"]`);
  for (let parts = rest; parts.length; parts = parts.slice(0, -1)) {
    for (const name of [parts.join("."), parts[0].replace(/\[\d+\]$/, "")]) {
      const found = within?.querySelector(`[data-field="${CSS.escape(name)}"]`);
      if (found && !found.hidden) return found;
    }
  }
  return within;
}

export function showProblem(form, { path, message }) {
  const place = field(form, path);
  const control = place?.querySelector("textarea, input");
  if (!control) return;
  const words = document.createElement("p");
  words.className = "field-problem";
  words.id = `problem-${path.replace(/\W+/g, "-")}`;
  words.textContent = message[0].toUpperCase() + message.slice(1);
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", words.id);
  if (path === "state" && document.getElementById("json-check").childElementCount) return;
  if (place.matches("ol")) place.after(words);
  else place.append(words);
}

export function clearProblem(place) {
  if (!place) return;
  const control = place.querySelector("[aria-invalid]");
  if (!control || place.matches("question-card, .questions")) return;
  const words = document.getElementById(control.getAttribute("aria-describedby"));
  if (words?.matches(".field-problem")) words.remove();
  control.removeAttribute("aria-invalid");
  if (control.id === "state") control.setAttribute("aria-describedby", "json-check");
  else control.removeAttribute("aria-describedby");
}
