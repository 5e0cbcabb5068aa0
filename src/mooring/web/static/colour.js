// Colours that a canvas needs to know. Utilisation is told by lightness alone, so that it reads the same
// to everyone, on paper and on a bad projector; hue only makes it pleasant.

const RAMPS = {
  light: ["#e2ebea", "#b9d6d8", "#84b9c2", "#4f98aa", "#2a7a94", "#17607d", "#0f4764"],
  dark: ["#1d303a", "#244b58", "#2d6a77", "#3f8b92", "#63ada6", "#94c9b2", "#cfe3b8"],
};

const STEPS = 32;

const INK = {
  light: {
    water: "#eef3f2",
    pontoon: "#dce6e5",
    line: "#b6c4c4",
    strongLine: "#6f8184",
    ink: "#14232b",
    quiet: "#44565e",
    mark: "#9a4d00",
    cordon: "#14232b",
    select: "#c2410c",
    focus: "#0b6477",
    empty: "#f8faf9",
    gap: "#f8faf9",
  },
  dark: {
    water: "#0b151a",
    pontoon: "#18272f",
    line: "#2f444f",
    strongLine: "#7d939d",
    ink: "#e4edef",
    quiet: "#a3b5bc",
    mark: "#f5b95f",
    cordon: "#e4edef",
    select: "#ff9d6b",
    focus: "#6fd0df",
    empty: "#0a1318",
    gap: "#0a1318",
  },
};

const SERIES = {
  light: ["#0b6477", "#b45309", "#5b4b9a", "#3d6b1f", "#9d174d", "#44565e"],
  dark: ["#6fd0df", "#f5b95f", "#b7a6f2", "#a7d27f", "#f39ac0", "#a3b5bc"],
};

// Told apart without red against green; the last is for all that have no colour of their own.
const KINDS = {
  light: ["#0b6477", "#d08a2e", "#6a58b0", "#6f9a2f", "#b8447a", "#3f8fc4", "#8c6239", "#37a08b", "#b9c4c6"],
  dark: ["#4fb6c8", "#f0b35c", "#a897ec", "#a4cc72", "#e588b4", "#7cb8e8", "#c79a6c", "#69cdb6", "#4b5f69"],
};

export function paletteOf(theme) {
  return { ...INK[theme], ramp: rampOf(theme), series: SERIES[theme], kinds: KINDS[theme] };
}

// What can be read on any colour (AA): black or white, whichever differs more. Softer inks fail in the middle.
export function inkOn(colour) {
  const on = luminance(colour) + 0.05;
  return on / 0.05 >= 1.05 / on ? "#000000" : "#ffffff";
}

const luminances = new Map();

function luminance(colour) {
  if (!luminances.has(colour)) {
    const rgb = colour.startsWith("#") ? channels(colour) : colour.match(/\d+/g).map(Number);
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    luminances.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b);
  }
  return luminances.get(colour);
}

function rampOf(theme) {
  const stops = RAMPS[theme].map(channels);
  return Array.from({ length: STEPS }, (_, i) => {
    const at = (i / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const part = at - low;
    const mix = stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * part));
    return `rgb(${mix.join(",")})`;
  });
}

function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

export function stepOf(utilisation) {
  return Math.max(0, Math.min(STEPS - 1, Math.round(utilisation * (STEPS - 1))));
}
