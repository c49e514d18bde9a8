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
  EXPECT_EQ(expert_layers("([0]*1 + [1]*3)*2", 8), "01110111");
  EXPECT_EQ(expert_layers("[0]+(([1]+[0])*2+[1,1])*2", 13), "0101011101011");
}

TEST(ExpertLayers, WhatIsNone) {
  for (const char* pattern :
       {"", "0", "x", "[0]*1+[1]*4", "[0]*1+[1]*2", "[2]*4", "[1]*x", "[1", "[1]4", "[1]*99999999",
        "([1]*4", "[1]*4)", "()", "([1]*2)**2", "[1]*2*2", "[1]*4+", "+[1]*4"})
    EXPECT_EQ(expert_layers(pattern, 4), std::nullopt) << pattern;
}

TEST(ExpertLayers, DeepBracketsAreRefused) {
  EXPECT_EQ(expert_layers(std::string(100'000, '('), 4), std::nullopt);
}

// transformer_config.py: of each N layers the last has usual attention.
TEST(LinearLayers, FrequenciesAndLists) {
  EXPECT_EQ(linear_layers("4", 8), "11101110");
  EXPECT_EQ(linear_layers("1", 2), "00");
  EXPECT_EQ(linear_layers("3", 5), "11011");
  EXPECT_EQ(linear_layers("([1]*3+[0]*1)*2", 8), "11101110");
  for (const char* pattern : {"0", "-1", "x", "[1]*3"})
    EXPECT_EQ(linear_layers(pattern, 4), std::nullopt) << pattern;
}

}  // namespace
}  // namespace orrery::layer_pattern_test
