// The weights of the score plugins, found in and put back into the text of a configuration.

// [{plugin, weight, line, profile}] of the lists of plugins; lines count from 0.
export function weightsIn(text) {
  const found = [];
  let inPlugins = false;
  let profile = "";
  let plugin = "";
  text.split("\n").forEach((line, i) => {
    const named = /^\s*-?\s*schedulerName:\s*(\S+)/.exec(line);
    if (named) profile = named[1];
    if (/^\s*-?\s*plugins:\s*$/.test(line)) inPlugins = true;
    if (/^\s*-?\s*pluginConfig:/.test(line)) inPlugins = false;
    if (!inPlugins) return;
    const name = /^\s*-\s*name:\s*(\S+)/.exec(line);
    if (name) plugin = name[1];
    const weight = /^\s*weight:\s*(\d+)\s*$/.exec(line);
    if (weight && plugin) found.push({ plugin, weight: Number(weight[1]), line: i, profile });
  });
  return found;
}

export function withWeight(text, line, weight) {
  const lines = text.split("\n");
  lines[line] = lines[line].replace(/\d+/, String(weight));
  return lines.join("\n");
}
