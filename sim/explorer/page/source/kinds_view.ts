// Layers by kind, of a model whose layers differ: which they are, what they take and what they keep.

import type { LayersOfKind, Result } from "./api";
import { fill, h } from "./dom";
import * as text from "./format";

// After Okabe and Ito, as palette.ts; a kind has the same colour in every bar.
const shades = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7b5ea7",
                "#8a8f98"];

const mixers: Record<string, string> = {
  mamba1: "state space (Mamba)", mamba2: "state space (Mamba-2)", kda: "Kimi delta attention",
  lightning: "lightning attention", parallel: "mixers side by side",
};
const feedForwards: Record<string, string> = { mlp: "MLP", mlp_and_experts: "MLP and experts" };

function mixerOf(of: LayersOfKind): string {
  return of.mixer === null ? "none" : mixers[of.mixer] ?? text.words(of.mixer);
}
function feedForwardOf(of: LayersOfKind): string {
  return of.feed_forward === null ? "none"
    : feedForwards[of.feed_forward] ?? text.words(of.feed_forward);
}

/** "4–6", "8" */
function runText([first, last]: [number, number]): string {
  return first === last ? text.grouped(first) : `${text.grouped(first)}–${text.grouped(last)}`;
}

function sum(kinds: LayersOfKind[], of: (kind: LayersOfKind) => number): number {
  return kinds.reduce((all, kind) => all + of(kind), 0);
}
const timeOf = (of: LayersOfKind) => of.forward_s + of.backward_s;
const parametersOf = (of: LayersOfKind) => of.layers * of.parameters_of_one;
const keptOf = (of: LayersOfKind) => of.layers * of.kept_bytes_of_one;

function bar(label: string, value: string, strip: HTMLElement): HTMLElement {
  return h("div", { class: "bar" }, h("span", { class: "bar-label" }, label),
           h("div", { class: "bar-room" }, strip), h("span", { class: "bar-value" }, value));
}

function piece(share: number, kind: number, title: string): HTMLElement {
  const one = h("span", { title });
  one.style.flexGrow = String(share);
  one.style.background = shades[kind % shades.length];
  return one;
}

/** The layers one after another, in the colours of their kinds. */
function order(kinds: LayersOfKind[]): HTMLElement {
  const runs = kinds.flatMap((of, kind) => of.runs.map(([first, last]) => ({ first, last, kind })))
    .sort((a, b) => a.first - b.first);
  return h("div", { class: "strip order" }, ...runs.map(({ first, last, kind }) =>
    piece(last - first + 1, kind, `${first === last ? "layer" : "layers"} ` +
      `${runText([first, last])}: ${kinds[kind].kind}`)));
}

/** How much of a sum each kind has. */
function shares(kinds: LayersOfKind[], of: (kind: LayersOfKind) => number,
                shown: (amount: number) => string): HTMLElement {
  const all = sum(kinds, of);
  return h("div", { class: "strip" }, ...kinds.map((one, kind) =>
    piece(of(one) / all, kind,
          `${one.kind}: ${shown(of(one))}, ${text.percent(of(one) / all)}`)));
}

// A column a kind: they are few, and what there is to say of each is much.
function table(kinds: LayersOfKind[]): HTMLElement {
  const time = sum(kinds, timeOf), experts = kinds.some((of) =>
    of.active_parameters_of_one < of.parameters_of_one);
  const row = (name: string, cell: (of: LayersOfKind) => string) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...kinds.map((of) => h("td", {}, cell(of))));
  const said = (name: string, parts: (of: LayersOfKind) => string[]) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...kinds.map((of) => {
      // A line may end between parts, but not within one.
      const words = parts(of);
      return h("td", { class: "said" }, ...words.flatMap((word, i) =>
        [h("span", {}, i + 1 < words.length ? word + "," : word), " "]));
    }));
  const bytes = (amount: number) => amount > 0 ? text.bytes(amount) : "–";
  return h("table", { class: "kinds" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }),
                     ...kinds.map((of) => h("th", { scope: "col" }, of.kind)))),
    h("tbody", {},
      row("mixer", mixerOf), row("feed-forward part", feedForwardOf),
      row("layers", (of) => text.grouped(of.layers)),
      row("forward, all of them", (of) => text.seconds(of.forward_s)),
      row("backward, all of them", (of) => text.seconds(of.backward_s)),
      row("share of the layers’ time", (of) => text.percent(timeOf(of) / time)),
      row("parameters, all of them", (of) => text.count(parametersOf(of))),
      row("parameters of one", (of) => text.count(of.parameters_of_one)),
      experts && row("of which a token uses", (of) => text.count(of.active_parameters_of_one)),
      row("parameters of one on a GPU", (of) => text.count(of.rank_parameters_of_one)),
      row("activations that one keeps", (of) => text.bytes(of.kept_bytes_of_one)),
      row("keys and values of a token", (of) => bytes(of.sequence_bytes_of_one.per_token)),
      kinds.some((of) => of.sequence_bytes_of_one.window > 0) &&
        row("keys and values of a full window", (of) => bytes(of.sequence_bytes_of_one.window)),
      kinds.some((of) => of.sequence_bytes_of_one.states > 0) &&
        row("states of a sequence", (of) => bytes(of.sequence_bytes_of_one.states)),
      said("which layers", (of) => of.runs.map(runText))));
}

export function kindsLegend(kinds: LayersOfKind[]): HTMLElement {
  return h("ul", { class: "legend" }, ...kinds.map((of, kind) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = shades[kind % shades.length];
    return h("li", {}, swatch, of.kind);
  }));
}

/** Nothing where all layers are alike. */
export function showKinds(result: Result): void {
  const kinds = result.layer_kinds ?? [];
  const section = document.getElementById("kinds-section");
  if (section) section.hidden = kinds.length === 0;
  const box = document.getElementById("kinds");
  if (!box || kinds.length === 0) return;
  const layers = sum(kinds, (of) => of.layers);
  fill(box,
       h("p", { class: "quiet" },
         `The ${text.grouped(layers)} layers are of ${kinds.length} kinds. Times are those of a ` +
         "micro-batch, with collectives and without waits for other ranks" +
         ("routing" in result ? "; experts get as many tokens each." : ".")),
       kindsLegend(kinds),
       h("div", { class: "bars of-kinds" },
         bar("layers in order", text.grouped(layers), order(kinds)),
         bar("time", text.seconds(sum(kinds, timeOf), 3), shares(kinds, timeOf, text.seconds)),
         bar("parameters", text.count(sum(kinds, parametersOf)),
             shares(kinds, parametersOf, text.count)),
         bar("activations", text.bytes(sum(kinds, keptOf)), shares(kinds, keptOf, text.bytes))),
       h("div", { class: "wide" }, table(kinds)),
       h("p", { class: "quiet" },
         "Activations are those of a micro-batch that a GPU keeps for the backward pass. Keys, " +
         "values and states are what one layer of the whole model keeps of a sequence when it is " +
         "served: keys and values in 16 bits, states in 32."));
}

/** What the layers of each kind hold on a GPU of a stage. */
export function kindsOfStage(kinds: LayersOfKind[], stage: number): HTMLElement | null {
  const there = kinds.filter((of) => of.layers_of_stage[stage] > 0);
  if (there.length === 0) return null;
  const count = (of: LayersOfKind) => of.layers_of_stage[stage];
  return h("table", { class: "kinds" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `stage ${stage}`),
      ...["layers", "parameters on a GPU", "activations of a micro-batch"].map((name) =>
        h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...there.map((of) =>
      h("tr", {}, h("th", { scope: "row" }, of.kind), h("td", {}, text.grouped(count(of))),
        h("td", {}, text.count(count(of) * of.rank_parameters_of_one)),
        h("td", {}, text.bytes(count(of) * of.kept_bytes_of_one))))));
}

/** The same of activations, as a sentence: "Its layers keep of a micro-batch: 18 gdn+moe 11.5 GB." */
export function keptOfStage(kinds: LayersOfKind[], stage: number): string {
  const there = kinds.filter((of) => of.layers_of_stage[stage] > 0)
    .map((of) => `${text.grouped(of.layers_of_stage[stage])} ${of.kind} ` +
      text.bytes(of.layers_of_stage[stage] * of.kept_bytes_of_one));
  return there.length === 0 ? "" : `Its layers keep of a micro-batch: ${there.join(", ")}.`;
}
