// Applies the remembered theme before the first paint; theme-switch.js changes it.
(() => {
  try {
    const theme = localStorage.getItem("clef.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be switched off: then the system's theme applies.
  }
})();
