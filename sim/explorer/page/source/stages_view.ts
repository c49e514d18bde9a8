// Where the time of a GPU goes, stage by stage: a bar a stage, as long as the step.

import type { Result } from "./api";
import { byId, fill, h } from "./dom";
import * as text from "./format";
import { colour } from "./palette";

const titles: Record<string, string> = {
  matrix_products: "matrix products", expert_products: "experts’ products",
  attention: "attention", memory_bound: "memory-bound kernels", host: "waiting for the host",
  slowed_down: "slowed by collectives", tp_exposed: "tensor parallel",
  cp_exposed: "context parallel", ep_exposed: "expert parallel", pp_exposed: "pipeline transfers",
  dp_exposed: "data parallel", optimizer: "optimizer", pp_bubble: "bubble",
  imbalance: "waiting for slower stages", other: "other",
  waiting_for_others: "waiting for others",
};
// Waiting is grey: nobody works then.
const shades: Record<string, string> = {
  tp_exposed: colour("tensor_parallel"), cp_exposed: colour("context_parallel"),
  ep_exposed: colour("expert_parallel"), pp_exposed: colour("pipeline"),
  dp_exposed: colour("data_parallel"), pp_bubble: "#c9c6bf", imbalance: "#a8a49b",
  other: "#8a8f98", waiting_for_others: "#b9aaa0", expert_products: "#004c78", host: "#5f7a76",
};
const mostStages = 32;

/** Of a stage, what its GPUs do: kernels by kind, then all else. */
export function partsOfStage(stage: Result["stages"][number]): [string, number][] {
  const { compute: _compute, ...rest } = stage.breakdown_s;
  return [...Object.entries(stage.compute_s), ...Object.entries(rest)];
}

export function showStages(result: Result): void {
  const step = result.step_time_s;
  const every = Math.ceil(result.stages.length / mostStages);
  const stages = result.stages.filter((_, i) => i % every === 0);
  const shown = new Set(stages.flatMap((stage) => partsOfStage(stage)
    .filter(([, time]) => time >= 5e-4 * step).map(([part]) => part)));
  const swatch = (part: string) => {
    const box = h("span", { class: "swatch" });
    box.style.background = shades[part] ?? colour(part);
    return box;
  };
  const line = (stage: Result["stages"][number]) => {
    const strip = h("div", { class: "strip" });
    for (const [part, time] of partsOfStage(stage)) {
      if (!shown.has(part)) continue;
      const piece = h("span", { title: `${titles[part] ?? text.words(part)}: ` +
        `${text.seconds(time)}, ${text.percent(time / step)}` });
      piece.style.flexGrow = String(time / step);
      piece.style.background = shades[part] ?? colour(part);
      strip.append(piece);
    }
    return h("div", { class: "bar" }, h("span", { class: "bar-label" }, `stage ${stage.stage}`),
             h("div", { class: "bar-room" }, strip),
             h("span", { class: "bar-value" }, `${text.percent(stage.busy_s / step)} busy`));
  };
  fill(byId("stages"),
       h("ul", { class: "legend" }, ...[...shown].map((part) =>
         h("li", {}, swatch(part), titles[part] ?? text.words(part)))),
       h("div", { class: "bars busy" }, ...stages.map(line)),
       every > 1 && h("p", { class: "quiet" },
                      `${stages.length} of ${result.stages.length} stages.`));
}
