// Colours after Okabe and Ito (Color Universal Design, 2008), which people with any colour vision
// tell apart; the same part has the same colour in every drawing, and every drawing also says it.

export const colourOf: Record<string, string> = {
  // Parts of the critical path and kinds of slices.
  matrix_products: "#0072b2", forward: "#56b4e9", kernels: "#8aa9c4",
  attention: "#56b4e9", backward: "#0072b2",
  memory_bound: "#9ec9e2", weight_gradient: "#44618f",
  slowed_down: "#b9a44c",
  tensor_parallel: "#e69f00", tensor: "#e69f00",
  context_parallel: "#f0e442", context: "#d9cd2b",
  expert_parallel: "#cc79a7", expert: "#cc79a7",
  pipeline: "#d55e00", transfer: "#d55e00",
  data_parallel: "#009e73", data: "#009e73",
  optimizer: "#7b5ea7",
};

const others = ["#8a8f98", "#a98467", "#5f7a76", "#b08ea2", "#6c757d", "#c2b280"];
const given = new Map<string, string>();

export function colour(name: string): string {
  const known = colourOf[name];
  if (known) return known;
  if (!given.has(name)) given.set(name, others[given.size % others.length]);
  return given.get(name)!;
}

/** Black or white, whichever reads better on it (WCAG 2.1, relative luminance). */
export function inkOn(hex: string): string {
  const part = (at: number) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.179 ? "#000" : "#fff";
}
