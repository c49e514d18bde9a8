// A grid of plans: up to three keys with several values each, computed point by point.

import type { Answer, Knob } from "./api";
import { announce, byId, fill, h } from "./dom";
import * as text from "./format";
import { title } from "./knobs_view";
import { lines, type SweepLine } from "./search_api";
import type { State } from "./state";
import { type GridAxis, GridDrawings, type GridRow, placeWords, ranked } from "./sweep_charts";

const mostAxes = 3, usualValues = 8, listed = 10;

interface Field { key: HTMLSelectElement; values: HTMLInputElement; own: boolean }

export class SweepView {
  /** idle, running, done, stopped or failed. */
  stage = "idle";
  rows: (GridRow & { state: State })[] = [];
  command = "";

  private answer: Answer | null = null;
  private knobs: Knob[] = [];
  private abort: AbortController | null = null;
  private axes: GridAxis[] = [];
  private points = 0;
  private refused = new Map<string, number>();  // Points that cannot run, by why.
  private waiting = 0;
  private readonly button = byId<HTMLButtonElement>("sweep");
  private readonly drawings = new GridDrawings(byId("sweep-drawings"), "sweep");
  private readonly fields: Field[] = Array.from({ length: mostAxes }, (_, i) => this.field(i));

  constructor(private readonly load: (state: State) => void) {
    fill(byId("sweep-form"), ...this.fields.map(({ key, values }, i) =>
      h("div", {}, h("label", { for: key.id }, i === 0 ? "Vary" : "and"), key, values)));
    byId("sweep-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.stage === "running") this.stop();
      else this.start();
    });
  }

  private field(index: number): Field {
    const name = `sweep-key-${index}`;
    const field: Field = {
      own: false,
      key: h("select", { id: name, change: () => {
        field.own = false;
        this.suggest(field);
      } }),
      values: h("input", {
        type: "text", id: `sweep-values-${index}`, "aria-label": `values of key ${index + 1}`,
        placeholder: "1,2,4 or 256..2048*2", autocomplete: "off", spellcheck: "false",
        input: () => { field.own = field.values.value !== ""; },
      }),
    };
    return field;
  }

  /** Where knobs may be turned is what can be varied. */
  offer(knobs: Knob[]): void {
    this.knobs = knobs.filter((knob) => knob.values.length > 1);
    const usual = ["tp", "gbs", ""];
    this.fields.forEach((field, i) => {
      const before = field.key.options.length === 0 ? usual[i] : field.key.value;
      fill(field.key, h("option", { value: "" }, "nothing else"),
           ...this.knobs.map((knob) => h("option", { value: knob.key }, title(knob.key))));
      field.key.value = before;
      if (field.key.selectedIndex < 0) field.key.value = "";
      this.suggest(field);
    });
  }

  // Legal values around the present one.
  private suggest(field: Field): void {
    field.values.hidden = field.key.value === "";
    const knob = this.knobs.find((one) => one.key === field.key.value);
    if (!knob || field.own) return;
    const legal = knob.values.filter((value) => !value.why_not && !value.also)
      .map((value) => value.word);
    const at = Math.max(0, legal.indexOf(knob.now));
    const first = Math.max(0, Math.min(at - usualValues / 2, legal.length - usualValues));
    field.values.value = legal.slice(first, first + usualValues).join(",");
  }

  follow(answer: Answer): void {
    this.answer = answer;
    this.draw();
  }

  async start(): Promise<void> {
    if (!this.answer) return;
    this.abort?.abort();
    const mine = this.abort = new AbortController();
    const state = { ...this.answer.state }, axes: Record<string, string> = {};
    for (const { key, values } of this.fields)
      if (key.value !== "" && values.value.trim() !== "") {
        axes[key.value] = values.value.trim();
        delete state[key.value];
      }
    this.rows = [];
    this.axes = [];
    this.refused.clear();
    this.command = "";
    this.points = 0;
    this.enter("running");
    try {
      await lines<SweepLine>("sweep", { state, axes }, mine.signal,
                             (line) => { if (!mine.signal.aborted) this.take(line); });
      if (!mine.signal.aborted && this.stage === "running") this.enter("done");
    } catch (error) {
      if (!mine.signal.aborted) this.fail((error as Error).message);
    }
  }

  stop(): void {
    this.abort?.abort();
    this.enter("stopped");
  }

  private fail(message: string): void {
    this.enter("failed");
    byId("sweep-said").textContent = message[0].toUpperCase() + message.slice(1);
  }

  private take(line: SweepLine): void {
    if ("error" in line) this.fail(line.error);
    else if ("command" in line) {
      this.command = line.command;
      this.axes = line.axes;
      this.points = line.points;
      byId("sweep-command").textContent = line.command;
      byId("sweep-command-part").hidden = false;
    } else if ("best" in line) {
      const ties = new Set(line.ties.map((at) => at.join()));
      for (const row of this.rows) row.tie = ties.has(row.at.join());
    } else if ("why_not" in line) {
      this.refused.set(line.why_not, (this.refused.get(line.why_not) ?? 0) + 1);
    } else {
      this.rows.push(line);
    }
    // Points come faster than a list can be drawn.
    if (this.waiting === 0)
      this.waiting = window.setTimeout(() => {
        this.waiting = 0;
        if (this.stage === "running") this.draw();
      }, 150);
  }

  private enter(stage: string): void {
    this.stage = stage;
    this.button.textContent = stage === "running" ? "Stop" : "Compute";
    if (stage !== "failed") this.draw();
    if (stage === "done") announce(`${this.rows.length} of ${this.points} plans run`);
  }

  private get none(): number {
    return [...this.refused.values()].reduce((sum, count) => sum + count, 0);
  }

  private said(): string {
    const come = this.rows.length + this.none;
    if (this.stage === "idle") return "";
    if (this.stage === "running") return `${text.grouped(come)} of ${text.grouped(this.points)} points`;
    const most = [...this.refused].sort((a, b) => b[1] - a[1])[0];
    return (this.stage === "stopped" ? `Stopped after ${text.grouped(come)} of ` : "") +
      `${text.grouped(this.points)} points: ${text.grouped(this.rows.length)} run` +
      (most ? `, ${text.grouped(this.none)} do not; most often: ${most[0]}` : "") + "." +
      (this.rows.some((row) => row.tie)
        ? " = may in truth have as many tokens/s/GPU as the best (9 in 10)." : "");
  }

  // The place of the plan of the knobs.
  private now(): number[] | null {
    const plan = this.answer?.result?.plan, state = this.answer?.state;
    if (!plan || !state) return null;
    const at = this.axes.map((axis) =>
      axis.values.indexOf(String(plan[axis.key] ?? state[axis.key] ?? "")));
    return at.length > 0 && at.every((place) => place >= 0) ? at : null;
  }

  private draw(): void {
    if (this.stage !== "failed") byId("sweep-said").textContent = this.said();
    const load = (row: GridRow) => this.load((row as GridRow & { state: State }).state);
    this.drawings.show(this.axes, this.rows, load, this.now());
    const bills = this.rows.some((row) => row.training_time_s !== undefined);
    const line = (row: GridRow & { state: State }, index: number) => h("tr", {},
      h("td", {}, `${index + 1}${row.tie ? " =" : ""}`),
      h("td", { class: "words" }, h("button", {
        type: "button", id: `swept-${index + 1}`, class: "plan", click: () => this.load(row.state),
        title: "Turn the knobs to this plan",
      }, placeWords(this.axes, row.at))),
      h("td", {}, text.seconds(row.step_time_s!)),
      h("td", {}, text.significant(row.tokens_per_s_per_gpu!)), h("td", {}, text.percent(row.mfu!)),
      h("td", {}, text.percent(row.memory_bytes / row.capacity_bytes)),
      bills && h("td", {}, text.span(row.training_time_s!)),
      bills && h("td", {}, row.rent_usd ? text.dollarRange(row.rent_usd.low, row.rent_usd.high)
        : ""));
    const head = ["step", "tokens/s/GPU", "MFU", "memory", ...(bills ? ["training", "rent"] : [])];
    fill(byId("sweep-list"), this.rows.length > 0 && h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }),
                       h("th", { scope: "col", class: "words" }, "plan"),
                       ...head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...(ranked(this.rows) as (GridRow & { state: State })[]).slice(0, listed)
        .map(line))));
  }
}
