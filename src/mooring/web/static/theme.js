// Light or dark: as the system says, unless the reader chose otherwise.
import { useEffect, useState } from "preact-hooks";

const KEY = "mooring.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();
let chosen = read();

// A report opened from a file may have no storage to read.
function read() {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

export function theme() {
  return chosen ?? (dark.matches ? "dark" : "light");
}

export function switchTheme() {
  chosen = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // It lasts as long as the page.
  }
  apply();
}

function apply() {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener(theme());
}

dark.addEventListener("change", apply);
apply();

export function useTheme() {
  const [value, set] = useState(theme());
  useEffect(() => {
    listeners.add(set);
    return () => listeners.delete(set);
  }, []);
  return value;
}
