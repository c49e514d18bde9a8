#include <gtest/gtest.h>

#include "sim/formats/megatron/layer_split.hpp"

namespace orrery::pipeline_split_test {
namespace {

// "vpp layers; note" of 16 layers on `stages` stages.
std::string split_of(const std::string& flags, int stages = 4) {
  std::vector<std::string> notes;
  const auto arguments =
      MegatronArguments::read("pretrain_gpt.py --num-layers 16 " + flags, "run.sh", {});
  const PipelineSplit split = pipeline_split(arguments, 16, stages, notes);
  return std::to_string(split.vpp) + " " + stage_layers_text(split.layers) +
         (notes.empty() ? "" : "; " + notes.at(0));
}

std::string error_of(const std::string& flags, int stages = 4) {
  try {
    return split_of(flags, stages);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PipelineSplit, IsEvenByDefault) {
  EXPECT_EQ(split_of(""), "1 even");
  EXPECT_EQ(split_of("--num-layers-per-virtual-pipeline-stage 2"), "2 even");
  EXPECT_EQ(split_of("--num-virtual-stages-per-pipeline-rank 4"), "4 even");
  EXPECT_EQ(error_of("--num-layers-per-virtual-pipeline-stage 3"),
            "run.sh: line 1: --num-layers-per-virtual-pipeline-stage 3 does not divide the 16 "
            "layers on 4 "
            "stages; write a divisor");
}

TEST(PipelineSplit, Layouts) {
  EXPECT_EQ(split_of("--pipeline-model-parallel-layout 'Et*3|(tttt|)*2t*5L'"), "1 3+4x2+5");
  EXPECT_EQ(split_of("--pipeline-model-parallel-layout 'Et|(tt|)*6tttL'"), "2 1+2x6+3");
  EXPECT_EQ(split_of("--pipeline-model-parallel-layout 'Et*5|t*5|t*6m|L'"),
            "1 5x2+6+0; the layout has prediction layers before its last chunk; they are priced in "
            "the last one");
  EXPECT_EQ(split_of("--pipeline-model-parallel-layout 'Et*5|t*5|t*5|tmL'"), "1 5x3+1");
  EXPECT_EQ(error_of("--pipeline-model-parallel-layout 'Et*8|t*8|m|L'"),
            "run.sh: line 1: --pipeline-model-parallel-layout has a chunk without layers that is "
            "neither the first nor the last; give it a layer; prediction layers stand in the last "
            "chunk, with the loss");
  EXPECT_EQ(
      error_of("--pipeline-model-parallel-layout 'Et*8|t*8L'"),
      "run.sh: line 1: --pipeline-model-parallel-layout has 2 chunks for 4 stages; the second must "
      "divide the first");
}

// 16 - 2 = 14 and 16 - 5 = 11 are no multiples of three, 16 - 4 = 12 is; 16 - 2 - 4 = 10 on two.
TEST(PipelineSplit, ChosenEnds) {
  EXPECT_EQ(split_of("--decoder-first-pipeline-num-layers 4"), "1 4x4");
  EXPECT_EQ(split_of("--decoder-last-pipeline-num-layers 1"), "1 5x3+1");
  EXPECT_EQ(split_of("--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 4"),
            "1 2+5x2+4");
  // Each stage in two chunks: 2 = 1 + 1, 6 = 3 + 3, and 8 on two stages.
  EXPECT_EQ(split_of("--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 6 "
                     "--num-virtual-stages-per-pipeline-rank 2"),
            "2 1+2x2+3+1+2x2+3");
  EXPECT_EQ(error_of("--decoder-first-pipeline-num-layers 2"),
            "run.sh: line 1: --decoder-first-pipeline-num-layers leaves 14 layers for 3 stages of "
            "1 chunk; "
            "write a number that leaves a multiple");
  EXPECT_EQ(error_of("--decoder-last-pipeline-num-layers 3", 1),
            "run.sh: line 1: --decoder-last-pipeline-num-layers leaves 13 layers for 0 stages of 1 "
            "chunk; "
            "write a number that leaves a multiple");
}

TEST(PipelineSplit, EndsThatCount) {
  EXPECT_EQ(split_of("--account-for-embedding-in-pipeline-split "
                     "--account-for-loss-in-pipeline-split",
                     3),
            "1 5+6+5");
  EXPECT_EQ(
      error_of("--account-for-loss-in-pipeline-split"),
      "run.sh: line 1: --account-for-loss-in-pipeline-split makes 17 layers, which 4 chunks do not "
      "divide; leave it out, or change the number of layers or stages");
}

}  // namespace
}  // namespace orrery::pipeline_split_test
