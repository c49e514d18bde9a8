#include "sim/profile/step_profile.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/error_text.hpp"
#include "tests/support/synthetic_step.hpp"

namespace orrery::step_profile_test {
namespace {

KinetoTrace parse(const TraceText& text) {
  std::istringstream stream{text.text()};
  return parse_kineto(stream, "trace.json");
}

StepProfile profile(const TraceText& text, std::optional<std::int64_t> step = {}) {
  return profile_step(parse(text), KernelNames{}, step);
}

std::int64_t sum(const StepProfile& profile) {
  std::int64_t ns = profile.host_ns + profile.idle_ns;
  for (const StepProfile::Part& part : profile.parts) ns += part.own_ns;
  return ns;
}

const char* const product = "nvjet_tst";
const char* const gather = "ncclDevKernel_AllGather_RING_LL";

// Communication from 100 to 400 and kernels from 200 to 300 and 350 to 500, ns.
TEST(StepProfile, KernelsHideCommunication) {
  TraceText text;
  text.kernel(gather, 100, 300, 20);
  text.kernel(product, 200, 100);
  text.kernel("triton_", 350, 150);
  const StepProfile found = profile(text);
  EXPECT_EQ(found.length_ns(), 400);
  EXPECT_EQ(found.at(GpuWork::products).own_ns, 100);
  EXPECT_EQ(found.at(GpuWork::streaming).own_ns, 150);
  EXPECT_EQ(found.at(GpuWork::all_gather).busy_ns, 300);
  EXPECT_EQ(found.at(GpuWork::all_gather).own_ns, 150);  // 100 to 200 and 300 to 350.
  EXPECT_EQ(found.host_ns + found.idle_ns, 0);
  EXPECT_EQ(sum(found), 400);
  EXPECT_EQ(found.step, std::nullopt);
  ASSERT_EQ(found.exposed.size(), 1u);
  EXPECT_EQ(found.exposed[0].ns, 150);
}

// The GPU ends at 100; the call that launches what begins at 900 ends at 700.
TEST(StepProfile, TheHostHasTheTimeUpToTheEndOfTheLaunch) {
  TraceText text;
  text.kernel(product, 0, 100);
  text.launch(5, 650, 50);
  text.kernel(product, 900, 100, 7, 5);
  const StepProfile found = profile(text);
  EXPECT_EQ(found.host_ns, 600);
  EXPECT_EQ(found.idle_ns, 200);
  // A launch that ended before costs no host time, one that is not in the trace neither.
  TraceText early;
  early.kernel(product, 0, 100);
  early.launch(5, 10, 50);
  early.kernel(product, 900, 100, 7, 5);
  early.kernel(product, 1100, 100, 7, 6);
  EXPECT_EQ(profile(early).host_ns, 0);
  EXPECT_EQ(profile(early).idle_ns, 900);
}

// Launched in step 1: 1,000 to 2,000 and, in the end, 5,900 to 6,100, which runs into step 2. Its
// first kernel begins at 6,000, when the annotation of step 1 has long ended.
TraceText three_steps() {
  TraceText text;
  text.step(1, 0, 500);
  text.step(2, 500, 500);
  text.step(3, 1000, 500);
  const auto launched = [&](std::int64_t at, std::int64_t begin, std::int64_t length,
                            const char* name, int stream = 7) {
    static std::int64_t correlation = 0;
    text.launch(++correlation, at, 10);
    text.kernel(name, begin, length, stream, correlation);
  };
  launched(100, 1'000, 1'000, product);
  launched(200, 5'900, 200, gather, 20);
  launched(600, 6'000, 1'000, product);
  launched(1'100, 8'000, 100, product);
  return text;
}

TEST(StepProfile, AStepBeginsWithTheFirstWorkLaunchedInIt) {
  const StepProfile first = profile(three_steps(), 1), second = profile(three_steps(), 2);
  EXPECT_EQ(first.steps, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(first.begin_ns, synthetic_epoch_ns + 1'000);
  EXPECT_EQ(first.end_ns, synthetic_epoch_ns + 6'000);
  EXPECT_EQ(first.at(GpuWork::products).own_ns, 1'000);
  EXPECT_EQ(first.at(GpuWork::all_gather).own_ns, 100);
  EXPECT_EQ(first.host_ns, 0);
  EXPECT_EQ(first.idle_ns, 3'900);
  EXPECT_EQ(second.length_ns(), 2'000);
  EXPECT_EQ(second.at(GpuWork::all_gather).count, 0);      // It began in step 1,
  EXPECT_EQ(second.at(GpuWork::all_gather).busy_ns, 100);  // and is hidden in step 2.
  EXPECT_EQ(second.at(GpuWork::all_gather).own_ns, 0);
  EXPECT_EQ(sum(first), 5'000);
  EXPECT_EQ(sum(second), 2'000);
  EXPECT_EQ(profile(three_steps()).step, 2);  // Of two the shorter one is the median.
  EXPECT_EQ(error_text([] { profile(three_steps(), 3); }),
            "trace.json: has no whole step 3; it has: 1, 2");
  TraceText without;
  without.kernel(product, 0, 1);
  EXPECT_EQ(error_text([&] { profile(without, 3); }),
            "trace.json: has no whole step 3; leave out --profile-step: it is taken whole");
}

// What a group is for where it says so, else what its messages are usually for.
TEST(StepProfile, GroupsSayWhatTheyAreFor) {
  TraceText text;
  const auto group = [](const std::string& name) {
    return ", \"Process Group Description\": \"" + name + "\"";
  };
  text.kernel(gather, 0, 10, 20, -1, group("mesh_tp"));
  text.kernel("ncclDevKernel_SendRecv", 10, 20, 20, -1, group("mesh_cp"));
  text.kernel("ncclDevKernel_SendRecv", 30, 30, 20);
  text.kernel("ncclDevKernel_SendRecv", 60, 40, 20, -1, ", \"Collective name\": \"all_to_allv\"");
  text.kernel("ncclDevKernel_AllReduce_Sum_f32", 100, 50, 20, -1, group("default_pg"));
  std::map<GroupUse, std::int64_t> uses;
  for (const StepProfile::Exposed& one : profile(text).exposed) uses[one.use] += one.ns;
  EXPECT_EQ(uses, (std::map<GroupUse, std::int64_t>{{GroupUse::tensor, 10},
                                                    {GroupUse::context, 20},
                                                    {GroupUse::pipeline, 30},
                                                    {GroupUse::expert, 40},
                                                    {GroupUse::other, 50}}));
}

TEST(StepProfile, NamesWhatItDoesNotKnow) {
  TraceText text;
  text.kernel("mine_a", 0, 10);
  text.kernel("mine_b", 10, 25);
  text.kernel("mine_a", 35, 20);
  const StepProfile found = profile(text);
  ASSERT_EQ(found.unknown.size(), 2u);
  EXPECT_EQ(found.unknown[0].name, "mine_a");
  EXPECT_EQ(found.unknown[0].count, 2);
  EXPECT_EQ(found.unknown[0].ns, 30);
  EXPECT_EQ(found.at(GpuWork::unknown).own_ns, 55);
}

// Three pieces of work in all ways within five nanoseconds, against a count of each nanosecond.
TEST(StepProfile, AllSmallCases) {
  struct Piece {
    int begin, end, kind;
  };
  const char* const names[] = {product, gather, "Memcpy HtoD (Pinned -> Device)"};
  const GpuWork works[] = {GpuWork::products, GpuWork::all_gather, GpuWork::copies};
  std::vector<Piece> pieces;
  for (int kind = 0; kind < 3; ++kind)
    for (int begin = 0; begin < 5; ++begin)
      for (int end = begin; end <= 5; ++end)
        if (end > begin || begin == 2) pieces.push_back({begin, end, kind});  // And an empty one.
  KinetoTrace trace;
  trace.file = "small";
  trace.names = {"", names[0], names[1], names[2]};
  const KernelNames known;
  int cases = 0;
  for (const Piece& a : pieces)
    for (const Piece& b : pieces)
      for (const Piece& c : pieces) {
        trace.activities.clear();
        int first = 5, last = 0;
        for (const Piece& one : {a, b, c}) {
          GpuActivity activity;
          activity.begin_ns = one.begin;
          activity.end_ns = one.end;
          activity.name = static_cast<std::uint32_t>(one.kind + 1);
          activity.kind = one.kind == 2 ? GpuActivity::Kind::copy : GpuActivity::Kind::kernel;
          trace.activities.push_back(activity);
          first = std::min(first, one.begin);
          last = std::max(last, one.end);
        }
        std::sort(trace.activities.begin(), trace.activities.end(),
                  [](const GpuActivity& x, const GpuActivity& y) {
                    return std::tie(x.begin_ns, x.end_ns) < std::tie(y.begin_ns, y.end_ns);
                  });
        std::int64_t own[3] = {}, busy[3] = {}, idle = 0;
        for (int ns = first; ns < last; ++ns) {
          bool runs[3] = {};
          for (const Piece& one : {a, b, c})
            if (one.begin <= ns && ns < one.end) runs[one.kind] = true;
          for (int kind = 0; kind < 3; ++kind) busy[kind] += runs[kind];
          int kind = 0;
          while (kind < 3 && !runs[kind]) ++kind;
          ++(kind < 3 ? own[kind] : idle);
        }
        const StepProfile found = profile_step(trace, known);
        ASSERT_EQ(found.length_ns(), last - first);
        ASSERT_EQ(sum(found), found.length_ns());
        ASSERT_EQ(found.idle_ns, idle);
        for (int kind = 0; kind < 3; ++kind) {
          ASSERT_EQ(found.at(works[kind]).own_ns, own[kind]);
          ASSERT_EQ(found.at(works[kind]).busy_ns, busy[kind]);
        }
        ++cases;
      }
  EXPECT_EQ(cases, 48 * 48 * 48);
}

TEST(StepProfile, AWholeStepAddsUpInAnyOrder) {
  std::istringstream stream{SyntheticStep::text()};
  const KinetoTrace trace = parse_kineto(stream, "step.json");
  const StepProfile found = profile_step(trace, KernelNames{});
  EXPECT_EQ(found.step, 1);
  EXPECT_EQ(sum(found), found.length_ns());
  // 16 layers of 4 products forward and 8 back, and the head's 3; by their formula.
  using Step = SyntheticStep;
  const auto ns = Step::product_ns;
  const std::int64_t t = Step::tokens, h = Step::hidden, f = Step::ffn, a = 1024, qkv = 1536;
  const std::int64_t layer = ns(t, qkv, h) + ns(t, h, a) + ns(t, f, h) + ns(t, h, f / 2) +
                             ns(t, f / 2, h) + ns(h, f / 2, t) + ns(t, h, f) + ns(f, h, t) +
                             ns(t, a, h) + ns(h, a, t) + ns(t, h, qkv) + ns(qkv, h, t);
  const std::int64_t head = ns(t, Step::vocab, h) + ns(t, h, Step::vocab) + ns(Step::vocab, h, t);
  EXPECT_EQ(found.at(GpuWork::products).own_ns, 16 * layer + head);
  EXPECT_EQ(found.at(GpuWork::products).count, 16 * 12 + 3);
  EXPECT_GT(found.host_ns, 300'000);  // The batch is read while the GPU waits.
}

}  // namespace
}  // namespace orrery::step_profile_test
