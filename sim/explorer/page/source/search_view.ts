// A search: what is asked, how far it is, the list as it fills, and its proof.

import type { Answer, Knob } from "./api";
import { Chart } from "./chart";
import { announce, byId, fill, h } from "./dom";
import * as text from "./format";
import { title } from "./knobs_view";
import { planWords } from "./plan_words";
import {
  lines, type Progress, type Search, type SearchLine, type SimulatedPlan,
} from "./search_api";
import { costDrawing, memoryDrawing, type OtherPlan, type Row, rowsOf } from "./search_charts";
import type { State } from "./state";

const objectives: [string, string, string][] = [
  ["step_time", "the shortest step", "step time"],
  ["tokens_per_s_per_gpu", "most tokens a GPU", "GPU time a token"],
  ["cost_per_token", "the least rent a token", "rent a token"],
  ["energy_per_token", "the least energy a token", "energy a token"],
  ["training_time", "the shortest training", "training time"],
];

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
    this.rows = rowsOf(search, states);
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
    this.drawPlans(bills);
  }

  // The plan of the knobs stands among those that were found where it is of the same kind.
  private present(): OtherPlan | null {
    const result = this.answer?.result, state = this.answer?.state;
    if (!result || !state || state.model !== this.asked.model ||
        state.system !== this.asked.system) return null;
    return { step: result.step_time_s, flags: "", state,
             memory: result.memory.peak_bytes / result.memory.capacity_bytes };
  }

  private drawPlans(bills: boolean): void {
    const { rows } = this;
    if (rows.length === 0) {
      this.memory.show(null);
      this.cost.show(null);
      return;
    }
    const listed = new Set(rows.map((row) => row.flags + row.gpus + row.gbs));
    const others = [...this.seen.values()]
      .filter((plan) => !listed.has(plan.flags + plan.gpus + plan.gbs))
      .map((plan) => ({ step: plan.step_time_s, memory: plan.memory, flags: plan.flags,
                        state: plan.state }));
    this.memory.show(memoryDrawing(rows, others, this.present(), this.most, this.load));
    this.cost.show(bills ? costDrawing(rows, this.load) : null);
  }
}

function shown(word: string): string {
  return word === "true" ? "on" : word === "false" ? "off" : word;
}
