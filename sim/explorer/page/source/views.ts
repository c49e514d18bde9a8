// Drawings that are asked for when they are opened, and from then on with every answer: what nobody
// looks at is neither computed nor sent.

import { byId, fill, h } from "./dom";
import { same, State } from "./state";

/** A drawing inside of <details id="view-NAME">. */
export interface View {
  name: string;                 // Also of the question that it asks.
  show(data: unknown): void;
  wanted?(): boolean;           // Whether the answer has anything of it to show.
}

type Ask = (kind: string, state: State, signal: AbortSignal) => Promise<unknown>;

class OpenedView {
  private shown: State | null = null;
  private asking: AbortController | null = null;
  private readonly box: HTMLDetailsElement;
  private readonly failure = h("p", { class: "failure", hidden: true });
  /** Milliseconds from a question to its picture, for who measures. */
  readonly took: number[] = [];

  constructor(readonly view: View, private readonly ask: Ask,
              private readonly now: () => State | null, toggled: () => void) {
    this.box = byId<HTMLDetailsElement>(`view-${view.name}`);
    this.box.append(this.failure);
    this.box.addEventListener("toggle", () => {
      this.follow();
      toggled();
    });
  }

  /** What it waits for is of no use any more. */
  cancel(): void {
    this.asking?.abort();
    this.asking = null;
  }

  get isOpen(): boolean { return this.box.open; }
  set isOpen(open: boolean) { this.box.open = open; }

  async follow(): Promise<void> {
    const state = this.now();
    this.box.hidden = !state || this.view.wanted?.() === false;
    if (!state || this.box.hidden || !this.box.open) return;
    if (this.shown && same(this.shown, state)) return;
    this.asking?.abort();
    const mine = this.asking = new AbortController();
    const begun = performance.now();
    this.box.setAttribute("aria-busy", "true");
    try {
      const data = await this.ask(this.view.name, state, mine.signal);
      if (mine.signal.aborted) return;
      this.failure.hidden = true;
      this.view.show(data);
      this.shown = state;
      this.took.push(performance.now() - begun);
    } catch (error) {
      if (mine.signal.aborted) return;
      this.shown = null;
      this.failure.hidden = false;
      fill(this.failure, (error as Error).message);
    }
    this.box.removeAttribute("aria-busy");
  }
}

export class Views {
  private readonly all: OpenedView[];
  /** `now`: the state of the answer that is shown; null: it has no time. `toggled`: one was opened
      or closed. */
  constructor(views: View[], ask: Ask, now: () => State | null, toggled: () => void) {
    this.all = views.map((view) => new OpenedView(view, ask, now, toggled));
  }

  /** Names of those that are open, "memory,cluster"; others are no views. */
  get opened(): string {
    return this.all.filter((one) => one.isOpen).map((one) => one.view.name).join(",");
  }
  set opened(names: string) {
    for (const one of this.all) one.isOpen = names.split(",").includes(one.view.name);
  }

  /** Another answer is asked for; follow() comes after it. */
  cancel(): void {
    for (const view of this.all) view.cancel();
  }

  /** Another answer is shown. */
  follow(): void {
    for (const view of this.all) view.follow();
  }

  took(name: string): number[] {
    return this.all.find((view) => view.view.name === name)?.took ?? [];
  }
}
