// Elements of drawings, as dom.ts makes those of text.

type Child = Node | string | null | undefined | false;

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, props: Record<string, string | number | EventListener | false | null> = {},
  ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "number") element.setAttribute(name, value.toFixed(2));
    else element.setAttribute(name, value);
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A drawing as wide as where it stands, in pixels. */
export function drawing(width: number, height: number, label: string,
                        ...children: Child[]): SVGSVGElement {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                    "aria-label": label }, ...children);
}
