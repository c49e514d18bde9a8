// What the page asks: options of `orrery estimate` by name. It lives in the address, behind '#', so
// that a link holds all of it, and in a list for going back.

export type State = Record<string, string>;

export function encode(state: State): string {
  return Object.entries(state)
    .map(([key, word]) => encodeURIComponent(key) + "=" +
      encodeURIComponent(word).replace(/%(2C|3A|2F|2B)/g, (c) => decodeURIComponent(c)))
    .join("&");
}

export function decode(fragment: string): State {
  const state: State = {};
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const sign = part.indexOf("=");
    if (sign < 1) continue;
    try {
      const word = decodeURIComponent(part.slice(sign + 1));
      if (word !== "") state[decodeURIComponent(part.slice(0, sign))] = word;
    } catch {
      // No such escape: half a link says what it can.
    }
  }
  return state;
}

/** With changes made; "" leaves a key open. */
export function changed(state: State, changes: State): State {
  const next = { ...state, ...changes };
  for (const key of Object.keys(next)) if (next[key] === "") delete next[key];
  return next;
}

export function same(a: State, b: State): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** A state, and those before and after it. */
export class History {
  private past: State[] = [];
  private future: State[] = [];
  private lastKey = "";
  private lastAt = 0;

  constructor(public now: State) {}

  /** A slider that is drawn along is one step: `key` tells which is. */
  go(next: State, key = ""): void {
    if (same(next, this.now)) return;
    const at = performance.now();
    const along = key !== "" && key === this.lastKey && at - this.lastAt < 1000;
    if (!along) this.past.push(this.now);
    if (this.past.length > 500) this.past.shift();
    this.future = [];
    this.lastKey = key;
    this.lastAt = at;
    this.now = next;
  }

  /** What the server made of it, which is no step of the user's. */
  settle(state: State): void {
    this.now = state;
  }

  /** Back to the step before one that is none: nothing can be asked of it. */
  reject(state: State): void {
    if (!same(state, this.now)) return;
    this.now = this.past.pop() ?? this.now;
    this.lastKey = "";
  }

  get canUndo(): boolean { return this.past.length > 0; }
  get canRedo(): boolean { return this.future.length > 0; }

  undo(): void {
    const before = this.past.pop();
    if (!before) return;
    this.future.push(this.now);
    this.now = before;
    this.lastKey = "";
  }

  redo(): void {
    const after = this.future.pop();
    if (!after) return;
    this.past.push(this.now);
    this.now = after;
    this.lastKey = "";
  }
}
