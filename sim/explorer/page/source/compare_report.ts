// Plans side by side (orrery.compare/1): what a report of orrery compare draws.

import { bar, parts, partTitle } from "./answer_view";
import { Chart, type Mark } from "./chart";
import { byId, fill, h } from "./dom";
import * as text from "./format";
import { colour } from "./palette";

interface ComparedPlan {
  label: string; source: string; gpus: number; step_time_s: number; tokens_per_s_per_gpu: number;
  step_time_range: { low_s: number; high_s: number }; peak_bytes: number; capacity_bytes: number;
  critical_path_s: Record<string, number>;
}
interface Run { label: string; days: { mean: number; low: number; high: number };
                rent_usd: { low: number; high: number } | null }
export interface Compared {
  plans: ComparedPlan[]; differences: { to: string; tie: boolean }[]; runs?: Run[];
}

// Seconds for the tokens of A's step.
function shareOfA(compared: Compared, plan: ComparedPlan): number {
  const tokens = (of: ComparedPlan) => of.tokens_per_s_per_gpu * of.gpus * of.step_time_s;
  return tokens(compared.plans[0]) / tokens(plan);
}

function markOf(compared: Compared, label: string): Mark {
  if (label === "A") return "first";
  return compared.differences.find((one) => one.to === label)?.tie ? "tie" : "listed";
}

export function showCompared(compared: Compared): void {
  const scaled = compared.plans.map((plan) => {
    const share = shareOfA(compared, plan);
    return new Map([...parts(plan.critical_path_s)].map(([part, time]) => [part, time * share]));
  });
  const sum = (of: Map<string, number>) => [...of.values()].reduce((a, b) => a + b, 0);
  const longest = Math.max(...scaled.map(sum));
  const keys = [...new Set(scaled.flatMap((one) => [...one.keys()]))]
    .filter((key) => scaled.some((one) => (one.get(key) ?? 0) > 1e-3 * longest));
  fill(byId("compared"),
       h("ul", { class: "legend" }, ...keys.map((key) => {
         const swatch = h("span", { class: "swatch" });
         swatch.style.background = colour(key);
         return h("li", {}, swatch, partTitle(key));
       })),
       h("div", { class: "compared" }, ...compared.plans.map((plan, i) =>
         bar(scaled[i], longest, `${plan.label}  ${text.seconds(sum(scaled[i]), 3)}`))));
  new Chart(byId("compared-chart")).show({
    label: "Plans by memory and step time", fromZero: true,
    x: { title: "share of a GPU’s memory", text: (v) => text.percent(v, 0) },
    y: { title: "time for A’s tokens, and its range; a ring: a tie with A",
         text: (v) => text.seconds(v, 3) },
    points: compared.plans.map((plan) => {
      const share = shareOfA(compared, plan), range = plan.step_time_range;
      return {
        x: plan.peak_bytes / plan.capacity_bytes, y: plan.step_time_s * share, label: plan.label,
        across: [range.low_s * share, range.high_s * share] as [number, number],
        mark: markOf(compared, plan.label), title: `${plan.label}: ${plan.source}`,
      };
    }),
  });
  new Chart(byId("compared-runs-chart")).show(!compared.runs ? null : {
    label: "Whole runs by days and rent",
    x: { title: "days", text: (v) => text.significant(v, 3) },
    y: { title: "rent, and its range", text: (v) => text.dollars(v) },
    points: compared.runs.filter((run) => run.rent_usd).map((run) => ({
      x: run.days.mean, y: (run.rent_usd!.low + run.rent_usd!.high) / 2, label: run.label,
      across: [run.rent_usd!.low, run.rent_usd!.high] as [number, number],
      mark: run.label === "A" ? "first" as const : "listed" as const,
      title: `${run.label}: ${text.significant(run.days.mean, 3)} days, ` +
        text.dollarRange(run.rent_usd!.low, run.rent_usd!.high),
    })),
  });
}
