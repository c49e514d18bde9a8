#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery {

/// Memory over time has the answer's peaks: of a schedule whose memory is a limit, and not what its
/// order holds, no higher ones.
inline void expect_memory_agrees(const nlohmann::json& memory, const nlohmann::json& result) {
  using Json = nlohmann::json;
  ASSERT_TRUE(memory.is_object() && result.is_object());
  EXPECT_EQ(memory.at("capacity_bytes"), result.at("memory").at("capacity_bytes"));
  const double step_ns = memory.at("step_ns");
  const std::string schedule = result.at("plan").at("schedule");
  const bool limited = schedule == "zb-1p" || schedule == "zb-2p";
  std::map<int, int> ranks_of_stage;
  for (const Json& rank : memory.at("ranks")) {
    const Json& stage = result.at("memory").at("stages").at(rank.at("stage").get<std::size_t>());
    for (const char* part : {"weights_bytes", "gradients_bytes", "optimizer_bytes", "other_bytes"})
      EXPECT_EQ(rank.at(part), stage.at(part)) << part;
    const double peak = rank.at("peak_bytes"), counted = stage.at("peak_bytes");
    EXPECT_EQ(rank.at("counted_bytes"), stage.at("peak_bytes"));
    EXPECT_LE(peak, counted + 1.0);
    EXPECT_GE(peak, limited ? 0.0 : counted - 1.0);
    // The corners that are sent have that peak, and begin and end with nothing.
    const Json &time = rank.at("time_ns"), &kept = rank.at("kept_bytes"),
               &working = rank.at("working_bytes");
    ASSERT_EQ(time.size(), kept.size());
    double highest = 0.0;
    for (std::size_t i = 0; i < kept.size(); ++i)
      highest = std::max(
          highest, kept[i].get<double>() + (working.empty() ? 0.0 : working[i].get<double>()));
    const double fixed = counted - stage.at("activations_bytes").get<double>();
    EXPECT_NEAR(fixed + highest, peak, 3.0);  // Three roundings.
    EXPECT_EQ(kept.front(), 0);
    EXPECT_EQ(kept.back(), 0);
    EXPECT_EQ(time.front(), 0);
    EXPECT_EQ(time.back(), step_ns);
    EXPECT_TRUE(std::is_sorted(time.begin(), time.end()));
    ++ranks_of_stage[rank.at("stage")];
  }
  if (result.at("memory").at("stages").size() <= 64) {
    EXPECT_EQ(ranks_of_stage.size(), result.at("memory").at("stages").size());
  }
}

/// The busiest link of each class is the result's, and what crosses it over time adds up to that.
inline void expect_cluster_agrees(const nlohmann::json& cluster, const nlohmann::json& result) {
  using Json = nlohmann::json;
  ASSERT_TRUE(cluster.is_object() && result.is_object());
  const double step_s = cluster.at("step_s"), slices = cluster.at("slices");
  EXPECT_NEAR(step_s, result.at("step_time_s").get<double>(), 1e-9 * (1.0 + step_s));
  int gpus = 0;
  std::vector<Json> links(cluster.at("fabric").begin(), cluster.at("fabric").end());
  for (const Json& kind : cluster.at("kinds")) {
    gpus += kind.at("gpus").get<int>() * kind.at("domains").get<int>();
    links.insert(links.end(), kind.at("links").begin(), kind.at("links").end());
  }
  if (cluster.at("kinds").size() == cluster.at("kinds_in_all")) {
    EXPECT_EQ(gpus, result.at("gpus"));
  }
  std::map<std::string, double> busiest;
  for (const Json& link : links) {
    SCOPED_TRACE(link.at("name"));
    double sum = 0.0;
    for (const auto& [user, bytes] : link.at("by_user").items()) {
      double sent = 0.0;
      if (link.at("over_time").contains(user)) {
        EXPECT_EQ(link.at("over_time").at(user).size(), static_cast<std::size_t>(slices));
        for (const double slice : link.at("over_time").at(user)) sent += slice;
      }
      EXPECT_NEAR(sent, bytes.get<double>(), slices + 1e-9 * sent);  // Slices are rounded.
      sum += sent;
    }
    const double bytes = link.at("bytes"), busy = link.at("busy_fraction");
    EXPECT_NEAR(sum, bytes, 5.0 * slices + 1e-9 * sum);
    EXPECT_NEAR(bytes / link.at("capacity_bytes_per_s").get<double>() / step_s, busy, 1e-9);
    EXPECT_LE(link.at("least_fraction").get<double>(), busy);
    double& most = busiest[link.at("class")];
    most = std::max(most, busy);
  }
  EXPECT_EQ(busiest.size(), result.at("links").size());
  for (const Json& link : result.at("links")) {
    EXPECT_NEAR(busiest[link.at("class")], link.at("busy_fraction").get<double>(), 1e-9);
    const bool same = std::any_of(links.begin(), links.end(), [&](const Json& one) {
      return one.at("class") == link.at("class") && one.at("by_user") == link.at("by_user") &&
             one.at("bytes") == link.at("bytes");
    });
    EXPECT_TRUE(same) << link;
  }
}

}  // namespace orrery
