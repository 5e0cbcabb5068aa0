// Numbers, amounts and times as people write them.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

export function share(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  const percent = x * 100;
  // All but one of 5,000 is not all.
  if (percent > 99 && percent < 100) return ">99%";
  return `${percent > 0 && percent < 1 ? "<1" : Math.round(percent)}%`;
}

// Amounts are integers as scheduling counts them: millicores of CPU, bytes of memory and storage.
export function amount(resource, value) {
  if (value === null || value === undefined) return "–";
  if (resource === "cpu") return trimmed(value / 1000);
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) {
    return bytes(value);
  }
  return value.toLocaleString("en");
}

const DEVICES = "deviceclass.resource.kubernetes.io/";

// Devices are counted by class, under the name that Kubernetes gives the class as a resource.
export function resourceName(resource) {
  return resource.startsWith(DEVICES) ? `${resource.slice(DEVICES.length)} devices` : resource;
}

function bytes(value) {
  let power = 0;
  while (Math.abs(value) >= 1024 && power < BINARY.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${trimmed(value)}${BINARY[power]}`;
}

function trimmed(value) {
  return Number(value.toPrecision(Math.abs(value) >= 100 ? 4 : 3)).toLocaleString("en");
}

// Virtual time, since the beginning: `0s`, `1.2s`, `4m 10s`, `2h 5m`, `3d 4h`.
export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${Number(seconds.toFixed(seconds < 10 ? 2 : 1))}s`;
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [big, small] = [units[first], units[first + 1]];
  const whole = Math.floor(seconds / big[1]);
  const rest = Math.floor((seconds % big[1]) / small[1]);
  return rest ? `${whole}${big[0]} ${rest}${small[0]}` : `${whole}${big[0]}`;
}

// Orders names as people do: node-2 before node-10.
export const byName = new Intl.Collator("en", { numeric: true }).compare;
