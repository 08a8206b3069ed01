// <run-charts>: fetches the charts of a run once its page is there, and draws them as SVG. Each mark has the filter of
// its rows and shows them when it is pressed; the numbers under a chart are the same marks as links, for the keyboard
// and for who hears the page.

import { showRows } from "./run-parts.js";

const OPTIONS = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false };
const TOOLTIP = { disableDefaultStyle: true };
const CHARTS = ["reliability", "risk", "distribution", "distance", "confusion"];
const NARROW = 560; // pixels
const dark = matchMedia("(prefers-color-scheme: dark)");

let scripts;

class RunCharts extends HTMLElement {
  connectedCallback() {
    this.draw = this.draw.bind(this);
    dark.addEventListener("change", this.draw);
    this.themes = new MutationObserver(this.draw);
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.addEventListener("change", (event) => this.changed(event.target.closest("figure")));
    this.addEventListener("toggle", (event) => this.count(event.target), { capture: true });
    this.draw();
  }

  disconnectedCallback() {
    dark.removeEventListener("change", this.draw);
    this.themes.disconnect();
  }

  get theme() {
    return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  async draw() {
    const { theme } = this;
    if (this.drawn === theme) return;
    this.drawn = theme;
    try {
      scripts ??= load(this.dataset.scripts.split(" "));
      const [response] = await Promise.all([
        fetch(`${this.dataset.address}?theme=${theme}&labels=${this.dataset.labels}`),
        scripts,
      ]);
      if (!response.ok) throw new Error(String(response.status));
      this.charts = await response.json();
      if (!this.isConnected || this.theme !== theme) return;
      for (const chart of CHARTS) await this.put(chart);
      this.dataset.state = "drawn";
    } catch {
      this.drawn = null;
      this.dataset.state = "missing";
      this.part("state").textContent = "The charts could not be drawn. The numbers are in the tables.";
    }
  }

  // Which of a run's charts stands at a place, and whose question it is about.
  chosen(name) {
    if (name === "reliability") return [this.part("bins").value, 0];
    return [name, Number(this.part(`choose-${name}`)?.value || 0)];
  }

  async put(name) {
    this.offer(name);
    const [chart, at] = this.chosen(name);
    const spec = this.charts[chart]?.[at]?.spec;
    const place = this.part(name);
    this.views ??= {};
    this.views[name]?.finalize();
    if (!spec) return place.replaceChildren();
    if (name === "confusion" && place.clientWidth < NARROW) turnNames(spec);
    const result = await window.vegaEmbed(place, spec, { ...OPTIONS, tooltip: TOOLTIP });
    this.views[name] = result;
    result.view.addEventListener("click", (_, item) => {
      const { shows } = item?.datum?.datum ?? item?.datum ?? {}; // the nearest point stands inside a cell around it
      if (shows) showRows(shows);
    });
  }

  // The questions of a chart that has one drawing each.
  offer(name) {
    const figure = this.querySelector(`[data-figure="${name}"]`);
    if (!figure) return;
    const drawings = this.charts[name] ?? [];
    const select = this.part(`choose-${name}`);
    figure.hidden = !drawings.length;
    if (!select.options.length)
      for (const [at, { question }] of drawings.entries()) select.add(new Option(question, at));
    select.hidden = drawings.length < 2;
  }

  async changed(figure) {
    await this.put(figure.querySelector(".chart").dataset.part);
    this.count(figure.querySelector(".chart-numbers"));
  }

  count(details) {
    if (!details.open) return;
    const [chart, at] = this.chosen(details.dataset.chart);
    const address = `${this.dataset.numbers}/${chart}?at=${at}&labels=${this.dataset.labels}`;
    window.htmx.ajax("GET", address, { target: details.lastElementChild, swap: "innerHTML" });
  }
}

// The names under a confusion, which would run into each other on a phone.
function turnNames({ layer }) {
  for (const { encoding } of layer) encoding.x.axis = { labelAngle: -90, labelLimit: 120 };
}

// One after the other, since each needs the one before it; once for all pages that show charts.
async function load(addresses) {
  for (const src of addresses) {
    await new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src, onload: resolve, onerror: reject });
      document.head.append(script);
    });
  }
}

customElements.define("run-charts", RunCharts);
