// Copies the request of the form as code, or as a link that carries it in its fragment, which no browser sends.

const LONGEST = 100_000;
const NAMES = {
  link: "a link",
  curl: "curl",
  cli: "a clef command",
  python: "Python",
  sdk: "Python for the TypeSafe SDK",
  javascript: "JavaScript",
  jssdk: "JavaScript for the TypeSafe SDK",
};

document.addEventListener("click", async (event) => {
  const kind = event.target.closest("[data-copy]")?.dataset.copy;
  if (!kind) return;
  const form = document.querySelector("ask-form");
  document.getElementById("copy").hidePopover();
  try {
    if (kind === "link") return await give(kind, link(form.draft));
    const address = `/ask/code?language=${kind}`;
    const response = await fetch(address, { method: "POST", body: JSON.stringify(form.draft) });
    if (response.ok) await give(kind, await response.text());
    else form.showProblems(await response.text());
  } catch {
    say("clef does not answer, so nothing was copied.");
  }
});

function link(draft) {
  const bytes = new TextEncoder().encode(JSON.stringify(draft));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  const packed = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return packed.length <= LONGEST ? `${location.origin}/#ask=${packed}` : null;
}

async function give(kind, text) {
  if (text === null) return say("This request is too long for a link. Copy it from the JSON view.");
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied as ${NAMES[kind]}.`);
  } catch {
    // No clipboard without a secure address, or it was refused: then by hand.
    const dialog = document.getElementById("copy-by-hand");
    const area = dialog.querySelector("textarea");
    area.value = text;
    dialog.showModal();
    area.select();
  }
}

let later;

function say(words) {
  const line = document.getElementById("copied");
  line.textContent = words;
  clearTimeout(later);
  later = setTimeout(() => {
    line.textContent = "";
  }, 6000);
}
