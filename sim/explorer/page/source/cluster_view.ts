// The cluster folded to what differs, its links by load (sim/explorer/cluster_view.hpp).

import { byId, fill, h } from "./dom";
import { bytes, percent, seconds } from "./format";
import { colour } from "./palette";
import { drawing, s } from "./svg";
import type { TimelineView } from "./timeline_view";
import type { View } from "./views";

interface Bundle {
  class: string; direction: string; name: string; links: number; least_fraction: number;
  busy_fraction: number; bytes: number; capacity_bytes_per_s: number;
  by_user: Record<string, number>; over_time: Record<string, number[]>;
}
interface DomainKind { stages: number[]; gpus: number; domains: number; links: Bundle[] }
interface Cluster {
  step_ns: number; step_s: number; from_ns: number; to_ns: number; slices: number;
  domain: { gpus: number; nodes: number; nics: number; nvlink: string; pcie: boolean;
            socket: boolean };
  cables: Record<string, number>; kinds: DomainKind[]; kinds_in_all: number;
  tiers: { name: string; count: number }[]; fabric: Bundle[];
}

const titles: Record<string, string> = {
  nvlink: "NVLink", pcie: "PCIe", nic: "NIC", socket: "socket", "leaf-spine": "leaf–spine",
  "spine-core": "spine–core", local: "local", global: "global", switch: "switch",
};
const plurals: Record<string, string> = { leaf: "leaves", switch: "switches" };
const arrows: Record<string, string> = { up: "\u2009↑", down: "\u2009↓" };
const order = ["nvlink", "pcie", "socket", "nic"];  // From a GPU outwards.
const userOrder = ["tensor", "context", "expert", "pipeline", "data"];
const levels = [0.01, 0.1, 0.3, 0.6];  // A wire is drawn in the first class that its load is below.
const widths = [1, 2, 3.2, 4.5, 6];
const mostDrawn = 8;  // Of identical parts; the rest is a number.

function level(load: number): number {
  const found = levels.findIndex((limit) => load < limit);
  return found < 0 ? levels.length : found;
}
export function shown(load: number): string {
  return load > 0 && load < 0.001 ? "< 0.1 %" : percent(load);
}
function counted(count: number, name: string): string {
  if (count === 1) return `1 ${name}`;
  return `${count.toLocaleString("en-US")} ${plurals[name] ?? name + "s"}`;
}
/** "stages 0–3, 8". */
function stagesText(stages: number[]): string {
  const runs: string[] = [];
  for (let i = 0; i < stages.length;) {
    let end = i;
    while (stages[end + 1] === stages[end] + 1) ++end;
    runs.push(end > i ? `${stages[i]}–${stages[end]}` : String(stages[i]));
    i = end + 1;
  }
  return `${stages.length > 1 ? "stages" : "stage"} ${runs.join(", ")}`;
}

export class ClusterView implements View {
  readonly name = "cluster";
  private data: Cluster | null = null;
  private slice = -1;  // Of the step; -1: all of it.
  private user = "";   // "": all.
  private chosen = ""; // Of which the curve is drawn: idOf().
  private from = 0;    // Of the step, in nanoseconds: what is looked at, in as many slices.
  private to = 1;
  private follows = true;  // What the timeline shows.
  private fine: Cluster | null = null;  // Of a part of the step.
  private names = new Map<Bundle, string>();
  private fineOf = new Map<string, Bundle>();
  /** Finer slices that came. */
  refined = 0;
  private waiting = 0;
  private drawnAt = 0;
  private asking: AbortController | null = null;
  private readonly time = byId<HTMLInputElement>("cluster-time");

  /** `refine`: the same in finer slices of a part of the step; null: there is no more than that. */
  constructor(private readonly timeline: TimelineView,
              private readonly refine: ((from: number, to: number, signal: AbortSignal) =>
                Promise<unknown>) | null) {
    timeline.followers.push(() => this.lookAlong());
    const follow = byId<HTMLButtonElement>("cluster-follow");
    follow.addEventListener("click", () => {
      this.follows = !this.follows;
      follow.setAttribute("aria-pressed", String(this.follows));
      this.lookAlong();
      this.drawIfSeen();
    });
    this.time.addEventListener("input", () => this.move(Number(this.time.value) - 1));
    byId("cluster-whole").addEventListener("click", () => this.move(-1));
    byId("cluster-busiest").addEventListener("click", () => this.move(this.busiestSlice()));
    new ResizeObserver(() => { if (this.data && byId("cluster").clientWidth > 0) this.draw(); })
      .observe(byId("cluster"));
  }

  show(data: unknown): void {
    this.data = data as Cluster;
    this.fine = null;
    this.asking?.abort();
    this.fineOf.clear();
    [this.from, this.to] = [0, this.data.step_ns];
    this.names = new Map(this.all().map(({ id, bundle }) => [bundle, id]));
    this.time.max = String(this.data.slices);
    if (this.slice >= this.data.slices) this.slice = -1;
    const place = (bundle: Bundle) =>
      2 * order.indexOf(bundle.class) + (bundle.direction === "down" ? 1 : 0);
    for (const links of [this.data.fabric, ...this.data.kinds.map((kind) => kind.links)])
      links.sort((a, b) => place(a) - place(b));
    const sent = new Set(this.all().flatMap((one) => Object.keys(one.bundle.over_time)));
    const users = new Set(userOrder.filter((name) => sent.has(name)));
    if (!users.has(this.user)) this.user = "";
    if (!this.all().some((one) => one.id === this.chosen)) this.chosen = this.busiest()?.id ?? "";
    const choice = (word: string, name: string) => h("span", {},
      h("input", { type: "radio", name: "cluster-user", id: `cluster-user-${word || "all"}`,
                   checked: word === this.user, change: () => { this.user = word; this.draw(); } }),
      h("label", { for: `cluster-user-${word || "all"}` }, name));
    fill(byId("cluster-users"), choice("", "all"), ...[...users].map((name) => choice(name, name)));
    this.lookAlong();
    this.draw();
  }

  // The timeline has moved: the drawing follows, and what was computed for the whole step alone is
  // asked for in finer slices once it stands.
  private lookAlong(): void {
    const data = this.data;
    if (!data || this.timeline.axisWidth === 0) return;
    const looks = this.timeline.looks;
    const [from, to] = this.follows ? [Math.max(0, looks[0]), Math.min(data.step_ns, looks[1])]
      : [0, data.step_ns];
    if (!(to > from) || (from === this.from && to === this.to)) return;
    this.from = from;
    this.to = to;
    clearTimeout(this.waiting);
    // Wires need not be drawn as often as slices are.
    const pause = 60 - (performance.now() - this.drawnAt);
    if (pause <= 0) this.drawIfSeen();
    this.waiting = window.setTimeout(() => {
      this.drawIfSeen();
      const coarse = (of: Cluster) => (of.to_ns - of.from_ns) / of.slices > (to - from) / 60;
      if (this.refine && coarse(this.source())) this.ask(from, to);
    }, 180);
    if (pause > 0) window.setTimeout(() => this.drawIfSeen(), pause);
  }

  /** Of the chosen link, for tests: bytes of all that is looked at, and its load slice by slice. */
  sentInSight(): number { return this.bytesIn(this.chosenBundle(), -1, ""); }
  loadsInSight(): number[] {
    return Array.from({ length: this.data!.slices },
                      (_, i) => this.load(this.chosenBundle(), i, ""));
  }
  private chosenBundle(): Bundle {
    return this.all().find((one) => one.id === this.chosen)!.bundle;
  }

  private drawIfSeen(): void {
    if (byId("cluster").clientWidth > 0) this.draw();
  }

  private async ask(from: number, to: number): Promise<void> {
    const data = this.data!, room = 0.25 * (to - from);
    this.asking?.abort();
    const mine = this.asking = new AbortController();
    const begin = Math.max(0, Math.floor(from - room));
    const end = Math.min(Math.floor(data.step_ns), Math.ceil(to + room));
    try {
      const found = await this.refine!(begin, end, mine.signal) as Cluster;
      if (mine.signal.aborted || this.data !== data) return;
      this.fine = found;
      this.fineOf = new Map(this.all(found).map(({ id, bundle }) => [id, bundle]));
      this.drawIfSeen();
      ++this.refined;
    } catch {
      // The coarse slices stay; a newer question may have overtaken this one.
    }
  }

  // Where loads of what is looked at are in the finest slices.
  private source(): Cluster {
    const { fine, data } = this;
    return fine && fine.from_ns <= this.from && fine.to_ns >= this.to ? fine : data!;
  }

  // The timeline's step has parts of a nanosecond.
  private get whole(): boolean { return this.from < 1 && this.to > this.data!.step_ns - 1; }

  /** Bytes from one time of the step to another, spread evenly over each slice that was sent. */
  private sent(bundle: Bundle, from: number, to: number, user: string): number {
    const source = this.source();
    const of = source === this.data ? bundle : this.fineOf.get(this.names.get(bundle)!) ?? bundle;
    const long = (source.to_ns - source.from_ns) / source.slices;
    const place = (time: number) => (time - source.from_ns) / long;
    const first = Math.max(0, Math.floor(place(from)));
    const last = Math.min(source.slices - 1, Math.ceil(place(to)) - 1);
    let sum = 0;
    for (const [name, list] of Object.entries(of.over_time)) {
      if (user !== "" && user !== name) continue;
      for (let i = first; i <= last; ++i)
        sum += list[i] * (Math.min(place(to), i + 1) - Math.max(place(from), i));
    }
    return sum;
  }
  private edge(slice: number): number {
    return this.from + (slice * (this.to - this.from)) / this.data!.slices;
  }
  /** The same of a slice of what is looked at; -1: of all of that. */
  private bytesIn(bundle: Bundle, slice: number, user: string): number {
    if (slice >= 0) return this.sent(bundle, this.edge(slice), this.edge(slice + 1), user);
    if (this.whole) return user ? bundle.by_user[user] ?? 0 : bundle.bytes;
    return this.sent(bundle, this.from, this.to, user);
  }

  get shown(): Cluster | null { return this.data; }
  /** -1: all that is looked at. */
  move(slice: number): void {
    this.slice = slice;
    this.draw();
  }

  // Every bundle of links with a name for it.
  private all(data = this.data!): { id: string; bundle: Bundle }[] {
    const of = (where: string, list: Bundle[]) => list.map((bundle) =>
      ({ id: `${where}-${bundle.class}-${bundle.direction || "both"}`, bundle }));
    return [...data.kinds.flatMap((kind, i) => of(`kind${i}`, kind.links)),
            ...of("fabric", data.fabric)];
  }
  private busiest() {
    return this.all().sort((a, b) => b.bundle.busy_fraction - a.bundle.busy_fraction)[0];
  }

  /** Share of the time that a link is busy, of the slice and the user that are looked at. */
  load(bundle: Bundle, slice = this.slice, user = this.user): number {
    const data = this.data!, looked = (this.to - this.from) * 1e-9;
    const long = slice >= 0 ? looked / data.slices : this.whole ? data.step_s : looked;
    return this.bytesIn(bundle, slice, user) / (bundle.capacity_bytes_per_s * long);
  }

  private busiestSlice(): number {
    const found = this.all().find((one) => one.id === this.chosen);
    if (!found) return -1;
    let best = 0;
    for (let i = 1; i < this.data!.slices; ++i)
      if (this.load(found.bundle, i) > this.load(found.bundle, best)) best = i;
    return best;
  }

  private draw(): void {
    const data = this.data;
    if (!data) return;
    this.drawnAt = performance.now();
    this.time.value = String(this.slice + 1);
    const span = (from: number, to: number) =>
      `${seconds(from * 1e-9, 4)} to ${seconds(to * 1e-9, 4)}`;
    const said = this.slice >= 0 ? span(this.edge(this.slice), this.edge(this.slice + 1))
      : this.whole ? "the whole step" : `what the timeline shows: ${span(this.from, this.to)}`;
    fill(byId("cluster-when"), said);
    this.time.setAttribute("aria-valuetext", said);
    byId<HTMLButtonElement>("cluster-whole").disabled = this.slice < 0;
    this.drawFabric();
    this.drawKinds();
    this.drawCurve();
  }

  private wire(bundle: Bundle | undefined, x0: number, y0: number, x1: number, y1: number) {
    const load = bundle ? this.load(bundle) : 0;
    return s("line", { class: `wire load${level(load)}`, x1: x0, y1: y0, x2: x1, y2: y1,
                       "stroke-width": widths[level(load)] });
  }

  // A button for each bundle: what it is and how busy, in words.
  private buttons(where: string, links: Bundle[]): HTMLElement {
    return h("div", { class: "bundles" }, ...links.map((bundle) => {
      const id = `${where}-${bundle.class}-${bundle.direction || "both"}`;
      const load = this.load(bundle);
      const mark = h("i", { class: `mark load${level(load)}` });
      return h("button", {
        type: "button", id: `bundle-${id}`, "aria-pressed": String(id === this.chosen),
        title: bundle.name,
        click: () => { this.chosen = id; this.draw(); byId(`bundle-${id}`).focus(); },
      }, mark, `${titles[bundle.class] ?? bundle.class}${arrows[bundle.direction] ?? ""}`,
      h("b", {}, shown(load)));
    }));
  }

  private drawFabric(): void {
    const data = this.data!;
    const box = byId("cluster-fabric");
    const width = Math.max(260, box.clientWidth || byId("cluster").clientWidth);
    const row = 66, left = 92;
    const height = (data.tiers.length - 1) * row + 34;
    const find = (name: string, direction: string) => data.fabric.find((bundle) =>
      bundle.class === name && (bundle.direction === direction || bundle.direction === ""));
    const places = data.tiers.map((tier) => {
      const drawn = Math.min(tier.count, mostDrawn);
      return Array.from({ length: drawn }, (_, i) => left + ((width - left) * (i + 0.5)) / drawn);
    });
    const parts: (SVGElement | false)[] = [];
    data.tiers.forEach((tier, t) => {
      const y = 12 + t * row;
      const below = data.tiers[t + 1];
      if (below)
        for (const a of places[t])
          for (const b of places[t + 1]) {
            const of = `${below.name}-${tier.name}`;
            parts.push(this.wire(find(of, "up"), a - 2, y + 18, b - 2, y + row),
                       this.wire(find(of, "down"), a + 2, y + 18, b + 2, y + row));
          }
      // Wires between switches of one tier.
      const across = ["local", "switch"].map((name) => find(name, "")).find((one) => one);
      for (let i = 0; across && i + 1 < places[t].length; ++i)
        parts.push(this.wire(across, places[t][i] + 13, y + 9, places[t][i + 1] - 13, y + 9));
      const wideOne = tier.count === 1;
      for (const x of places[t])
        parts.push(s("rect", { class: "part", x: wideOne ? left : x - 13, y,
                               width: wideOne ? width - left - 2 : 26, height: 18, rx: 3 }));
      if (wideOne && data.tiers.length === 1)
        parts.push(s("text", { class: "on-part", x: (left + width) / 2, y: y + 12.5 },
                     "nothing fills it up: NICs alone limit"));
      parts.push(s("text", { class: "part-name", x: 0, y: y + 13 },
                   counted(tier.count, tier.name)));
      if (tier.count > mostDrawn)
        parts.push(s("text", { class: "part-name", x: 0, y: y + 27 }, `${mostDrawn} drawn`));
    });
    const cables = Object.entries(data.cables).filter(([name]) => name.includes("-") ||
      ["local", "global", "switch"].includes(name));
    fill(box, drawing(width, height, "Switches of the fabric", ...parts),
         data.fabric.length > 0 && this.buttons("fabric", data.fabric),
         cables.length > 0 && h("p", { class: "quiet" },
           cables.map(([name, count]) =>
             `${count.toLocaleString("en-US")} ${titles[name] ?? name} cables`).join(", ") +
           (data.fabric.length === 0 ? ", which nothing crosses." : ".")));
  }

  private drawKinds(): void {
    const data = this.data!;
    const cards = data.kinds.map((kind, i) => h("div", { class: "domain", id: `domain-${i}` },
      h("h4", {}, stagesText(kind.stages)),
      h("p", { class: "quiet" }, `× ${kind.domains.toLocaleString("en-US")} `,
        data.domain.nvlink && data.domain.nodes > 1 ? "NVLink domain" : "node",
        kind.domains > 1 ? "s" : "", ` of ${counted(kind.gpus, "GPU")}`),
      this.domainDrawing(kind),
      kind.links.length > 0 ? this.buttons(`kind${i}`, kind.links)
        : h("p", { class: "quiet" }, "No rank of these is simulated; others stand for them.")));
    fill(byId("cluster-kinds"), ...cards);
    byId("cluster-more").textContent = data.kinds.length < data.kinds_in_all
      ? `The busiest ${data.kinds.length} of ${data.kinds_in_all} kinds.` : "";
  }

  // NICs above, GPUs, and NVLink below them; PCIe between.
  private domainDrawing(kind: DomainKind): SVGSVGElement {
    const { domain } = this.data!;
    const width = 200;
    const find = (name: string, direction: string) => kind.links.find((bundle) =>
      bundle.class === name && (bundle.direction === direction || bundle.direction === ""));
    const spread = (count: number) => {
      const drawn = Math.min(count, mostDrawn);
      return Array.from({ length: drawn }, (_, i) => (width * (i + 0.5)) / drawn);
    };
    const nicCount = Math.max(1, Math.round((domain.nics * kind.gpus) / domain.gpus));
    const gpus = spread(kind.gpus), nics = spread(nicCount);
    const parts: (SVGElement | false)[] = [];
    const pair = (name: string, x: number, y0: number, y1: number) => {
      parts.push(this.wire(find(name, "up"), x - 3.5, y0, x - 3.5, y1),
                 this.wire(find(name, "down"), x + 3.5, y0, x + 3.5, y1));
    };
    for (const x of nics) {
      pair("nic", x, 2, 24);
      parts.push(s("rect", { class: "part", x: x - 8, y: 24, width: 16, height: 10, rx: 2 }));
    }
    const gpuTop = domain.pcie ? 92 : 58;
    if (domain.pcie) {
      for (const x of nics) parts.push(s("line", { class: "free", x1: x, y1: 34, x2: x, y2: 50 }));
      parts.push(s("rect", { class: "part", x: 4, y: 50, width: width - 8, height: 12, rx: 2 }),
                 s("text", { class: "on-part", x: width / 2, y: 59.5 },
                   domain.socket ? "PCIe, CPU sockets" : "PCIe"));
      for (const x of gpus) pair("pcie", x, 62, gpuTop);
    } else {
      gpus.forEach((x, i) => {
        const nic = nics[Math.min(nics.length - 1, Math.floor((i * nics.length) / gpus.length))];
        parts.push(s("line", { class: "free", x1: nic, y1: 34, x2: x, y2: gpuTop }));
      });
    }
    for (const x of gpus)
      parts.push(s("rect", { class: "part gpu", x: x - 9, y: gpuTop, width: 18, height: 18,
                             rx: 2 }));
    let bottom = gpuTop + 18;
    if (domain.nvlink === "switch") {
      for (const x of gpus) pair("nvlink", x, bottom, bottom + 24);
      parts.push(s("rect", { class: "part", x: 4, y: bottom + 24, width: width - 8, height: 14,
                             rx: 3 }),
                 s("text", { class: "on-part", x: width / 2, y: bottom + 34.5 }, "NVSwitch"));
      bottom += 38;
    } else if (domain.nvlink === "mesh") {
      const of = find("nvlink", "up");
      const load = of ? this.load(of) : 0;
      for (let i = 0; i + 1 < gpus.length; ++i)
        parts.push(s("path", { class: `wire load${level(load)}`,
                               "stroke-width": widths[level(load)],
                               d: `M${gpus[i]} ${bottom} q${(gpus[i + 1] - gpus[i]) / 2} 26 ` +
                                  `${gpus[i + 1] - gpus[i]} 0` }));
      parts.push(s("text", { class: "on-part", x: width / 2, y: bottom + 26 }, "NVLink, mesh"));
      bottom += 28;
    }
    const folded = kind.gpus > mostDrawn || nicCount > mostDrawn;
    if (folded)
      parts.push(s("text", { class: "on-part", x: width / 2, y: bottom + 12 },
                   `${counted(kind.gpus, "GPU")}, ${counted(nicCount, "NIC")}; ` +
                   `${mostDrawn} drawn`));
    return drawing(width, bottom + (folded ? 16 : 2),
                   `${counted(kind.gpus, "GPU")} and ${counted(nicCount, "NIC")}`, ...parts);
  }

  // One link over the step, by user.
  private drawCurve(): void {
    const data = this.data!;
    const found = this.all().find((one) => one.id === this.chosen);
    const box = byId("cluster-curve");
    if (!found) {
      fill(box, h("p", { class: "quiet" }, "Nothing crosses a link."));
      return;
    }
    const { bundle } = found;
    const width = Math.max(260, byId("cluster").clientWidth), height = 116, floor = height - 18;
    const users = Object.keys(bundle.over_time);
    const loads = Array.from({ length: data.slices }, (_, i) => this.load(bundle, i, ""));
    const most = Math.max(0.01, ...loads);
    const x = (slice: number) => (slice / data.slices) * width;
    const y = (load: number) => floor - (load / most) * (floor - 14);
    const below = new Array<number>(data.slices).fill(0);
    const areas = users.map((user) => {
      let top = "", back = "";
      for (let i = 0; i < data.slices; ++i) {
        const base = below[i];
        below[i] += this.load(bundle, i, user);
        top += `L${x(i).toFixed(1)} ${y(below[i]).toFixed(1)}L${x(i + 1).toFixed(1)} ` +
          y(below[i]).toFixed(1);
        back = `L${x(i + 1).toFixed(1)} ${y(base).toFixed(1)}L${x(i).toFixed(1)} ` +
          y(base).toFixed(1) + back;
      }
      return s("path", { d: "M" + (top + back).slice(1) + "Z", fill: colour(user),
                         opacity: this.user === "" || this.user === user ? "1" : "0.25" });
    });
    const picture = drawing(
      width, height, `Load of ${bundle.name} over the step`, ...areas,
      s("line", { class: "axis", x1: 0, y1: floor + 0.5, x2: width, y2: floor + 0.5 }),
      s("text", { class: "part-name", x: 2, y: 10 }, `${shown(most)} busy`),
      s("text", { class: "part-name", x: 0, y: height - 4 },
        this.from > 0 ? seconds(this.from * 1e-9) : "0"),
      s("text", { class: "part-name end", x: width, y: height - 4 }, seconds(this.to * 1e-9)),
      this.slice >= 0 && s("rect", { class: "cursor", x: x(this.slice), y: 12,
                                     width: Math.max(2, x(1)), height: floor - 12 }));
    const set = (event: PointerEvent) => {
      const where = picture.getBoundingClientRect();
      const at = Math.floor(((event.clientX - where.left) / where.width) * data.slices);
      this.move(Math.min(data.slices - 1, Math.max(0, at)));
    };
    picture.addEventListener("pointerdown", (event) => { event.preventDefault(); set(event); });
    picture.addEventListener("pointermove", (event) => { if (event.buttons & 1) set(event); });
    const parts = users.map((user) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = colour(user);
      return h("li", {}, swatch, `${user} ${bytes(this.bytesIn(bundle, this.slice, user))}`);
    });
    const alike = bundle.links > 1 && bundle.busy_fraction - bundle.least_fraction > 1e-3
      ? `, the busiest of ${bundle.links} that are simulated (from ${shown(bundle.least_fraction)})`
      : bundle.links > 1 ? `, one of ${bundle.links} alike that are simulated` : "";
    fill(box,
         h("p", {}, h("strong", {}, bundle.name), `${alike}: busy ` +
           `${shown(this.load(bundle, this.slice, ""))} of ` +
           `${this.slice < 0 && this.whole ? "the step" : "this time"} at ` +
           `${bytes(bundle.capacity_bytes_per_s)}/s`),
         h("ul", { class: "legend" }, ...parts), picture);
  }
}

/** What widths and colours of wires mean. */
export function loadLegend(): HTMLElement {
  const names = ["below 1 %", "1 – 10 %", "10 – 30 %", "30 – 60 %", "60 % and more"];
  return h("ul", { class: "legend" }, ...names.map((name, i) =>
    h("li", {}, h("i", { class: `mark load${i}` }), name)));
}
