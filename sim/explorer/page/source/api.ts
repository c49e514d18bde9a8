// Questions to the server, whose address is this page's.

import type { State } from "./state";
import { Timeline } from "./timeline_data";

export interface Stage {
  stage: number; weights_bytes: number; gradients_bytes: number; optimizer_bytes: number;
  activations_bytes: number; other_bytes: number; peak_bytes: number;
}
export interface Memory {
  stages: Stage[]; peak_bytes: number; capacity_bytes: number; fits: boolean;
}
export interface Range { low: number; high: number }
export interface Link {
  class: string; busiest: string; busy_fraction: number; bytes: number;
  by_user: Record<string, number>;
}
export interface Bill {
  tokens: number; steps: number; training_time_s: number; usd_per_trillion_tokens: Range | null;
  rent_usd: Range | null; hardware_usd: Range | null; energy_usd: Range | null;
  power_w: Range | null;
}
/** Layers of one kind, of a model whose layers differ (layer_kinds in docs/reference/json.md). */
export interface LayersOfKind {
  kind: string; mixer: string | null; feed_forward: string | null; layers: number;
  runs: [number, number][]; layers_of_stage: number[]; forward_s: number; backward_s: number;
  kept_bytes_of_one: number; parameters_of_one: number; active_parameters_of_one: number;
  rank_parameters_of_one: number;
  sequence_bytes_of_one: { per_token: number; window: number; states: number };
}
export interface Result {
  model: string; system: string; gpu: string; software: string; gpus: number;
  plan: Record<string, string | number | boolean | null>;
  step_time_s: number; step_time_range: { coverage: number; low_s: number; high_s: number };
  lower_bound_s: number; tokens_per_s: number; tokens_per_s_per_gpu: number; mfu: number;
  model_tflops_per_gpu: number; memory: Memory; layer_kinds?: LayersOfKind[];
  critical_path_s: Record<string, number>;
  breakdown_s: Record<string, number>;
  stages: {
    stage: number; busy_s: number; breakdown_s: Record<string, number>;
    compute_s: Record<string, number>;
  }[];
  inputs?: unknown; provenance: Record<string, number>; links: Link[];
  ranks_simulated: number; tasks: number; warnings: string[]; bill?: Bill;
}
export interface Remedy { words: string; changes: State; runs: boolean }
export interface Refused { message: string; remedies: Remedy[]; memory?: Memory }
export interface KnobValue {
  word: string; why_not?: string; also?: State; memory?: number;
}
export interface Knob {
  key: string; part: string; help: string; now: string; said: boolean; matters: boolean;
  numbers: boolean; searched: boolean; form: string; values: KnobValue[];
}
export interface Answer {
  state: State; command: string; heading?: string[]; result: Result | null;
  refused: Refused | null;
}
export interface Named { word: string; title: string }
export interface Catalog {
  models: Named[]; systems: (Named & { gpu: string; most_gpus: number })[];
}

/** How a reply comes: the answer first, then where knobs may go, then the timeline. */
export interface Listener {
  answer(answer: Answer): void;
  knobs(knobs: Knob[]): void;
  timeline(timeline: Timeline | null): void;
}

const page = Math.random().toString(36).slice(2);

/** What was asked makes no sense, as a key that there is not. */
export class SenselessQuestion extends Error {}

export async function failure(response: Response): Promise<Error> {
  const text = await response.text();
  let message = "HTTP " + response.status;
  try {
    message = JSON.parse(text).error;
  } catch {
    // Not of this server.
  }
  return response.status === 400 ? new SenselessQuestion(message) : new Error(message);
}

export function question(kind: string, body: unknown, signal?: AbortSignal,
                         extra = ""): Promise<Response> {
  return fetch(`api/${kind}?page=${page}${extra}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    signal, cache: "no-store",
  });
}

export async function catalog(): Promise<Catalog> {
  const response = await fetch("api/catalog", { cache: "no-store" });
  if (!response.ok) throw await failure(response);
  return response.json();
}

export async function download(kind: string, state: State): Promise<Blob> {
  const response = await question(kind, state);
  if (!response.ok) throw await failure(response);
  return response.blob();
}

/** What a drawing shows that is open. */
export async function drawing(kind: string, state: State, signal: AbortSignal): Promise<unknown> {
  const response = await question(kind, state, signal);
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** Loads of links in finer slices of a part of the step. */
export async function linkLoads(state: State, from: number, to: number, signal: AbortSignal):
Promise<unknown> {
  const response = await question("links", { state, from_ns: from, to_ns: to }, signal);
  if (!response.ok) throw await failure(response);
  return response.json();
}

export interface Comparison {
  differences: {
    step_time_s: number; low_s: number; high_s: number; tie: boolean;
    critical_path_s: Record<string, number>;
  }[];
}
export async function compare(from: State, to: State, signal: AbortSignal): Promise<Comparison> {
  const response = await question("compare", { from, to }, signal);
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** One key changed, and what becomes of the step. */
export interface SingleChange {
  flags: string; changes: State; step_time_s: number; share: number; tie: boolean;
}
export async function singleChanges(state: State, signal: AbortSignal): Promise<SingleChange[]> {
  const response = await question("changes", state, signal);
  if (!response.ok) throw await failure(response);
  return (await response.json()).changes;
}

/** Bytes of a reply up to the end of a line, and all that follow. */
class Lines {
  private held: Uint8Array = new Uint8Array(0);
  constructor(private readonly reader: ReadableStreamDefaultReader<Uint8Array>) {}

  async line(): Promise<string> {
    for (let from = 0; ;) {
      const end = this.held.indexOf(10, from);
      if (end >= 0) {
        const text = new TextDecoder().decode(this.held.subarray(0, end));
        this.held = this.held.slice(end + 1);
        return text;
      }
      from = this.held.length;
      const { done, value } = await this.reader.read();
      if (done) throw new Error("the reply ended early");
      this.held = joined([this.held, value]);
    }
  }

  async rest(): Promise<Uint8Array> {
    const parts = [this.held];
    for (;;) {
      const { done, value } = await this.reader.read();
      if (done) return joined(parts);
      parts.push(value);
    }
  }
}

function joined(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export async function ask(state: State, repair: boolean, listener: Listener, signal: AbortSignal):
Promise<void> {
  const response = await question("answer", state, signal, repair ? "&repair=1" : "");
  if (!response.ok || !response.body) throw await failure(response);
  const lines = new Lines(response.body.getReader());
  const answer: Answer = JSON.parse(await lines.line());
  listener.answer(answer);
  listener.knobs(JSON.parse(await lines.line()).knobs);
  const bytes = await lines.rest();
  listener.timeline(bytes.length > 0 ? Timeline.read(bytes) : null);
}
