// <theme-switch>: one button that goes from system to light to dark, and remembers.

const ORDER = ["system", "light", "dark"];
const KEY = "clef.theme";

class ThemeSwitch extends HTMLElement {
  connectedCallback() {
    this.button = this.querySelector("button");
    this.button.hidden = false;
    this.button.addEventListener("click", () => this.choose(this.next));
    this.show(document.documentElement.dataset.theme ?? "system");
  }

  get next() {
    return ORDER[(ORDER.indexOf(this.theme) + 1) % ORDER.length];
  }

  choose(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    this.show(theme);
  }

  show(theme) {
    this.theme = theme;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    for (const icon of this.querySelectorAll("[data-theme-icon]")) icon.hidden = icon.dataset.themeIcon !== theme;
    const label = `Theme: ${theme}. Change to ${this.next}.`;
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
  }
}

customElements.define("theme-switch", ThemeSwitch);
