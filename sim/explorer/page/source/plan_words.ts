// A plan in few words.

/** Of "--tp 8 --sp true --recompute none": "tp 8 · sp · recompute none". */
export function planWords(flags: string): string {
  const words: string[] = [];
  for (const match of flags.matchAll(/--(\w+) (\S+)/g)) {
    const key = match[1].replaceAll("_", "-");
    if (match[2] === "true") words.push(key);
    else if (match[2] !== "false") words.push(`${key} ${match[2]}`);
  }
  return words.join(" · ");
}
