// <engine-speed>: draws how long the last decisions took, oldest on the left; the dashed line is the middle one. The
// label of the element says the same in words.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 480;
const HEIGHT = 64;
const EDGE = 5;

class EngineSpeed extends HTMLElement {
  static observedAttributes = ["data-ms"];

  connectedCallback() {
    if (!this.shadowRoot) this.attachShadow({ mode: "open" });
    this.draw();
  }

  attributeChangedCallback() {
    if (this.shadowRoot) this.draw();
  }

  draw() {
    const values = this.dataset.ms.trim().split(/\s+/).map(Number);
    const top = Math.max(...values) || 1;
    const x = (index) => EDGE + (index * (WIDTH - 2 * EDGE)) / Math.max(1, values.length - 1);
    const y = (value) => HEIGHT - EDGE - (value / top) * (HEIGHT - 2 * EDGE);
    const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
    const middle = y(values.toSorted((a, b) => a - b)[values.length >> 1]);
    const last = values.length - 1;
    const base = HEIGHT - EDGE;
    const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", fill: "none", "aria-hidden": "true" });
    svg.append(
      shape("polygon", { points: `${x(0)},${base} ${points.join(" ")} ${x(last)},${base}`, fill: "var(--bar-track)" }),
      shape("line", { x1: 0, x2: WIDTH, y1: middle, y2: middle, stroke: "var(--edge)", "stroke-dasharray": "2 4" }),
      shape("polyline", { points: points.join(" "), stroke: "var(--bar-wins)", "stroke-width": 2 }),
      shape("circle", { cx: x(last), cy: y(values[last]), r: 4, fill: "var(--bar-wins)" }),
    );
    this.shadowRoot.replaceChildren(svg);
  }
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

customElements.define("engine-speed", EngineSpeed);
