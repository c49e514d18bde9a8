#include "sim/serving/scheduler.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sim/core/catalog.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery::scheduler_test {
namespace {

// The list and the catalog of engines name the same schedulers, each once.
TEST(Schedulers, EachIsThatOfAnEngine) {
  std::multiset<std::string> listed;
  for (const SchedulerKind* kind : schedulers()) {
    listed.insert(kind->name);
    EXPECT_NE(kind->make(), nullptr) << kind->name;
  }
  std::set<std::string> used;
  for (const std::string& engine : list_catalog("workloads/engines"))
    used.insert(read_serving_engine(engine, {"test", ""}).scheduler->name);
  EXPECT_EQ(std::multiset<std::string>(used.begin(), used.end()), listed);
}

TEST(Schedulers, MessagesListThoseWithAProperty) {
  EXPECT_EQ(schedulers_with(&SchedulerKind::continuous), "vllm, sglang or trtllm");
  EXPECT_EQ(schedulers_with(&SchedulerKind::may_change_mixing), "sglang");
  EXPECT_EQ(schedulers_with(&SchedulerKind::reserves_answers), "trtllm or static");
}

}  // namespace
}  // namespace orrery::scheduler_test
