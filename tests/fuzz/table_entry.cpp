// A catalog of which one table was changed, under ORRERY_DATA:
//
//     {"path": "topologies/gpus/h100-sxm.json", "table": ...}
#include <cstdlib>
#include <limits>

#include "sim/cluster/economics.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/core/catalog.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/estimate.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Links to every table of the catalog, of which one at a time is a file.
class ChangedCatalog {
 public:
  ChangedCatalog() {
    for (const char* folder : {"topologies", "workloads", "calibration/data"})
      for (const auto& entry : fs::recursive_directory_iterator{source_ / folder}) {
        const fs::path copy = path_ / fs::relative(entry.path(), source_);
        if (entry.is_directory()) fs::create_directories(copy);
        if (!entry.is_regular_file() || entry.path().extension() != ".json") continue;
        fs::create_directories(copy.parent_path());
        fs::create_symlink(entry.path(), copy);
      }
  }
  const fs::path& path() const { return path_; }

  bool has(const std::string& table) const { return fs::is_symlink(path_ / table); }
  void change(const std::string& table, const std::string& text) const {
    fs::remove(path_ / table);
    write_quickly(path_ / table, text);
  }
  void restore(const std::string& table) const {
    fs::remove(path_ / table);
    fs::create_symlink(source_ / table, path_ / table);
  }

 private:
  const fs::path source_ = ORRERY_TEST_SOURCE;
  const fs::path path_ = scratch_folder() / "catalog";
};

// A question for which every kind of table is read; of models, systems and software the changed one
// is meant.
void ask(const fs::path& table) {
  const std::string folder = table.parent_path().filename().string();
  const std::string name = table.stem().string();
  const Model model = read_model(folder == "models" ? name : "mixtral-8x7b", nowhere);
  const System system = read_system(folder == "systems" ? name : "dgx-h100", nowhere);
  PlanRequest request;
  request.gbs = 16;
  request.tp = 2;
  request.ep = model.experts ? 2 : 1;
  request.seq = 2048;
  request.software = folder == "software" ? name : "megatron-core";
  if (folder == "economics") read_economics(name, "");
  const CollectiveTime time{system};
  time(CollectiveKind::all_reduce, Bytes{1e6}, {8, 1, 8});
  const Scenario scenario = make_scenario(model, system, request, 16, nowhere);
  if (scenario.plan.microbatches * scenario.plan.pp > 256) return;
  estimate(scenario, {.most_memory = std::numeric_limits<double>::infinity()});
}

bool fuzz_catalog(const std::string& text) {
  static const ChangedCatalog catalog;
  std::string table, changed;
  if (!is_accepted([&] {
        const JsonValue json = parsed(text);
        table = json.at("path").text();
        changed = json.at("table").compact();
      }))
    return false;
  if (table.find("..") != table.npos || table.find('\0') != table.npos || !catalog.has(table))
    return false;
  const char* before = std::getenv("ORRERY_DATA");
  const std::string old = before ? before : "";
  ::setenv("ORRERY_DATA", catalog.path().c_str(), 1);
  catalog.change(table, changed);
  const bool accepted = is_accepted([&] { ask(table); });
  catalog.restore(table);
  before ? ::setenv("ORRERY_DATA", old.c_str(), 1) : ::unsetenv("ORRERY_DATA");
  return accepted;
}

}  // namespace

std::vector<EntryPoint> table_entries() {
  return {{"catalog_table", fuzz_catalog, Shape::json, true}};
}

}  // namespace orrery
