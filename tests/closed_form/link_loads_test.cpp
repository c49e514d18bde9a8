// Bytes on links over time: none is lost or added, and each is there when it is sent.
#include "sim/training/link_loads.hpp"

#include <gtest/gtest.h>

#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::link_loads_test {
namespace {

struct Case {
  std::string name, system;
  int tp = 1, pp = 1, ep = 1, gpus = 8, microbatches = 4;
  bool expanded = false, unfolded = false;
};

Estimate estimate_of(const Case& of) {
  const int dp = of.gpus / of.tp / of.pp;
  PlanRequest request = plan_request(of.tp, of.pp, 1, of.microbatches * dp, 64, "megatron-core");
  if (of.ep > 1) request.ep = of.ep;
  if (of.name == "mesh") request.dtype = Dtype::fp16;  // A V100 has no bf16.
  const Model model = of.ep > 1 ? small_mixture(8, 512, 8, 1024, 8, 2) : small_gpt(8, 512, 8, 1024);
  Detail detail;
  detail.expanded = of.expanded;
  detail.unfolded = of.unfolded;
  return estimate(scenario_of(model, read_system(of.system, test_place), request, of.gpus), detail);
}

std::vector<Case> cases() {
  return {{"tensor alone", "dgx-h100", 8, 1, 1, 8},
          {"all but experts", "dgx-h100", 2, 4, 1, 32},
          {"the same, expanded", "dgx-h100", 2, 4, 1, 32, 4, true},
          {"every rank", "dgx-h100", 2, 4, 1, 32, 4, false, true},
          {"experts", "dgx-h100", 2, 2, 4, 32},
          {"leaves and spines", "hgx-h100-leaf-spine-2to1", 2, 2, 4, 64},
          {"PCIe", "l40s-pcie", 2, 4, 1, 16},
          {"mesh", "dgx-1-v100-cube-mesh", 4, 2, 1, 16}};
}

std::vector<LinkId> all_links(const std::vector<LinkLoad>& loads) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < loads.size(); ++i) links.push_back(LinkId{static_cast<int>(i)});
  return links;
}

// Also of slices that are finer than a collective, and of one.
TEST(LinkLoadsOverTime, AddUpToTheStep) {
  for (const Case& of : cases()) {
    const Estimate answer = estimate_of(of);
    const std::vector<LinkLoad> whole = link_loads(answer.step, answer.topology);
    int loaded = 0;
    for (const int slices : {1, 7, 160, 2000}) {
      SCOPED_TRACE(of.name + " in " + std::to_string(slices));
      const auto over = link_loads_over_time(answer.step, answer.timeline, answer.topology,
                                             all_links(whole), slices);
      for (std::size_t link = 0; link < whole.size(); ++link)
        for (std::size_t user = 0; user < whole[link].size(); ++user) {
          Bytes sum;
          for (const LinkLoad& slice : over[link]) {
            EXPECT_GE(slice[user], Bytes{});
            sum += slice[user];
          }
          EXPECT_NEAR(sum.si(), whole[link][user].si(), 1e-9 * whole[link][user].si());
          loaded += sum > Bytes{} ? 1 : 0;
        }
    }
    EXPECT_GT(loaded, 0) << of.name;
    // The report is of these.
    for (const LinkReport& report : answer.result.links) {
      const auto found = std::find_if(whole.begin(), whole.end(),
                                      [&](const LinkLoad& load) { return load == report.by_user; });
      EXPECT_NE(found, whole.end()) << of.name << " " << report.name;
    }
  }
}

// Half slices add up to whole ones.
TEST(LinkLoadsOverTime, AreTheSameInFinerSlices) {
  const Estimate answer = estimate_of(cases()[1]);
  const auto links = all_links(link_loads(answer.step, answer.topology));
  const auto of = [&](int slices) {
    return link_loads_over_time(answer.step, answer.timeline, answer.topology, links, slices);
  };
  const auto coarse = of(50), fine = of(100);
  for (std::size_t link = 0; link < links.size(); ++link)
    for (std::size_t slice = 0; slice < 50; ++slice) {
      const Bytes whole = total(coarse[link][slice]);
      const Bytes halves = total(fine[link][2 * slice]) + total(fine[link][2 * slice + 1]);
      EXPECT_NEAR(halves.si(), whole.si(), 1e-6 * whole.si() + 1.0);
    }
}

// Parts of the step, in as many slices as one likes, are parts of the whole.
TEST(LinkLoadsOverTime, OfAPartAreThatPart) {
  for (const std::size_t which : {1, 2}) {
    const Estimate answer = estimate_of(cases()[which]);
    const auto links = all_links(link_loads(answer.step, answer.topology));
    const auto whole =
        link_loads_over_time(answer.step, answer.timeline, answer.topology, links, 60);
    const Seconds step = answer.timeline.makespan.seconds();
    for (const auto& [first, last] : {std::pair{0, 60}, {0, 7}, {13, 29}, {59, 60}}) {
      const auto part = link_loads_over_time(answer.step, answer.timeline, answer.topology, links,
                                             11, {first / 60.0 * step, last / 60.0 * step});
      for (std::size_t link = 0; link < links.size(); ++link) {
        Bytes expected, found;
        for (int i = first; i < last; ++i)
          expected += total(whole[link][static_cast<std::size_t>(i)]);
        for (const LinkLoad& slice : part[link]) found += total(slice);
        EXPECT_NEAR(found.si(), expected.si(), 1e-6 * expected.si() + 1.0) << first;
      }
    }
  }
}

// A coalesced pass has its collectives where the expanded one has them. Links have the same numbers
// where routes are first requested in the same order, so they are found by name.
TEST(LinkLoadsOverTime, DoNotDependOnContraction) {
  const Estimate contracted = estimate_of(cases()[1]), detailed = estimate_of(cases()[2]);
  ASSERT_TRUE(contracted.step.contracted);
  ASSERT_FALSE(detailed.step.contracted);
  constexpr int slices = 20;
  const auto loads = [&](const Estimate& answer) {
    const auto links = all_links(link_loads(answer.step, answer.topology));
    const auto over =
        link_loads_over_time(answer.step, answer.timeline, answer.topology, links, slices);
    std::map<std::string, std::vector<LinkLoad>> by_name;
    for (std::size_t i = 0; i < links.size(); ++i)
      by_name[answer.topology.name(links[i])] = over[i];
    return by_name;
  };
  const auto a = loads(contracted), b = loads(detailed);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, over] : a) {
    Bytes apart, sum;
    for (std::size_t slice = 0; slice < slices; ++slice) {
      const Bytes one = total(over[slice]), other = total(b.at(name)[slice]);
      apart += one > other ? one - other : other - one;
      sum += one;
    }
    EXPECT_LE(apart.si(), 0.01 * sum.si()) << name;
  }
}

// Gradients are summed up after the last backward pass where nothing overlaps, and stages send to
// each other before that.
TEST(LinkLoadsOverTime, AreThereWhenTheyAreSent) {
  const Estimate answer = estimate_of(cases()[1]);
  const auto links = all_links(link_loads(answer.step, answer.topology));
  constexpr int slices = 500;
  const auto over =
      link_loads_over_time(answer.step, answer.timeline, answer.topology, links, slices);
  for (const LinkUser user : {LinkUser::pipeline, LinkUser::data}) {
    Seconds first{1e300}, last;
    for (int i = 0; i < answer.step.graph.size(); ++i) {
      const Label::What what = answer.step.label(TaskId{i}).what;
      const bool sends = user == LinkUser::pipeline
                             ? what == Label::What::transfer
                             : what == Label::What::gradients || what == Label::What::weights ||
                                   what == Label::What::norm;
      if (!sends || answer.step.graph.task(TaskId{i}).flows.empty()) continue;
      first = std::min(first, answer.timeline.of(TaskId{i}).start.seconds());
      last = std::max(last, answer.timeline.of(TaskId{i}).finish.seconds());
    }
    const double slice = answer.timeline.makespan.seconds().si() / slices;
    int busy = 0;
    for (const auto& link : over)
      for (int i = 0; i < slices; ++i) {
        if (link[static_cast<std::size_t>(i)][static_cast<std::size_t>(user)] == Bytes{}) continue;
        ++busy;
        EXPECT_GE((i + 1) * slice, first.si() * (1 - 1e-9));
        EXPECT_LE(i * slice, last.si() * (1 + 1e-9));
      }
    EXPECT_GT(busy, 0);
  }
}

}  // namespace
}  // namespace orrery::link_loads_test
