// Where tokens go, as a map of layers and experts or ranks (sim/explorer/views.hpp).

import { byId, fill, h } from "./dom";
import { grouped, significant } from "./format";
import type { View } from "./views";

interface Experts {
  experts: number; per_token: number; even: boolean; routing: string; layers: number[];
  ranks: number; micro_batches: number; groups: number; mean_rows: number;
  expert_over_mean: number[][]; rank_over_mean: number[][]; rank_most_over_mean: number[][];
}

const axis = 34;       // Of layers' numbers.
const low = [0, 114, 178], middle = [244, 240, 230], middleDark = [52, 50, 46], high = [213, 94, 0];

/** "1.84 x the mean". */
function times(value: number): string { return `${significant(value, 3)} × the mean`; }

export class ExpertsView implements View {
  readonly name = "experts";
  private data: Experts | null = null;
  private of: "expert" | "rank" | "most" = "expert";
  private layer = 0;
  private column = 0;
  private farthest = 4;  // So many times the mean, or as little of it, has the full colour.
  private readonly canvas = byId<HTMLCanvasElement>("experts-canvas");

  /** `wanted`: whether the model of the answer has experts. */
  constructor(readonly wanted: () => boolean) {
    for (const of of ["expert", "rank", "most"] as const)
      byId(`experts-of-${of}`).addEventListener("change", () => { this.look(of); });
    const point = (event: PointerEvent) => {
      const { wide, tall } = this.cell();
      this.go(Math.floor(event.offsetY / tall), Math.floor((event.offsetX - axis) / wide));
    };
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("keydown", (event) => {
      const acts: Record<string, () => void> = {
        ArrowLeft: () => this.go(this.layer, this.column - 1),
        ArrowRight: () => this.go(this.layer, this.column + 1),
        ArrowUp: () => this.go(this.layer - 1, this.column),
        ArrowDown: () => this.go(this.layer + 1, this.column),
        m: () => this.goToMost(),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      acts[event.key]();
    });
    const box = byId("experts");
    new ResizeObserver(() => { if (this.data && box.clientWidth > 0) this.draw(); }).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data: unknown): void {
    this.data = data as Experts;
    const { even, experts, routing, per_token, mean_rows } = this.data;
    byId("experts-map").hidden = even || experts === 0;
    byId("experts-told").hidden = !even && experts > 0;
    fill(byId("experts-told"), experts === 0 ? "This model has no experts."
      : `Routing “${routing}” is even: each token visits ${per_token} of ${experts} experts, all ` +
        `of which get as many, and each rank computes ${grouped(mean_rows)} rows in a layer and ` +
        "micro-batch. Turn the routing knob to see an uneven one.");
    if (!even && experts > 0) this.look(this.of);
  }

  get shown(): Experts | null { return this.data; }
  get cells(): number[][] {
    const data = this.data!;
    return this.of === "expert" ? data.expert_over_mean
      : this.of === "rank" ? data.rank_over_mean : data.rank_most_over_mean;
  }

  look(of: "expert" | "rank" | "most"): void {
    this.of = of;
    const most = Math.max(...this.cells.flat());
    this.farthest = Math.min(16, Math.max(2, 2 ** Math.ceil(Math.log2(most))));
    this.goToMost();
  }

  goToMost(): void {
    let best = [0, 0];
    this.cells.forEach((row, i) => row.forEach((value, k) => {
      if (value > this.cells[best[0]][best[1]]) best = [i, k];
    }));
    this.go(best[0], best[1]);
  }

  private go(layer: number, column: number): void {
    if (!this.data || this.cells.length === 0) return;
    this.layer = Math.min(this.cells.length - 1, Math.max(0, layer));
    this.column = Math.min(this.cells[0].length - 1, Math.max(0, column));
    this.draw();
    this.describe();
  }

  private cell(): { wide: number; tall: number } {
    const columns = this.cells[0]?.length ?? 1, rows = this.cells.length;
    return { wide: (byId("experts").clientWidth - axis) / columns,
             tall: Math.max(5, Math.min(18, 420 / rows)) };
  }

  private draw(): void {
    const { data } = this;
    if (!data || data.even || data.experts === 0) return;
    const { wide, tall } = this.cell();
    const ratio = devicePixelRatio || 1;
    const width = byId("experts").clientWidth, rows = this.cells.length;
    const height = rows * tall + 18;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(this.canvas);
    context.fillStyle = style.getPropertyValue("--ground").trim();
    context.fillRect(0, 0, width, height);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    fill(byId("experts-legend"), legend(this.farthest, dark));
    const gap = wide > 5 && tall > 5 ? 1 : 0;
    this.cells.forEach((row, i) => row.forEach((value, k) => {
      context.fillStyle = shade(value, this.farthest, dark);
      context.fillRect(axis + k * wide, i * tall, wide - gap + (gap ? 0 : 0.5),
                       tall - gap + (gap ? 0 : 0.5));
    }));
    context.fillStyle = context.strokeStyle = style.getPropertyValue("--ink").trim();
    context.font = "10.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.ceil(13 / tall);
    for (let i = 0; i < rows; i += every)
      context.fillText(String(data.layers[i]), axis - 5, (i + 0.5) * tall);
    context.textAlign = "center";
    const columns = this.cells[0].length;
    const step = Math.max(1, Math.ceil((columns * 46) / width / 4) * 4);
    for (let k = 0; k < columns; k += columns <= 16 ? 1 : step)
      context.fillText(String(k), axis + (k + 0.5) * wide, height - 8);
    context.lineWidth = 2;
    context.strokeRect(axis + this.column * wide - 1, this.layer * tall - 1, wide + 1, tall + 1);
  }

  private describe(): void {
    const data = this.data!;
    const value = this.cells[this.layer][this.column];
    const what = this.of === "expert" ? `expert ${this.column}`
      : `rank ${this.column} of its group`;
    const amount = this.of === "expert"
      ? `${significant((100 * value * data.per_token) / data.experts, 3)} % of the tokens visit it`
      : `${grouped(value * data.mean_rows)} rows` +
        (this.of === "most" ? " in its fullest micro-batch" : " a micro-batch");
    const all = this.cells.flat();
    fill(byId("experts-details"),
         h("p", {}, h("strong", {}, times(value)),
           ` layer ${data.layers[this.layer]}, ${what}: ${amount}`),
         h("p", { class: "quiet" },
           `From ${times(Math.min(...all))} to ${times(Math.max(...all))}; ` +
           `${data.micro_batches} micro-batches of ${data.groups} expert groups were drawn or ` +
           "looked up. Arrows go from cell to cell, m to the fullest."));
  }
}

/** By the logarithm: half the mean is as far from it as twice. */
function shade(value: number, farthest: number, dark: boolean): string {
  const far = Math.max(-1, Math.min(1, Math.log(Math.max(value, 1e-6)) / Math.log(farthest)));
  const from = dark ? middleDark : middle, to = far < 0 ? low : high;
  const [r, g, b] = from.map((c, i) => Math.round(c + (to[i] - c) * Math.abs(far)));
  return `rgb(${r},${g},${b})`;
}

function legend(farthest: number, dark: boolean): HTMLElement {
  const half = Math.sqrt(farthest);
  return h("ul", { class: "legend" }, ...[1 / farthest, 1 / half, 1, half, farthest].map((value, i) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = shade(value, farthest, dark);
    const end = i === 0 ? " or less" : i === 4 ? " or more" : "";
    return h("li", {}, swatch, i === 2 ? "the mean" : `${significant(value, 2)} ×${end}`);
  }));
}
