// Elements are made by name and filled with text, never with markup: a name from a file can hold
// anything.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | boolean | number | EventListener | null | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, ...children);
  return element;
}

export function add(to: Element, ...children: Child[]): void {
  for (const child of children) if (child) to.append(child);
}

export function fill(to: Element, ...children: Child[]): void {
  to.replaceChildren();
  add(to, ...children);
}

export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Said to those who listen instead of looking. */
export function announce(text: string): void {
  byId("announcer").textContent = text;
}
