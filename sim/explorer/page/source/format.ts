// Figures as people read them. What is shown is rounded here and nowhere else.

export function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function significant(value: number, digits = 4): string {
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: Math.max(0, digits - whole),
    maximumFractionDigits: Math.max(0, digits - whole),
  });
}

export function seconds(value: number, digits = 4): string {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-6) return significant(value * 1e9, digits) + " ns";
  if (size < 1e-3) return significant(value * 1e6, digits) + " µs";
  if (size < 1) return significant(value * 1e3, digits) + " ms";
  return significant(value, digits) + " s";
}

export function span(value: number): string {
  if (value < 120) return seconds(value, 3);
  if (value < 2 * 3600) return significant(value / 60, 3) + " min";
  if (value < 2 * 86400) return significant(value / 3600, 3) + " hours";
  return significant(value / 86400, 3) + " days";
}

export function gigabytes(bytes: number): string {
  return significant(bytes * 1e-9, 3) + " GB";
}

export function bytes(value: number): string {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const)
    if (value >= size) return significant(value / size, 3) + " " + unit;
  return grouped(value) + " B";
}

/** Parameters: "79.7 B". */
export function count(value: number): string {
  for (const [unit, size] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["k", 1e3]] as const)
    if (value >= size) return significant(value / size, 3) + " " + unit;
  return grouped(value);
}

export function percent(share: number, decimals = 1): string {
  return (share * 100).toFixed(decimals) + " %";
}

export function signedPercent(share: number): string {
  const text = (Math.abs(share) * 100).toFixed(1) + " %";
  return (share < 0 ? "−" : "+") + text;
}

export function signed(value: number, text: (size: number) => string): string {
  return (value < 0 ? "−" : "+") + text(Math.abs(value));
}

export function dollars(value: number): string {
  for (const [unit, size] of [["billion", 1e9], ["million", 1e6]] as const)
    if (value >= size) return "$" + significant(value / size, 3) + " " + unit;
  return "$" + grouped(value);
}

/** "$0.55 – 2.05 million": both ends in the unit of the higher. */
export function dollarRange(low: number, high: number): string {
  if (low === high) return dollars(low);
  for (const [unit, size] of [["billion", 1e9], ["million", 1e6]] as const)
    if (high >= size)
      return `$${significant(low / size, low < size ? 2 : 3)} – ` +
        `${significant(high / size, 3)} ${unit}`;
  return `$${grouped(low)} – ${grouped(high)}`;
}

/** "pp_exposed" as "pp exposed". */
export function words(key: string): string {
  return key.replaceAll("_", " ");
}
