#include "sim/explorer/timeline_bytes.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/training/trace_slices.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "columns go out as they lie in memory");

// Places of texts in the order in which they were met.
class Texts {
 public:
  std::uint32_t place(std::string_view text) {
    const auto found = places_.find(text);
    if (found != places_.end()) return found->second;
    const auto place = static_cast<std::uint32_t>(places_.size());
    places_.emplace(text, place);
    list_.push_back(std::string{text});
    return place;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::string, std::uint32_t, std::less<>> places_;
  Json list_ = Json::array();
};

template <class T>
void append(std::string& bytes, const std::vector<T>& column) {
  bytes.append(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T));
  bytes.append((8 - bytes.size() % 8) % 8, '\0');
}

// All rank classes if their slices are not too many; else a sample, evenly spread.
struct SliceSample {
  std::vector<int> reps;
  Slices slices;
  bool inside = true;
};

SliceSample sample_slices(const Estimate& answer, std::int64_t most) {
  const Scenario& scenario = answer.result.scenario;
  std::vector<int> all;
  for (std::size_t i = 0; i < answer.step.classes.reps().size(); ++i)
    all.push_back(static_cast<int>(i));
  sort_by_place(all, answer.step.classes);
  SliceSample sample{all, {}, true};
  // A task is a slice, or several: millions need not be made to see that they are too many.
  const std::int64_t tasks = answer.result.tasks;
  auto every = static_cast<std::size_t>(std::max<std::int64_t>(1, tasks / most));
  for (every = std::min(every, all.size());; every *= 2) {
    sample.reps.clear();
    for (std::size_t i = 0; i < all.size(); i += every) sample.reps.push_back(all[i]);
    for (const bool inside : {true, false}) {
      if (!inside && !answer.result.contracted) continue;  // Only contracted passes have it.
      sample.inside = inside;
      sample.slices =
          slices_of(answer.step, answer.timeline, scenario, {sample.reps, inside, most});
      if (sample.slices.count <= most) return sample;
    }
    if (sample.reps.size() == 1) return sample;  // The first of its slices.
  }
}

double fact(const Slice& slice, std::string_view key) {
  for (const auto& [name, value] : slice.facts)
    if (name == key) return value;
  return 0.0;
}

}  // namespace

std::string timeline_bytes(const Estimate& answer, std::int64_t most) {
  const SliceSample sample = sample_slices(answer, most);
  const std::vector<Slice>& slices = sample.slices.slices;
  Texts names, categories;
  std::vector<double> start, finish;
  std::vector<std::uint32_t> name_of, from, to;
  std::vector<float> bytes, exposed;
  std::vector<std::uint8_t> category;
  std::map<int, std::size_t> place_of_rep;
  Json ranks = Json::array();
  for (const int index : sample.reps) {
    place_of_rep[index] = ranks.size();
    const RankClass& rep = answer.step.classes.reps()[static_cast<std::size_t>(index)];
    ranks.push_back({{"rank", rep.rank.value},
                     {"stage", rep.at.stage},
                     {"data", rep.at.data},
                     {"context", rep.at.context},
                     {"tensor", rep.at.tensor},
                     {"ranks", rep.ranks}});
  }
  Json tracks_json = Json::array();
  std::map<int, std::uint32_t> sender;
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (slices[i].sends >= 0) sender[slices[i].sends] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    const bool fresh = i == 0 || slices[i - 1].rep != slice.rep ||
                       slices[i - 1].track != slice.track || slices[i - 1].of_rank != slice.of_rank;
    if (fresh)
      tracks_json.push_back(
          {{"of", place_of_rep[slice.rep]},
           {"name", name(slice.track) + (slice.of_rank < 0 ? "" : std::to_string(slice.of_rank))},
           {"first", i},
           {"count", 0}});
    Json& count = tracks_json.back()["count"];
    count = count.get<std::int64_t>() + 1;
    start.push_back(static_cast<double>(slice.start_ns));
    finish.push_back(static_cast<double>(slice.finish_ns));
    name_of.push_back(names.place(slice.name));
    bytes.push_back(static_cast<float>(fact(slice, "bytes")));
    exposed.push_back(static_cast<float>(fact(slice, "exposed_communication_us")));
    category.push_back(static_cast<std::uint8_t>(categories.place(slice.category)));
    for (const int arrow : slice.receives) {
      const auto found = sender.find(arrow);
      if (found == sender.end()) continue;
      from.push_back(found->second);
      to.push_back(static_cast<std::uint32_t>(i));
    }
  }
  const Json header{{"step_ns", answer.timeline.makespan.seconds().si() * 1e9},
                    {"slices", slices.size()},
                    {"arrows", from.size()},
                    {"ranks", std::move(ranks)},
                    {"tracks", std::move(tracks_json)},
                    {"names", names.list()},
                    {"categories", categories.list()},
                    {"inside", sample.inside},
                    {"simulated", answer.result.reps}};
  const std::string text = header.dump();
  std::string out = "ORT1";
  const auto length = static_cast<std::uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += text;
  out.append((8 - out.size() % 8) % 8, '\0');
  append(out, start);
  append(out, finish);
  append(out, name_of);
  append(out, bytes);
  append(out, exposed);
  append(out, category);
  append(out, from);
  append(out, to);
  return out;
}

}  // namespace orrery
