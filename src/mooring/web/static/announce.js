// What a screen reader is told when something happens by itself.

export function announce(text) {
  const region = document.getElementById("announced");
  if (region) region.textContent = text;
}
