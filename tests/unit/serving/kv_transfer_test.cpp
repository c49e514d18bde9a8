#include "sim/serving/kv_transfer.hpp"

#include <gtest/gtest.h>

#include <map>

namespace orrery::kv_transfer_test {
namespace {

const Place place{"test", ""};

Deployment cut(int tp, int pp = 1) {
  Deployment plan;
  plan.tp = tp;
  plan.pp = pp;
  return plan;
}

Deployment kept_in(Dtype format) {
  Deployment plan;
  plan.kv = format;
  return plan;
}

// Qwen3.5 397B: 15 layers x 2 x 2 heads x 256 x 2 B a token, and 45 states of 64 x 128 x 128 x 4 B
// with three inputs of a convolution over 12,288 channels, which are sent once whatever the tokens.
TEST(KvTransfer, SendsStatesWhole) {
  const Model model = read_model("qwen3.5-397b-a17b", place);
  constexpr double states = 45.0 * (64 * 128 * 128 * 4 + 3 * 12'288 * 2);
  EXPECT_EQ(kv_bytes(model, kept_in(Dtype::bf16), 1), Bytes{states + 30'720});
  EXPECT_EQ(kv_bytes(model, kept_in(Dtype::bf16), 1000), Bytes{states + 30'720'000});
}

// GLM-5: 78 layers of 512 + 64 values, in fp8 with a scale for 128 and the 64 in 16 bits, and of
// 128 + 4 bytes of an index key.
// Of 100 bytes with 40 of states, ranks that hold two copies of key heads receive 2 x 60 + 40.
TEST(KvTransfer, SendsStatesOnceWhateverTheCopies) {
  KvRoute route;
  route.sent = 2.0;
  EXPECT_DOUBLE_EQ(route.sent * route.shared_bytes(100.0, 40.0), 160.0);
  route.sent = 1.0;
  EXPECT_DOUBLE_EQ(route.shared_bytes(100.0, 40.0), 100.0);
}

TEST(KvTransfer, SendsIndexKeys) {
  const Model model = read_model("glm-5", place);
  EXPECT_EQ(kv_bytes(model, kept_in(Dtype::bf16), 1), Bytes{78.0 * (1'152 + 132)});
  EXPECT_EQ(kv_bytes(model, kept_in(Dtype::fp8), 1), Bytes{78.0 * (656 + 132)});
}

TEST(KvTransfer, CountsEachKeyAndValueOnce) {
  // 80 layers x 2 x 8 heads x 128 x 2 B; 61 layers x (512 + 64) x 2 B.
  const Model llama = read_model("llama3.1-70b", place);
  EXPECT_EQ(kv_bytes(llama, kept_in(Dtype::bf16), 1), Bytes{327'680});
  EXPECT_EQ(kv_bytes(llama, kept_in(Dtype::fp8), 1000), Bytes{163'840'000});
  EXPECT_EQ(kv_bytes(read_model("deepseek-v3", place), kept_in(Dtype::bf16), 1), Bytes{70'272});
}

// Half of gpt-oss's 36 layers attend to 128 tokens: 18 x (128 + c) x 2 x 8 x 64 x 2 B.
TEST(KvTransfer, SendsOfAWindowWhatIsInIt) {
  const Model model = read_model("gpt-oss-120b", place);
  for (const std::int64_t tokens : {100, 128, 1000})
    EXPECT_EQ(
        kv_bytes(model, kept_in(Dtype::bf16), tokens),
        Bytes{18.0 * 2048 * static_cast<double>(std::min<std::int64_t>(tokens, 128) + tokens)});
}

// However both sides are cut, each rank of the decode pool gets its layers and heads, and senders
// that hold the same share the work.
TEST(KvTransfer, GivesEachRankItsPart) {
  for (const std::string name : {"llama3.1-70b", "deepseek-v3"}) {
    const Model model = read_model(name, place);
    const int heads = model.latent ? 1 : static_cast<int>(model.kv_heads);
    for (const int from_tp : {1, 2, 4, 8, 16})
      for (const int to_tp : {1, 2, 4, 8, 16})
        for (const int from_pp : {1, 2})
          for (const int to_pp : {1, 2, 4}) {
            SCOPED_TRACE(name + " " + std::to_string(from_tp) + " " + std::to_string(to_tp) + " " +
                         std::to_string(from_pp) + " " + std::to_string(to_pp));
            const auto lanes = kv_lanes(model, cut(from_tp, from_pp), cut(to_tp, to_pp));
            std::map<int, double> to, from;
            for (const KvLane& lane : lanes) {
              EXPECT_GT(lane.share, 0.0);
              EXPECT_LT(lane.from, from_tp * from_pp);
              to[lane.to] += lane.share;
              from[lane.from] += lane.share;
            }
            EXPECT_EQ(to.size(), static_cast<std::size_t>(to_tp * to_pp));
            double sent = 0.0;
            for (int stage = 0; stage < to_pp; ++stage) {
              double of_stage = 0.0;
              for (int rank = 0; rank < to_tp; ++rank) of_stage += to[stage * to_tp + rank];
              const int each = (model.layers + to_pp - 1) / to_pp;
              const int layers = std::min(model.layers, (stage + 1) * each) - stage * each;
              // Ranks beyond the heads hold copies.
              const double copies = std::max(1.0, static_cast<double>(to_tp) / heads);
              EXPECT_NEAR(of_stage, copies * layers / model.layers, 1e-12);
              sent += of_stage;
            }
            if (from_pp > 1) continue;
            for (const auto& [rank, share] : from)
              EXPECT_NEAR(share, sent / static_cast<double>(from.size()), 1e-12) << rank;
          }
  }
}

}  // namespace
}  // namespace orrery::kv_transfer_test
