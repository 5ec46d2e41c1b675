// The button that turns the page dark or light. Charts listen to "themechange" on the document.
"use strict";
{
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = wanted;
    try {
      localStorage.setItem("genm-theme", wanted);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    show();
  });
  system.addEventListener("change", show);
  button.hidden = false;
  show();
}
