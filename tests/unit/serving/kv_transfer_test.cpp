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

TEST(KvTransfer, CountsEachKeyAndValueOnce) {
  // 80 layers x 2 x 8 heads x 128 x 2 B; 61 layers x (512 + 64) x 2 B.
  const Model llama = read_model("llama3.1-70b", place);
  EXPECT_EQ(kv_bytes(llama, Dtype::bf16, 1), Bytes{327'680});
  EXPECT_EQ(kv_bytes(llama, Dtype::fp8, 1000), Bytes{163'840'000});
  EXPECT_EQ(kv_bytes(read_model("deepseek-v3", place), Dtype::bf16, 1), Bytes{70'272});
}

// Half of gpt-oss's 36 layers attend to 128 tokens: 18 x (128 + c) x 2 x 8 x 64 x 2 B.
TEST(KvTransfer, SendsOfAWindowWhatIsInIt) {
  const Model model = read_model("gpt-oss-120b", place);
  for (const std::int64_t tokens : {100, 128, 1000})
    EXPECT_EQ(
        kv_bytes(model, Dtype::bf16, tokens),
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
