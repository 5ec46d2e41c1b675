// Runs before the first paint: a theme that the reader chose earlier wins over the system's.
"use strict";
try {
  const chosen = localStorage.getItem("genm-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A page opened from a file may have no storage; the system's theme it is.
}
