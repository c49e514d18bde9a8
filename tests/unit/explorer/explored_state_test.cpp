#include "sim/explorer/explored_state.hpp"

#include <gtest/gtest.h>

namespace orrery::explored_state_test {
namespace {

const NamesAllowed& names() {
  static const NamesAllowed all = [] {
    NamesAllowed of = NamesAllowed::of_catalog();
    of.given["model"].insert("/my/model's.json");
    return of;
  }();
  return all;
}
ExploredState read(const std::string& json) { return ExploredState::read(json, names()); }

TEST(ExploredState, IsTheCommandThatAsksTheSame) {
  const ExploredState state = read(
      R"({"tokens":"15T","gbs":"64","tp":"2","gpus":"8","system":"dgx-h100","model":"llama3-8b"})");
  EXPECT_EQ(state.command(),
            "estimate --model llama3-8b --system dgx-h100 --gpus 8 --tp 2 --gbs 64 --tokens 15T");
  EXPECT_EQ(state.gpus(), 8);
  EXPECT_EQ(state.request().tp, 2);
}

TEST(ExploredState, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(read(R"({"model":"/my/model's.json","nccl_algo":"^NVLS"})").command(),
            R"(estimate --model '/my/model'\''s.json' --nccl_algo '^NVLS')");
}

TEST(ExploredState, LeavesOutWhatIsEmpty) {
  EXPECT_TRUE(read(R"({"tp":"","pp":null})").words().empty());
  EXPECT_TRUE(ExploredState{}.with("tp", "8").with("tp", "").words().empty());
}

TEST(ExploredState, NamesTheCatalogAndWhatWasGiven) {
  EXPECT_NO_THROW(read(R"({"model":"/my/model's.json"})"));
  EXPECT_THROW(read(R"({"model":"/my/other.json"})"), Error);
  EXPECT_THROW(read(R"({"system":"/my/model's.json"})"), Error);
  EXPECT_NO_THROW(read(R"({"routing":"zipf:1.2"})"));
  EXPECT_THROW(read(R"({"routing":"zipf:1.2/x"})"), Error);
}

TEST(ExploredState, IsShort) {
  EXPECT_THROW(read("{\"tokens\":\"" + std::string(ExploredState::most_bytes, '1') + "\"}"), Error);
}

// As single changes of `orrery estimate --changes` leave open what cannot stay.
TEST(ChangesWith, LeaveOpenWhatCannotStay) {
  const ExploredState state = ExploredState{}
                                  .with("pp", "8")
                                  .with("vpp", "2")
                                  .with("schedule", "interleaved")
                                  .with("layers", "6+6x14+6")
                                  .with("zero", "3")
                                  .with("reshard", "true")
                                  .with("dp", "4");
  EXPECT_EQ(changes_with(state, "vpp", "4"),
            (StateChanges{{"vpp", "4"}, {"schedule", ""}, {"layers", ""}}));
  EXPECT_EQ(changes_with(state, "vpp", "1"),
            (StateChanges{{"vpp", ""}, {"schedule", ""}, {"layers", ""}}));
  EXPECT_EQ(changes_with(state, "pp", "1"),
            (StateChanges{{"pp", "1"}, {"vpp", ""}, {"schedule", ""}, {"layers", ""}, {"dp", ""}}));
  EXPECT_EQ(changes_with(state, "zero", "1"), (StateChanges{{"zero", "1"}, {"reshard", ""}}));
  EXPECT_EQ(changes_with(state, "zero", "3"), (StateChanges{{"zero", "3"}}));
  EXPECT_EQ(changes_with(state, "mbs", "2"), (StateChanges{{"mbs", "2"}}));
  EXPECT_FALSE(changed(state, changes_with(state, "pp", "1")).says("vpp"));
}

}  // namespace
}  // namespace orrery::explored_state_test
