// A search: what is asked, how far it is, the list as it fills, and its proof.

import type { Answer, Knob } from "./api";
import { Chart, type Mark, type Point } from "./chart";
import { announce, byId, fill, h } from "./dom";
import * as text from "./format";
import { title } from "./knobs_view";
import { planWords } from "./plan_words";
import { lines, type Progress, type Search, type SearchLine, type SimulatedPlan } from "./search_api";
import type { State } from "./state";

const objectives: [string, string, string][] = [
  ["step_time", "the shortest step", "step time"],
  ["tokens_per_s_per_gpu", "most tokens a GPU", "GPU time a token"],
  ["cost_per_token", "the least rent a token", "rent a token"],
  ["energy_per_token", "the least energy a token", "energy a token"],
  ["training_time", "the shortest training", "training time"],
];

interface Row {
  rank: number; tie: boolean; step: number; throughput: number; memory: number; gpus: number;
  gbs: number; flags: string; state: State; mfu?: number; days?: number;
  rent?: { low: number; high: number };
}

export class SearchView {
  /** idle, running, done, stopped or failed. */
  stage = "idle";
  found: Search | null = null;
  command = "";

  private answer: Answer | null = null;
  private abort: AbortController | null = null;
  private seen = new Map<number, SimulatedPlan>();
  private rows: Row[] = [];
  private last: Progress | null = null;
  private most = 1;
  private asked: State = {};
  private goal = objectives[0];
  private readonly held = new Set<string>();
  private readonly own = new Set<string>();  // Fields that the user wrote in.

  private readonly gpus = this.field("gpus", "GPUs", "1024, or 256..4096");
  private readonly gbs = this.field("gbs", "Global batch", "1536, or 512..2048");
  private readonly objective = h("select", { id: "search-objective" },
    ...objectives.map(([word, name]) => h("option", { value: word }, name)));
  private readonly list = h("select", { id: "search-list-kind" },
    h("option", { value: "" }, "the ten best layouts"),
    h("option", { value: "pareto" }, "all that none beats in time and memory"));
  private readonly holds = h("div", { class: "holds", id: "search-holds" });
  private readonly button = byId<HTMLButtonElement>("search");
  private readonly memory = new Chart(byId("search-memory-chart"));
  private readonly cost = new Chart(byId("search-cost-chart"));

  constructor(private readonly load: (state: State) => void) {
    const named = (name: string, control: HTMLElement) =>
      h("div", {}, h("label", { for: control.id }, name), control);
    fill(byId("search-form"), named("GPUs", this.gpus), named("Global batch", this.gbs),
         named("Best is", this.objective), named("List", this.list), this.holds);
    byId("search-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.stage === "running") this.stop();
      else this.start();
    });
  }

  private field(key: string, name: string, hint: string): HTMLInputElement {
    const input = h("input", {
      type: "text", id: `search-${key}`, placeholder: hint, title: `${name}: ${hint}`,
      autocomplete: "off", spellcheck: "false",
      input: () => { if (input.value === "") this.own.delete(key); else this.own.add(key); },
    });
    return input;
  }

  /** The plan that the page shows, from which a search starts. */
  follow(answer: Answer): void {
    this.answer = answer;
    if (!this.own.has("gpus")) this.gpus.value = answer.state.gpus ?? "";
    if (!this.own.has("gbs")) this.gbs.value = answer.state.gbs ?? "";
    const trains = this.objective.querySelector<HTMLOptionElement>("[value=training_time]")!;
    trains.disabled = !answer.state.tokens;
    trains.title = trains.disabled ? "needs tokens to train on" : "";
    this.draw();
  }

  /** Of what is said, what a search would vary may be held; all else stays anyway. */
  offer(knobs: Knob[]): void {
    const said = knobs.filter((knob) => knob.said && knob.part !== "cluster" && knob.key !== "gbs" &&
                              knob.key !== "layers");
    const free = said.filter((knob) => knob.searched), kept = said.filter((knob) => !knob.searched);
    for (const key of [...this.held])
      if (!free.some((knob) => knob.key === key)) this.held.delete(key);
    fill(this.holds, free.length > 0 && h("span", { class: "quiet" }, "Hold"),
      ...free.map((knob) => {
        const box = h("input", { type: "checkbox", id: `hold-${knob.key}`,
                                 checked: this.held.has(knob.key), change: () => {
          if (box.checked) this.held.add(knob.key); else this.held.delete(knob.key);
        } });
        return h("label", { for: box.id }, box, ` ${title(knob.key)} ${shown(knob.now)}`);
      }),
      kept.length > 0 && h("span", { class: "quiet" },
        `Kept: ${kept.map((knob) => `${title(knob.key)} ${shown(knob.now)}`).join(", ")}`));
  }

  async start(): Promise<void> {
    if (!this.answer) return;
    this.abort?.abort();
    const mine = this.abort = new AbortController();
    this.asked = { ...this.answer.state };
    this.goal = objectives.find(([word]) => word === this.objective.value)!;
    this.seen.clear();
    this.rows = [];
    this.last = this.found = null;
    this.command = "";
    this.enter("running");
    try {
      await lines<SearchLine>("search", {
        state: this.asked, gpus: this.gpus.value.trim(), gbs: this.gbs.value.trim(),
        hold: [...this.held], objective: this.objective.value,
        pareto: this.list.value === "pareto",
      }, mine.signal, (line) => { if (!mine.signal.aborted) this.take(line); });
      if (!mine.signal.aborted && this.stage === "running") this.fail("The reply ended early.");
    } catch (error) {
      if (!mine.signal.aborted) this.fail((error as Error).message);
    }
  }

  stop(): void {
    this.abort?.abort();
    this.enter("stopped");
    announce("The search has stopped");
  }

  private fail(message: string): void {
    this.enter("failed");
    byId("search-proof").textContent = message[0].toUpperCase() + message.slice(1);
    announce(message);
  }

  private take(line: SearchLine): void {
    if ("error" in line) this.fail(line.error);
    else if ("command" in line) {
      this.command = line.command;
      this.most = line.max_memory;
      byId("search-command").textContent = line.command;
    } else if ("progress" in line) this.goOn(line.progress);
    else this.end(line.search, line.states);
  }

  private goOn(progress: Progress): void {
    this.last = progress;
    for (const plan of progress.plans) this.seen.set(plan.number, plan);
    this.rows = progress.leading.map((number, index) => {
      const plan = this.seen.get(number)!;
      return { rank: index + 1, tie: false, step: plan.step_time_s, memory: plan.memory,
               throughput: plan.tokens_per_s_per_gpu, gpus: plan.gpus, gbs: plan.gbs,
               flags: plan.flags, state: plan.state };
    });
    this.showProgress();
    this.draw();
  }

  private end(search: Search, states: State[]): void {
    this.found = search;
    this.rows = search.plans.map((plan, index) => ({
      rank: index + 1, tie: search.ranking[index].tie, step: plan.step_time_s,
      throughput: plan.tokens_per_s_per_gpu, gpus: plan.gpus,
      memory: plan.memory.peak_bytes / plan.memory.capacity_bytes,
      gbs: Number(plan.plan.gbs), flags: flagsIn(search.ranking[index].command),
      state: states[index], mfu: plan.mfu, days: plan.bill?.training_time_s,
      rent: plan.bill?.rent_usd ?? undefined,
    }));
    this.enter("done");
    announce(`The search has ended: the best step takes ${text.seconds(this.rows[0]?.step ?? 0)}`);
  }

  private enter(stage: string): void {
    this.stage = stage;
    this.button.textContent = stage === "running" ? "Stop" : "Search";
    byId("search-progress").hidden = stage !== "running";
    byId("search-command-part").hidden = this.command === "" && stage !== "running";
    byId("search-proof").textContent = this.proof();
    this.showProgress();
    this.draw();
  }

  private showProgress(): void {
    const now = this.last;
    const bar = byId<HTMLProgressElement>("search-bar");
    const enumerated = now !== null && now.parts_done >= now.parts;
    const share = now?.best && now.bound ? now.bound / now.best : null;
    if (enumerated) bar.removeAttribute("value");
    else bar.value = now && now.parts > 0 ? now.parts_done / now.parts : 0;
    byId("search-said").textContent = !now ? "Begins …"
      : (enumerated ? "" : `${text.percent(now.parts_done / now.parts, 0)} enumerated: `) +
        `${text.grouped(now.legal)} plans divide, ${text.grouped(now.fits)} fit` +
        (now.simulated > 0 ? `; ${text.grouped(now.simulated)} simulated` : "") +
        (share === null ? "" : `, bound at ${text.percent(share)} of the best`);
  }

  private proof(): string {
    if (this.stage === "stopped" && this.last) {
      const { fits, simulated, best, bound } = this.last;
      const left = best && bound
        ? ` No plan that is left has a ${this.goal[2]} below ` +
          `${text.percent(Math.min(1, bound / best))} of the first’s.`
        : "";
      return `Stopped: not proven. ${text.grouped(simulated)} of ${text.grouped(fits)} plans that ` +
        `were found to fit were simulated.${left}`;
    }
    const space = this.found?.space;
    if (this.stage !== "done" || !space) return "";
    const ties = this.rows.some((row) => row.tie && row.rank > 1)
      ? " = may in truth be as good as the first (9 in 10)." : "";
    return `Proven: of ${text.grouped(space.legal)} plans that divide, ${text.grouped(space.fits)} ` +
      `fit. ${text.grouped(space.simulated)} were simulated; the bounds of the other ` +
      `${text.grouped(space.bounded_out)} show that none of them belongs in this list.${ties}`;
  }

  private draw(): void {
    const { rows } = this;
    const many = (of: (row: Row) => number) => new Set(rows.map(of)).size > 1;
    const gpus = many((row) => row.gpus), gbs = many((row) => row.gbs);
    const final = this.stage === "done";
    const bills = final && rows.some((row) => row.days !== undefined);
    const head = ["step", "tokens/s/GPU", ...(final ? ["MFU"] : []), "memory",
                  ...(bills ? ["training", "rent"] : []), ...(gpus ? ["GPUs"] : []),
                  ...(gbs ? ["batch"] : [])];
    const line = (row: Row) => h("tr", {},
      h("td", {}, `${row.rank}${row.tie && row.rank > 1 ? " =" : ""}`),
      h("td", { class: "words" }, h("button", {
        type: "button", id: `found-${row.rank}`, class: "plan", click: () => this.load(row.state),
        title: "Turn the knobs to this plan",
      }, planWords(row.flags) || "as it follows")),
      h("td", {}, text.seconds(row.step)), h("td", {}, text.significant(row.throughput)),
      final && h("td", {}, text.percent(row.mfu ?? 0)), h("td", {}, text.percent(row.memory)),
      bills && h("td", {}, row.days === undefined ? "" : text.span(row.days)),
      bills && h("td", {}, row.rent ? text.dollarRange(row.rent.low, row.rent.high) : ""),
      gpus && h("td", {}, text.grouped(row.gpus)), gbs && h("td", {}, text.grouped(row.gbs)));
    fill(byId("search-list"), rows.length > 0 && h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }),
                       h("th", { scope: "col", class: "words" }, "plan"),
                       ...head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows.map(line))));
    this.drawMemory();
    this.drawCost(bills);
  }

  private markOf(row: Row): Mark {
    return row.rank === 1 ? "first" : row.tie ? "tie" : "listed";
  }
  private name(row: Row): string { return `${row.rank}${row.tie && row.rank > 1 ? "=" : ""}`; }

  // The plan of the knobs among those that were found, where it is of the same kind.
  private present(): boolean {
    const now = this.answer;
    return !!now?.result && ["model", "system"].every((key) => now.state[key] === this.asked[key]);
  }

  private drawMemory(): void {
    if (this.rows.length === 0) return this.memory.show(null);
    // What is much slower than the list would leave no room for it.
    const now = this.present() ? this.answer!.result! : null;
    const slowest = Math.max(...this.rows.map((row) => row.step));
    const most = now && now.step_time_s < 2 * slowest ? Math.max(1.15 * slowest, now.step_time_s)
      : 1.15 * slowest;
    const listed = new Set(this.rows.map((row) => row.flags + row.gpus + row.gbs));
    const points: Point[] = [...this.seen.values()]
      .filter((plan) => !listed.has(plan.flags + plan.gpus + plan.gbs) && plan.step_time_s <= most)
      .map((plan) => ({
        x: plan.step_time_s, y: plan.memory, mark: "seen", act: () => this.load(plan.state),
        title: `${planWords(plan.flags)}: ${text.seconds(plan.step_time_s)}, ` +
          text.percent(plan.memory),
      }));
    for (const row of this.rows)
      points.push({ x: row.step, y: row.memory, mark: this.markOf(row), label: this.name(row),
                    title: `${planWords(row.flags)}: ${text.seconds(row.step)}, ` +
                      text.percent(row.memory), act: () => this.load(row.state) });
    if (now && now.step_time_s <= most)
      points.push({ x: now.step_time_s, y: now.memory.peak_bytes / now.memory.capacity_bytes,
                    mark: "now", label: "now",
                    title: `the plan of the knobs: ${text.seconds(now.step_time_s)}` });
    this.memory.show({
      label: "Plans by step time and memory; the list below has their figures", points,
      x: { title: "step time", text: (v) => text.seconds(v, 3) },
      y: { title: "share of a GPU’s memory", text: (v) => text.percent(v, 0) },
      limit: { y: this.most, text: `at most ${text.percent(this.most, 0)}` },
    });
  }

  private drawCost(bills: boolean): void {
    const points: Point[] = [];
    for (const row of bills ? this.rows : [])
      if (row.days !== undefined && row.rent)
        points.push({ x: row.days / 86400, y: (row.rent.low + row.rent.high) / 2,
                      across: [row.rent.low, row.rent.high], mark: this.markOf(row),
                      label: this.name(row), act: () => this.load(row.state),
                      title: `${planWords(row.flags)}: ${text.span(row.days)}, ` +
                        text.dollarRange(row.rent.low, row.rent.high) });
    this.cost.show({
      label: "Plans of the list by days of training and rent", points,
      x: { title: "days of training", text: (v) => text.significant(v, 3) },
      y: { title: "rent, and its range", text: (v) => text.dollars(v) },
    });
  }
}

function shown(word: string): string {
  return word === "true" ? "on" : word === "false" ? "off" : word;
}

// What of "orrery estimate --model ... --gbs 256 --tp 8" is the plan.
function flagsIn(command: string): string {
  return command.replace(/^.*? --gbs \d+ ?/, "");
}
