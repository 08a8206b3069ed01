// <state-images>: images that go with the state, by drop, paste or choice, in order. `value` is what the draft holds of
// them: a name, an id and the image as a data URL. The bytes are kept in the browser's database for a reload.

import { keep, kept } from "./kept-files.js";

const READ = ["image/png", "image/jpeg"];

class StateImages extends HTMLElement {
  connectedCallback() {
    this.list = this.querySelector("ul");
    this.words = this.querySelector("[role=status]");
    this.refusal = this.querySelector("[data-part=refused]");
    this.most = Number(this.dataset.most);
    this.mostBytes = Number(this.dataset.mostBytes);
    this.images = [];
    const file = this.querySelector("input");
    file.addEventListener("change", () => {
      this.take([...file.files]);
      file.value = "";
    });
    this.addEventListener("click", (event) => this.clicked(event.target.closest("[data-image]")));
    document.addEventListener("paste", (event) => this.offered(event, event.clipboardData));
    document.addEventListener("drop", (event) => this.offered(event, event.dataTransfer));
    document.addEventListener("dragover", (event) => hasFiles(event) && this.over(event, true));
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && this.over(event, false));
  }

  get value() {
    return this.images;
  }

  set value(images) {
    this.images = (images ?? []).map(({ name, url, id }) => ({ name, url, id: id ?? unique() }));
    for (const { id, url } of this.images) if (url) keep(id, url);
    this.show();
  }

  // After a reload: what the small storage could not hold comes back from the database.
  async restore() {
    for (const image of this.images) image.url ??= await kept(image.id);
    const found = this.images.filter(({ url }) => url);
    if (found.length < this.images.length) this.say("An image is no longer here. Add it again.");
    this.images = found;
    this.show();
  }

  over(event, is) {
    if (is) event.preventDefault();
    this.toggleAttribute("data-over", is);
  }

  offered(event, data) {
    this.over(event, false);
    const files = [...(data?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.take(files);
  }

  async take(files) {
    if (!(await this.isPossible())) return;
    const said = [];
    for (const file of files) said.push(await this.takeOne(file));
    this.say(said.filter(Boolean).join(" "));
    this.show();
    this.changed();
  }

  // What is wrong with a file, or was done to it; nothing where it is simply taken.
  async takeOne(file) {
    if (this.images.length >= this.most) return `${file.name} is left out: ${this.most} images are the most.`;
    if (!file.type.startsWith("image/")) return `${file.name} is no image.`;
    const blob = READ.includes(file.type) ? file : await asPng(file);
    if (!blob) return `${file.name} cannot be read. Give a PNG or JPEG.`;
    if (blob.size > this.mostBytes) {
      const limit = `${this.mostBytes / 1e6} MB`;
      return `${file.name} has ${(blob.size / 1e6).toFixed(1)} MB; ${limit} are the most. Make it smaller.`;
    }
    const url = await asUrl(blob);
    const image = { name: file.name, url, id: unique() };
    this.images.push(image);
    keep(image.id, url);
    return blob === file ? "" : `${file.name} is sent as PNG.`;
  }

  async isPossible() {
    this.refusal.hidden = true;
    try {
      const { images } = await (await fetch("/api/health")).json();
      this.refusal.hidden = images !== false;
      return images !== false;
    } catch {
      this.say("clef does not answer. Is it still running?");
      return false;
    }
  }

  clicked(button) {
    if (!button) return;
    const at = [...this.list.children].indexOf(button.closest("li"));
    const [image] = this.images.splice(at, 1);
    const { image: action } = button.dataset;
    const to = action === "earlier" ? at - 1 : at + 1;
    if (action === "remove") this.say(`${image.name} is removed.`);
    else this.images.splice(to, 0, image);
    this.show();
    this.changed();
    const item = this.list.children[action === "remove" ? Math.min(at, this.images.length - 1) : to];
    const same = item?.querySelector(`[data-image="${action}"]`);
    const next = same?.disabled ? item.querySelector("button:not(:disabled)") : same;
    (next ?? this.querySelector("input")).focus();
  }

  show() {
    const template = document.getElementById("image-template").content.firstElementChild;
    const items = this.images.map((image, index) => {
      const item = template.cloneNode(true);
      const picture = item.querySelector("img");
      if (image.url) picture.src = image.url;
      picture.alt = image.name;
      const words = { earlier: "Move earlier", later: "Move later", remove: "Remove" };
      for (const [action, label] of Object.entries(words)) {
        const button = item.querySelector(`[data-image="${action}"]`);
        button.setAttribute("aria-label", `${label}: image ${index + 1}`);
        button.title = label;
      }
      item.dataset.field = `images[${index}]`;
      item.querySelector('[data-image="earlier"]').disabled = index === 0;
      item.querySelector('[data-image="later"]').disabled = index === this.images.length - 1;
      return item;
    });
    this.list.replaceChildren(...items);
    this.list.hidden = !items.length;
  }

  say(words) {
    this.words.textContent = words;
  }

  changed() {
    this.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files");
}

function unique() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// What the browser can draw and an engine may not read, such as WebP.
async function asPng(file) {
  try {
    const bitmap = await createImageBitmap(file);
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    return await canvas.convertToBlob({ type: "image/png" });
  } catch {
    return null;
  }
}

function asUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

customElements.define("state-images", StateImages);
