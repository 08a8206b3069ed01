// Opens a file of questions in the Ask form, and saves the questions of the form as one. clef reads and writes the file.

export async function open(form, file) {
  const response = await fetch("/ask/questions", {
    method: "POST",
    body: file,
    headers: { "Content-Type": "application/octet-stream" },
  });
  if (!response.ok) return form.showProblems(await response.text());
  const { questions } = await response.json();
  const { json: _, ...draft } = form.draft;
  form.replace({ ...draft, questions }, `The questions of ${file.name} are in the form.`);
}

export async function save(form) {
  const response = await fetch("/ask/questions.yaml", { method: "POST", body: JSON.stringify(form.draft) });
  if (!response.ok) return form.showProblems(await response.text());
  const href = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement("a"), { href, download: "questions.yaml" }).click();
  URL.revokeObjectURL(href);
}
