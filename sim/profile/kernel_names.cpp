#include "sim/profile/kernel_names.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

constexpr const char* schema = "orrery.kernel_names/1";

bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// PyTorch's c10d writes "Collective name" as "_allgather_base", "allreduce_coalesced", "send".
GpuWork of_collective(const std::string& collective_name) {
  const std::string collective = lower_case(collective_name);
  if (contains(collective, "all_to_all") || contains(collective, "alltoall"))
    return GpuWork::all_to_all;
  if (contains(collective, "reduce_scatter") || contains(collective, "reducescatter"))
    return GpuWork::reduce_scatter;
  if (contains(collective, "allreduce") || contains(collective, "all_reduce"))
    return GpuWork::all_reduce;
  if (contains(collective, "allgather") || contains(collective, "all_gather"))
    return GpuWork::all_gather;
  if (contains(collective, "send") || contains(collective, "recv")) return GpuWork::send_recv;
  return GpuWork::other_collective;
}

}  // namespace

KernelNames::KernelNames(const std::string& own) {
  if (!own.empty()) read(JsonValue::read_file(own));
  read(JsonValue::read_file(data_folder() + "/workloads/kernel_names.json"));
}

namespace {

// Each line has a word of `meanings` and its patterns; `what` names the kind in errors.
template <class Meaning>
void add_patterns(const JsonValue& lines, const std::vector<std::string>& meanings,
                  const std::string& what, std::vector<std::pair<std::string, Meaning>>& patterns) {
  for (const JsonValue& line : lines.elements()) {
    const std::vector<JsonValue> words = line.elements();
    if (words.size() < 2)
      line.fail("names no pattern", "write [\"" + meanings[1] + "\", \"part_of_a_name\"]");
    const std::string meaning = words.front().text();
    const auto found = std::find(meanings.begin(), meanings.end(), meaning);
    if (found == meanings.end())
      words.front().fail("'" + meaning + "' is not " + what, suggestion(meaning, meanings));
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string pattern = lower_case(words[i].text());
      if (pattern.empty()) words[i].fail("is empty", "write a part of a name");
      patterns.emplace_back(pattern, static_cast<Meaning>(found - meanings.begin()));
    }
  }
}

template <class Meaning>
Meaning first_in(const std::string& name, Meaning otherwise,
                 const std::vector<std::pair<std::string, Meaning>>& patterns) {
  const std::string lowered = lower_case(name);
  for (const auto& [pattern, meaning] : patterns)
    if (lowered.find(pattern) != lowered.npos) return meaning;
  return otherwise;
}

}  // namespace

void KernelNames::read(const JsonValue& json) {
  json.allow_only({"schema", "source", "kernels", "groups"});
  if (json.at("schema").text() != schema)
    json.at("schema").fail("is no list of kernels' names", std::string{"write \""} + schema + "\"");
  if (const auto kernels = json.find("kernels"))
    add_patterns(*kernels, enum_words<GpuWork>, "work of a GPU", patterns_);
  if (const auto groups = json.find("groups"))
    add_patterns(*groups, enum_words<GroupUse>, "what joins a process group", groups_);
}

GpuWork KernelNames::of(const std::string& kernel) const {
  return first_in(kernel, GpuWork::unknown, patterns_);
}

GroupUse KernelNames::use_of(const std::string& group) const {
  return group.empty() ? GroupUse::other : first_in(group, GroupUse::other, groups_);
}

GpuWork KernelNames::of(const KinetoTrace& trace, const GpuActivity& activity) const {
  const std::string& called = trace.names[activity.name];
  if (activity.kind == GpuActivity::Kind::fill) return GpuWork::streaming;
  if (activity.kind == GpuActivity::Kind::copy)  // "Memcpy DtoD (Device -> Device)"
    return contains(called, "DtoD") ? GpuWork::streaming : GpuWork::copies;
  const GpuWork work = of(called);
  return communicates(work) && activity.collective != 0
             ? of_collective(trace.names[activity.collective])
             : work;
}

}  // namespace orrery
