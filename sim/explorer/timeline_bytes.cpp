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

// All roles where that is not too much; else as many as do, spread over them.
struct Drawn {
  std::vector<int> roles;
  Slices slices;
  bool inside = true;
};

Drawn draw(const Estimate& answer, std::int64_t most) {
  const Scenario& scenario = answer.result.scenario;
  std::vector<int> all;
  for (std::size_t i = 0; i < answer.step.cast.roles().size(); ++i)
    all.push_back(static_cast<int>(i));
  sort_by_place(all, answer.step.cast);
  Drawn drawn{all, {}, true};
  // A task is a slice, or several: there is no need to draw millions to see that they are too many.
  const std::int64_t tasks = answer.result.tasks;
  auto every = static_cast<std::size_t>(std::max<std::int64_t>(1, tasks / most));
  for (every = std::min(every, all.size());; every *= 2) {
    drawn.roles.clear();
    for (std::size_t i = 0; i < all.size(); i += every) drawn.roles.push_back(all[i]);
    for (const bool inside : {true, false}) {
      if (!inside && !answer.result.contracted) continue;  // Which changes nothing there.
      drawn.inside = inside;
      drawn.slices = slices_of(answer.step, answer.timeline, scenario, {drawn.roles, inside, most});
      if (drawn.slices.count <= most) return drawn;
    }
    if (drawn.roles.size() == 1) return drawn;  // The first of its slices.
  }
}

double fact(const Slice& slice, std::string_view key) {
  for (const auto& [name, value] : slice.facts)
    if (name == key) return value;
  return 0.0;
}

}  // namespace

std::string timeline_bytes(const Estimate& answer, std::int64_t most) {
  const Drawn drawn = draw(answer, most);
  const std::vector<Slice>& slices = drawn.slices.slices;
  Texts names, categories;
  std::vector<double> start, finish;
  std::vector<std::uint32_t> name_of, from, to;
  std::vector<float> bytes, exposed;
  std::vector<std::uint8_t> category;
  std::map<int, std::size_t> place_of_role;
  Json ranks = Json::array();
  for (const int index : drawn.roles) {
    place_of_role[index] = ranks.size();
    const Role& role = answer.step.cast.roles()[static_cast<std::size_t>(index)];
    ranks.push_back({{"rank", role.rank.value},
                     {"stage", role.at.stage},
                     {"data", role.at.data},
                     {"context", role.at.context},
                     {"tensor", role.at.tensor},
                     {"ranks", role.ranks}});
  }
  Json tracks_json = Json::array();
  std::map<int, std::uint32_t> sender;
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (slices[i].sends >= 0) sender[slices[i].sends] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    const bool fresh = i == 0 || slices[i - 1].role != slice.role ||
                       slices[i - 1].track != slice.track || slices[i - 1].of_rank != slice.of_rank;
    if (fresh)
      tracks_json.push_back(
          {{"of", place_of_role[slice.role]},
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
                    {"inside", drawn.inside},
                    {"simulated", answer.result.roles}};
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
