#include <gtest/gtest.h>

#include "sim/formats/megatron/layer_split.hpp"

namespace orrery::layer_pattern_test {
namespace {

const Place place{"run.sh", ""};

TEST(LayersOfLayout, LettersBarsAndRepetitions) {
  EXPECT_EQ(layers_of_layout("Ettt|tttt|ttmL", place), (std::vector<int>{3, 4, 2}));
  EXPECT_EQ(layers_of_layout("'Et*3|(tt|)*2,m|L'", place), (std::vector<int>{3, 2, 2, 0, 0}));
  EXPECT_EQ(layers_of_layout("((t|)*2)*2L", place), (std::vector<int>{1, 1, 1, 1, 0}));
}

TEST(LayersOfLayout, Refusals) {
  for (const char* layout : {"Etx", "(t", "t)", "t*", "t*x", "((t*9999)*9999)"})
    EXPECT_THROW(layers_of_layout(layout, place), Error) << layout;
  EXPECT_THROW(layers_of_layout(std::string(1000, '('), place), Error);
}

TEST(ExpertLayers, Frequencies) {
  EXPECT_EQ(expert_layers("1", 4), "1111");
  EXPECT_EQ(expert_layers("2", 5), "10101");
}

TEST(ExpertLayers, Lists) {
  EXPECT_EQ(expert_layers("[0]*1+[1]*3", 4), "0111");
  EXPECT_EQ(expert_layers("'([0]*1 + [1]*3)'", 4), "0111");
  EXPECT_EQ(expert_layers("[0, 1]*2", 4), "0101");
  EXPECT_EQ(expert_layers("[0,1,1,1]", 4), "0111");
}

TEST(ExpertLayers, WhatIsNone) {
  for (const char* pattern :
       {"", "0", "x", "[0]*1+[1]*4", "[0]*1+[1]*2", "[2]*4", "[1]*x", "[1", "[1]4", "[1]*99999999"})
    EXPECT_EQ(expert_layers(pattern, 4), std::nullopt) << pattern;
}

}  // namespace
}  // namespace orrery::layer_pattern_test
