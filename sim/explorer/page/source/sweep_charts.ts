// Points of a grid of plans: a curve over one key, a map over two, and all of them by step and
// memory and by days and rent. Of the page's own sweeps and of reports of orrery sweep.

import { Chart, type Drawing, type Mark, type Point } from "./chart";
import { fill, h } from "./dom";
import * as text from "./format";

export interface GridAxis { key: string; values: string[] }
/** A point that has an answer. */
export interface GridRow {
  at: number[]; memory_bytes: number; capacity_bytes: number; step_time_s?: number;
  tokens_per_s_per_gpu?: number; mfu?: number; training_time_s?: number;
  rent_usd?: { low: number; high: number } | null; tie?: boolean;
}
export interface GridFigure {
  name: string; less: boolean; of(row: GridRow): number | undefined; text(value: number): string;
}

export const figures: GridFigure[] = [
  { name: "tokens/s/GPU", less: false, of: (row) => row.tokens_per_s_per_gpu,
    text: (v) => text.significant(v) },
  { name: "step time", less: true, of: (row) => row.step_time_s, text: (v) => text.seconds(v, 3) },
  { name: "memory of a GPU", less: true, of: (row) => row.memory_bytes,
    text: (v) => text.gigabytes(v) },
  { name: "MFU", less: false, of: (row) => row.mfu, text: (v) => text.percent(v) },
  { name: "days", less: true, of: (row) => row.training_time_s && row.training_time_s / 86400,
    text: (v) => text.significant(v, 3) },
  { name: "rent", less: true, of: (row) => row.rent_usd && (row.rent_usd.low + row.rent_usd.high) / 2
      || undefined, text: (v) => text.dollars(v) },
];

export function placeWords(axes: GridAxis[], at: number[]): string {
  return axes.map((axis, i) => `${axis.key} ${axis.values[at[i]]}`).join(" · ");
}

/** Best first: by the first figure that the rows have. */
export function ranked(rows: GridRow[]): GridRow[] {
  const by = figures.find((figure) => rows.some((row) => figure.of(row) !== undefined))!;
  const worth = (row: GridRow) => (by.less ? 1 : -1) * (by.of(row) ?? Infinity);
  return [...rows].sort((a, b) => worth(a) - worth(b));
}

function titleOf(axes: GridAxis[], row: GridRow): string {
  const said = figures.filter((figure) => figure.of(row) !== undefined).slice(0, 3)
    .map((figure) => `${figure.name} ${figure.text(figure.of(row)!)}`);
  return `${placeWords(axes, row.at)}: ${said.join(", ")}`;
}

type Act = ((row: GridRow) => void) | null;

// A colour from light to dark where more is darker, and ink that stands out from it by 4.5 to 1 or
// more (WCAG 2.1, 1.4.3); what is best has a frame as well as the number.
function shade(share: number): { ground: string; ink: string } {
  const from = [236, 243, 249], to = [0, 68, 124];
  const rgb = from.map((low, i) => Math.round(low + share * (to[i] - low)));
  const [r, g, b] = rgb.map((value) => value / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return { ground: `rgb(${rgb.join(",")})`, ink: light > 0.18 ? "#000" : "#fff" };
}

export class GridDrawings {
  private axes: GridAxis[] = [];
  private rows: GridRow[] = [];
  private figure = figures[0];
  private x = 0;
  private y = 1;
  private act: Act = null;
  private now: number[] | null = null;
  private readonly map = h("div", { class: "grid-map" });
  private readonly curve = h("div", {});
  private readonly step = h("div", {});
  private readonly cost = h("div", {});
  private readonly tools = h("div", { class: "ask" });
  private readonly charts: Record<"curve" | "step" | "cost", Chart>;

  constructor(box: HTMLElement, private readonly name: string) {
    fill(box, this.tools, this.map, h("div", { class: "charts" }, this.curve, this.step, this.cost));
    this.charts = { curve: new Chart(this.curve), step: new Chart(this.step),
                    cost: new Chart(this.cost) };
  }

  /** `now`: the place of the plan of the knobs, if it is one of the grid's. */
  show(axes: GridAxis[], rows: GridRow[], act: Act, now: number[] | null): void {
    const fresh = axes.map((axis) => axis.key).join() !== this.axes.map((axis) => axis.key).join();
    Object.assign(this, { axes, rows, act, now });
    if (fresh) {
      this.x = 0;
      this.y = 1;
    }
    const there = figures.filter((figure) => rows.some((row) => figure.of(row) !== undefined));
    if (!there.includes(this.figure) && there.length > 0) this.figure = there[0];
    this.offer(there);
    this.draw();
  }

  private offer(there: GridFigure[]): void {
    const choice = (id: string, name: string, words: string[], now: number,
                    take: (index: number) => void) => {
      const list = h("select", { id: `${this.name}-${id}`, change: () => {
        take(list.selectedIndex);
        this.draw();
      } }, ...words.map((word) => h("option", {}, word)));
      list.selectedIndex = now;
      return h("div", {}, h("label", { for: list.id }, name), list);
    };
    const keys = this.axes.map((axis) => axis.key);
    fill(this.tools, this.rows.length > 0 && there.length > 1 &&
           choice("figure", "Shown", there.map((figure) => figure.name),
                  there.indexOf(this.figure), (i) => { this.figure = there[i]; }),
         this.rows.length > 0 && keys.length > 1 &&
           choice("x", "Across", keys, this.x, (i) => {
             if (i === this.y) this.y = this.x;
             this.x = i;
             this.offer(there);
           }),
         this.rows.length > 0 && keys.length > 1 &&
           choice("y", "Down", keys, this.y, (i) => {
             if (i === this.x) this.x = this.y;
             this.y = i;
             this.offer(there);
           }));
  }

  // Of several points in one place the best.
  private bestAt(places: (row: GridRow) => string): Map<string, GridRow> {
    const best = new Map<string, GridRow>();
    const worth = (row: GridRow) => (this.figure.less ? 1 : -1) * this.figure.of(row)!;
    for (const row of this.rows) {
      if (this.figure.of(row) === undefined) continue;
      const place = places(row), known = best.get(place);
      if (!known || worth(row) < worth(known)) best.set(place, row);
    }
    return best;
  }

  private draw(): void {
    const { axes } = this;
    const numbers = axes.length === 1 && axes[0].values.every((value) => Number(value) > 0);
    this.map.hidden = axes.length < 1 || numbers || this.rows.length === 0;
    if (!this.map.hidden) this.drawMap();
    this.charts.curve.show(numbers ? this.curveDrawing() : null);
    this.charts.step.show(this.stepDrawing());
    this.charts.cost.show(this.costDrawing());
  }

  private drawMap(): void {
    const { axes, figure, x, y } = this;
    const lines = axes.length > 1 ? axes[y].values.map((_, i) => i) : [0];
    const place = (i: number, j: number) => `${i},${j}`;
    const best = this.bestAt((row) => place(row.at[x], axes.length > 1 ? row.at[y] : 0));
    const all = [...best.values()].map((row) => figure.of(row)!);
    const low = Math.min(...all), high = Math.max(...all);
    const top = figure.less ? low : high;
    const cell = (i: number, j: number) => {
      const row = best.get(place(i, j));
      if (!row) return h("td", { class: "none", title: "no plan that runs" }, "–");
      const value = figure.of(row)!;
      const { ground, ink } = shade(high > low ? (value - low) / (high - low) : 0.2);
      const isNow = this.now !== null && row.at.every((at, axis) => at === this.now![axis]);
      const said = `${figure.text(value)}${row.tie ? " =" : ""}`;
      const act = this.act;
      const content = act ? h("button", { type: "button", click: () => act(row) }, said) : said;
      const td = h("td", { title: titleOf(axes, row),
                           class: `${value === top ? "best" : ""}${isNow ? " now" : ""}` }, content);
      td.style.background = ground;
      td.style.color = ink;
      return td;
    };
    const over = axes.length > 2 ? h("p", { class: "quiet" }, "Each cell is the best over " +
      axes.filter((_, i) => i !== x && i !== y).map((axis) => axis.key).join(" and ") + ".") : null;
    fill(this.map, h("table", {},
      h("caption", {}, `${figure.name}, framed: the best; darker is more`),
      h("thead", {}, h("tr", {},
        h("th", {}, axes.length > 1 ? `${axes[y].key} ↓  ${axes[x].key} →` : axes[x].key),
        ...axes[x].values.map((value) => h("th", { scope: "col" }, value)))),
      h("tbody", {}, ...lines.map((j) => h("tr", {},
        h("th", { scope: "row" }, axes.length > 1 ? axes[y].values[j] : ""),
        ...axes[x].values.map((_, i) => cell(i, j)))))), over);
  }

  private markOf(row: GridRow, first: GridRow | undefined): Mark {
    if (this.now && row.at.every((at, axis) => at === this.now![axis])) return "now";
    return row === first ? "first" : row.tie ? "tie" : "seen";
  }

  private point(row: GridRow, first: GridRow | undefined, x: number, y: number,
                across?: [number, number]): Point {
    const mark = this.markOf(row, first), act = this.act;
    return { x, y, mark, across, title: titleOf(this.axes, row),
             label: mark === "now" ? "now" : row === first ? "best" : undefined,
             act: act ? () => act(row) : undefined };
  }

  private curveDrawing(): Drawing {
    const [axis] = this.axes, { figure } = this;
    const rows = this.rows.filter((row) => figure.of(row) !== undefined);
    const numbers = axis.values.map(Number);
    const first = [...this.bestAt(() => "").values()][0];
    return {
      label: `${figure.name} by ${axis.key}`, line: true, fromZero: true,
      x: { title: axis.key, text: (v) => text.significant(v, v < 100 ? 2 : 4).replace(/\.0+$/, ""),
           log: Math.max(...numbers) >= 8 * Math.min(...numbers) },
      y: { title: figure.name, text: figure.text },
      points: rows.map((row) => {
        const point = this.point(row, first, numbers[row.at[0]], figure.of(row)!);
        return { ...point, mark: point.mark === "seen" ? "listed" as const : point.mark };
      }),
    };
  }

  private stepDrawing(): Drawing | null {
    const rows = this.rows.filter((row) => row.step_time_s !== undefined);
    if (rows.length === 0) return null;
    const [first] = ranked(rows);
    return {
      label: "Points by step time and memory",
      x: { title: "step time", text: (v) => text.seconds(v, 3) },
      y: { title: "share of a GPU’s memory", text: (v) => text.percent(v, 0) },
      points: rows.map((row) => this.point(row, first, row.step_time_s!,
                                           row.memory_bytes / row.capacity_bytes)),
    };
  }

  private costDrawing(): Drawing | null {
    const rows = this.rows.filter((row) => row.training_time_s !== undefined && row.rent_usd);
    if (rows.length === 0) return null;
    const [first] = ranked(rows), few = rows.length <= 60;
    return {
      label: "Points by days of training and rent",
      x: { title: "days of training", text: (v) => text.significant(v, 3) },
      y: { title: few ? "rent, and its range" : "rent, middle of its range",
           text: (v) => text.dollars(v) },
      points: rows.map((row) => this.point(
        row, first, row.training_time_s! / 86400, (row.rent_usd!.low + row.rent_usd!.high) / 2,
        few ? [row.rent_usd!.low, row.rent_usd!.high] : undefined)),
    };
  }
}
