// <run-charts>: fetches the charts of a run once its page is there, and draws them as SVG. What a mark stands for is
// shown in the rows when it is pressed; the tables and filters beside them do the same without a mouse.

import { showRows } from "./run-parts.js";

const OPTIONS = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false };
const TOOLTIP = { disableDefaultStyle: true };
const dark = matchMedia("(prefers-color-scheme: dark)");

let scripts;

class RunCharts extends HTMLElement {
  connectedCallback() {
    this.draw = this.draw.bind(this);
    dark.addEventListener("change", this.draw);
    this.themes = new MutationObserver(this.draw);
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.addEventListener("change", () => this.confusion());
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
      await this.put("reliability", this.charts.reliability);
      await this.put("risk", this.charts.risk);
      await this.confusion();
      this.dataset.state = "drawn";
    } catch {
      this.drawn = null;
      this.dataset.state = "missing";
      this.part("state").textContent = "The charts could not be drawn. The numbers are in the tables.";
    }
  }

  async put(name, spec) {
    const place = this.part(name);
    this.views ??= {};
    this.views[name]?.finalize();
    if (!spec) return place.replaceChildren();
    const result = await window.vegaEmbed(place, spec, { ...OPTIONS, tooltip: TOOLTIP });
    this.views[name] = result;
    result.view.addEventListener("click", (_, item) => item?.datum && this.chosen(name, item.datum));
  }

  async confusion() {
    const { confusions } = this.charts;
    this.part("confusion-figure").hidden = !confusions.length;
    const select = this.querySelector("select");
    if (!select.options.length) {
      for (const [index, { question }] of confusions.entries()) select.add(new Option(question, index));
      select.hidden = confusions.length < 2;
    }
    const { question, spec } = confusions[select.value] ?? confusions[0] ?? {};
    this.question = question;
    await this.put("confusion", spec);
  }

  chosen(name, datum) {
    if (name === "confusion") {
      showRows({ question: this.question, label: datum.label, prediction: datum.prediction });
    } else if (name === "reliability" && datum.to) showRows({ low: datum.from, high: datum.to });
    else if (name === "risk" && datum.threshold) showRows({ low: datum.threshold, high: 1 });
  }
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
