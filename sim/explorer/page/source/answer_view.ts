// The right side: what the plan takes, and why.

import type {
  Answer, Bill, Comparison, LayersOfKind, Memory, Range, Result, SingleChange,
} from "./api";
import { announce, byId, fill, h } from "./dom";
import * as text from "./format";
import { kindsOfStage } from "./kinds_view";
import { memoryColours } from "./memory_parts";
import { colour, inkOn } from "./palette";
import type { State } from "./state";

/** A plan that others are held against. */
export interface Pinned { state: State; result: Result | null }

const partTitles: Record<string, string> = {
  matrix_products: "matrix products", expert_products: "experts’ products",
  attention: "attention", memory_bound: "memory-bound kernels", host: "host",
  slowed_down: "slowed by collectives", tensor_parallel: "tensor parallel",
  context_parallel: "context parallel", expert_parallel: "expert parallel",
  pipeline: "pipeline transfers", data_parallel: "data parallel", optimizer: "optimizer",
  gradient_norm: "gradient norm", waiting_for_others: "waiting for others",
};
export function partTitle(part: string): string { return partTitles[part] ?? text.words(part); }

/** The critical path by part: phases of a part are added up. */
export function parts(path: Record<string, number>): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [key, time] of Object.entries(path)) {
    const part = key.replace(/_(forward|backward|recomputed)$/, "");
    sums.set(part, (sums.get(part) ?? 0) + time);
  }
  return sums;
}

/** The difference from A. Of memory neither less nor more is better, as long as it fits. */
function change(now: number | undefined, before: number | undefined,
                better: "less" | "more" | "neither"): HTMLElement | null {
  if (now === undefined || before === undefined || before === 0) return null;
  const share = now / before - 1;
  if (Math.abs(share) < 0.0005) return h("span", { class: "delta" }, "as A");
  const kind = better === "neither" ? "" : share < 0 === (better === "less") ? "better" : "worse";
  return h("span", { class: `delta ${kind}` }, `${text.signedPercent(share)} against A`);
}

function figure(id: string, name: string, value: string, note: string | null,
                delta: HTMLElement | null, extra: HTMLElement | null = null): HTMLElement {
  return h("div", { class: "figure", id }, h("dt", {}, name),
           h("dd", {}, h("span", { class: "value" }, value), delta, extra,
             note && h("span", { class: "note" }, note)));
}

function rangeText(range: Range | null): string {
  return range ? text.dollarRange(range.low, range.high) : "not known";
}

function memoryBar(memory: Memory): HTMLElement {
  const share = memory.peak_bytes / memory.capacity_bytes;
  const inside = h("span", {});
  inside.style.width = `${Math.min(100, share * 100)}%`;
  return h("span", { class: `gauge ${share > 1 ? "over" : share > 0.95 ? "near" : ""}` }, inside);
}

export function showFigures(result: Result, pinned: Pinned | null): void {
  const before = pinned?.result ?? undefined;
  const range = result.step_time_range;
  const bill: Bill | undefined = result.bill;
  const memory = result.memory;
  fill(byId("figures"),
       figure("figure-step", "Step time", text.seconds(result.step_time_s),
              `${text.seconds(range.low_s, 3)} – ${text.seconds(range.high_s, 3)}, 9 in 10`,
              change(result.step_time_s, before?.step_time_s, "less")),
       figure("figure-throughput", "Tokens/s/GPU", text.significant(result.tokens_per_s_per_gpu),
              `${text.grouped(result.tokens_per_s)} in all`,
              change(result.tokens_per_s_per_gpu, before?.tokens_per_s_per_gpu, "more")),
       figure("figure-mfu", "MFU", text.percent(result.mfu),
              `${text.significant(result.model_tflops_per_gpu)} TFLOP/s/GPU`,
              change(result.mfu, before?.mfu, "more")),
       figure("figure-memory", "Memory of a GPU", text.gigabytes(memory.peak_bytes),
              `${text.percent(memory.peak_bytes / memory.capacity_bytes, 0)} of ` +
              text.gigabytes(memory.capacity_bytes),
              change(memory.peak_bytes, before?.memory.peak_bytes, "neither"), memoryBar(memory)),
       bill ? figure("figure-days", "Training", text.span(bill.training_time_s),
                     `${text.grouped(bill.steps)} steps`,
                     change(bill.training_time_s, before?.bill?.training_time_s, "less")) : null,
       bill ? figure("figure-cost", "Rent", rangeText(bill.rent_usd),
                     `to buy ${rangeText(bill.hardware_usd)}`,
                     change(bill.rent_usd?.high, before?.bill?.rent_usd?.high, "less")) : null);
}

/** For narrow screens: what a knob does, while it is turned. */
export function showStrip(answer: Answer): void {
  const { result } = answer;
  byId("strip").textContent = result
    ? [text.seconds(result.step_time_s),
       `${text.significant(result.tokens_per_s_per_gpu)} tokens/s/GPU`,
       text.gigabytes(result.memory.peak_bytes)].join(" · ")
    : "This plan cannot run";
}

export function bar(sums: Map<string, number>, longest: number, label: string): HTMLElement {
  const total = [...sums.values()].reduce((sum, time) => sum + time, 0);
  const strip = h("div", { class: "strip" });
  strip.style.width = `${(100 * total) / longest}%`;
  for (const [part, time] of sums) {
    const piece = h("span", { title: `${partTitle(part)}: ${text.seconds(time)}` });
    piece.style.flexGrow = String(time / total);
    piece.style.background = colour(part);
    piece.style.color = inkOn(colour(part));
    if (time / longest > 0.08) piece.textContent = partTitle(part);
    strip.append(piece);
  }
  return h("div", { class: "bar" }, h("span", { class: "bar-label" }, label), strip);
}

export function showCriticalPath(result: Result, pinned: Pinned | null): void {
  const now = parts(result.critical_path_s);
  const before = pinned?.result ? parts(pinned.result.critical_path_s) : null;
  const longest = Math.max(result.step_time_s, pinned?.result?.step_time_s ?? 0);
  const keys = [...new Set([...now.keys(), ...(before?.keys() ?? [])])];
  const row = (part: string) => {
    const time = now.get(part) ?? 0, was = before?.get(part) ?? 0;
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour(part);
    return h("tr", {}, h("th", { scope: "row" }, swatch, partTitle(part)),
             before && h("td", {}, text.seconds(was, 3)),
             h("td", {}, text.seconds(time, 3)),
             h("td", {}, text.percent(time / result.step_time_s)),
             before && h("td", {}, Math.abs(time - was) < 1e-9 ? "same"
               : text.signed(time - was, (s) => text.seconds(s, 3))));
  };
  fill(byId("critical"),
       before && bar(before, longest, "A"), bar(now, longest, before ? "B" : ""),
       h("table", {},
         h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "part"),
                          before && h("th", { scope: "col" }, "A"),
                          h("th", { scope: "col" }, before ? "B" : "time"),
                          h("th", { scope: "col" }, "share"),
                          before && h("th", { scope: "col" }, "B − A"))),
         h("tbody", {}, ...keys.map(row))));
}

const memoryParts: [keyof Memory["stages"][number], string, string][] = [
  ["weights_bytes", "weights", memoryColours.weights],
  ["gradients_bytes", "gradients", memoryColours.gradients],
  ["optimizer_bytes", "optimizer", memoryColours.optimizer],
  ["activations_bytes", "activations", memoryColours.activations],
  ["other_bytes", "other", memoryColours.other]];

/** `kinds`: of the layers, if they differ. */
export function showMemory(memory: Memory, kinds: LayersOfKind[] = []): void {
  const most = Math.max(memory.peak_bytes, memory.capacity_bytes);
  // Of many stages the fullest, and enough beside it.
  const stages = memory.stages.length <= 16 ? memory.stages
    : [...memory.stages].sort((a, b) => b.peak_bytes - a.peak_bytes).slice(0, 16)
      .sort((a, b) => a.stage - b.stage);
  const fullest = memory.stages.reduce((most, stage) =>
    stage.peak_bytes > most.peak_bytes ? stage : most);
  const line = (stage: Memory["stages"][number]) => {
    const strip = h("div", { class: "strip" });
    strip.style.width = `${(100 * stage.peak_bytes) / most}%`;
    for (const [key, name, shade] of memoryParts) {
      const piece = h("span", { title: `${name}: ${text.gigabytes(stage[key])}` });
      piece.style.flexGrow = String(stage[key] / stage.peak_bytes);
      piece.style.background = shade;
      strip.append(piece);
    }
    return h("div", { class: "bar" }, h("span", { class: "bar-label" }, `stage ${stage.stage}`),
             h("div", { class: "bar-room" }, strip, limit()),
             h("span", { class: "bar-value" }, text.gigabytes(stage.peak_bytes)));
  };
  const limit = (said = "") => {
    const mark = h("div", { class: "limit" }, said !== "" && h("span", {}, said));
    mark.style.left = `${(100 * memory.capacity_bytes) / most}%`;
    return mark;
  };
  fill(byId("memory"),
       h("ul", { class: "legend" }, ...memoryParts.map(([, name, shade]) => {
         const swatch = h("span", { class: "swatch" });
         swatch.style.background = shade;
         return h("li", {}, swatch, name);
       })),
       h("div", { class: "bars" }, ...stages.map(line),
         h("div", { class: "bar limits" }, h("span", { class: "bar-label" }),
           h("div", { class: "bar-room" }, limit(`holds ${text.gigabytes(memory.capacity_bytes)}`)),
           h("span", { class: "bar-value" }))),
       stages.length < memory.stages.length &&
         h("p", { class: "quiet" }, `The fullest ${stages.length} of ${memory.stages.length}.`),
       kindsOfStage(kinds, fullest.stage),
       h("details", {}, h("summary", {}, "figures"),
         h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "stage"),
                                         ...memoryParts.map(([, name]) =>
                                           h("th", { scope: "col" }, name)),
                                         h("th", { scope: "col" }, "peak"))),
           h("tbody", {}, ...stages.map((stage) =>
             h("tr", {}, h("th", { scope: "row" }, String(stage.stage)),
               ...memoryParts.map(([key]) => h("td", {}, text.gigabytes(stage[key]))),
               h("td", {}, text.gigabytes(stage.peak_bytes))))))));
}

export function showLinks(result: Result): void {
  fill(byId("links"), h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "busiest link of its kind"),
                     h("th", { scope: "col" }, "busy"), h("th", { scope: "col" }, "carries"),
                     h("th", { scope: "col" }, "for"))),
    h("tbody", {}, ...result.links.map((link) => {
      const users = Object.entries(link.by_user).filter(([, sent]) => sent > 0)
        .sort((a, b) => b[1] - a[1])
        .map(([user, sent]) => `${user} ${text.percent(sent / link.bytes, 0)}`);
      return h("tr", {}, h("th", { scope: "row" }, `${link.class} `,
                           h("small", {}, link.busiest)),
               h("td", {}, text.percent(link.busy_fraction)), h("td", {}, text.bytes(link.bytes)),
               h("td", { class: "words" }, users.join(", ")));
    }))));
}

export function showBasis(result: Result): void {
  const share = result.provenance;
  fill(byId("basis"),
       ...result.warnings.map((warning) => h("p", { class: "warning" }, warning)),
       h("p", { class: "quiet" },
         `Times rest on measurements for ${text.percent(share.measured + share.interpolated, 0)}` +
         `, on datasheets for ${text.percent(share.default, 0)}. Simulated: ` +
         `${text.grouped(result.tasks)} tasks on ${text.grouped(result.ranks_simulated)} ranks, ` +
         `standing for ${text.grouped(result.gpus)} GPUs.`));
}

/** Why there is no time, and what would have one. */
export function showRefusal(answer: Answer, apply: (changes: State) => void): void {
  const box = byId("refusal");
  const refused = answer.refused;
  box.hidden = !refused;
  if (!refused) return;
  const [problem, ...remedy] = refused.message.split("; ");
  const sentence = (words: string) => words[0].toUpperCase() + words.slice(1) + ".";
  fill(box, h("h2", {}, "This plan cannot run"), h("p", {}, sentence(problem)),
       remedy.length > 0 && h("p", { class: "quiet" }, sentence(remedy.join("; "))),
       refused.remedies.length > 0 && h("div", { class: "remedies" },
         ...refused.remedies.map((way, index) => h("button", {
           type: "button", id: `remedy-${index}`, click: () => apply(way.changes),
         }, way.words === "" ? "as it follows" : way.words,
         h("small", {}, way.runs ? "runs" : "legal, but over memory")))));
  announce(`This plan cannot run: ${problem}`);
}

/** What one change at a time would bring, the best of each key; null: nobody has asked yet. */
export function showChanges(list: SingleChange[] | null, apply: (changes: State) => void): void {
  const row = (change: SingleChange, index: number) =>
    h("tr", {}, h("th", { scope: "row" }, h("button", {
      type: "button", id: `change-${index}`, click: () => apply(change.changes),
    }, change.flags)),
      h("td", {}, text.seconds(change.step_time_s)),
      h("td", {}, text.signedPercent(change.share)),
      h("td", { class: "words" }, change.tie ? "a tie: predictions cannot tell" : ""));
  fill(byId("changes"), list && (list.length === 0
    ? h("p", { class: "quiet" }, "No single change shortens this step. " +
        "orrery search tries several together.")
    : h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "change"),
                                      h("th", { scope: "col" }, "step"),
                                      h("th", { scope: "col" }, "against now"),
                                      h("th", { scope: "col" }))),
        h("tbody", {}, ...list.map(row)))));
  if (list) announce(`${list.length} changes shorten the step`);
}

export function showComparison(found: Comparison | null): void {
  const box = byId("comparison");
  box.hidden = !found;
  if (!found) return;
  const difference = found.differences[0];
  const size = text.seconds(Math.abs(difference.step_time_s), 3);
  const reach = `${text.signed(difference.low_s, (s) => text.seconds(s, 3))} to ` +
    text.signed(difference.high_s, (s) => text.seconds(s, 3));
  box.textContent = difference.tie
    ? `A tie: for the same tokens B differs from A by ${size} (${reach} in 9 of 10), which is ` +
      "less than predictions can tell."
    : difference.step_time_s < 0
      ? `B is faster: ${size} less for the tokens of A’s step (${reach} in 9 of 10).`
      : `B is slower: ${size} more for the tokens of A’s step (${reach} in 9 of 10).`;
}
