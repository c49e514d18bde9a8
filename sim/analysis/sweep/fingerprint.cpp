#include "sim/analysis/sweep/fingerprint.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "sim/base/text/catalog.hpp"
#include "sim/input/schedule/schedule_file.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv, variant 1a with its constants for 64
// bits.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      value_ ^= static_cast<unsigned char>(c);
      value_ *= 0x100000001b3u;
    }
  }

  // What it is called, how long it is and what it says; a folder by the files in it.
  void add_file(const std::string& name, const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) fail_input({path.string(), ""}, "cannot be read", "check path and permissions");
    add(name);
    add(std::string_view{"\0", 1});
    std::vector<char> buffer(1 << 16);
    do {
      file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
      add({buffer.data(), static_cast<std::size_t>(file.gcount())});
    } while (file);
    add(std::string_view{"\0", 1});
  }

  void add_folder(const fs::path& folder) {
    std::vector<std::string> files;
    std::error_code code;
    for (fs::recursive_directory_iterator entry{folder, code}, end; !code && entry != end;
         entry.increment(code))
      if (entry->is_regular_file(code)) files.push_back(entry->path().string());
    std::sort(files.begin(), files.end());
    for (const std::string& file : files)
      add_file(fs::path{file}.lexically_relative(folder).string(), file);
  }

  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
    return digits;
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace

std::string fingerprint_of(const std::string& text) {
  Hash hash;
  hash.add(text);
  return hash.text();
}

std::string fingerprint_of_inputs(const Sweep& sweep) {
  Hash hash;
  hash.add_file("", "/proc/self/exe");
  for (const char* folder : {"topologies", "workloads", "calibration/data"})
    hash.add_folder(fs::path{data_folder()} / folder);
  if (!sweep.economics.empty()) hash.add_file(sweep.economics, sweep.economics);
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.key == "model" || axis.key == "system" || axis.key == "calibration" ||
          axis.key == "software" || axis.key == "schedule")
        for (const AxisValue& value : axis.values) {
          const fs::path path{value.text};
          std::error_code code;
          const bool is_path = axis.key == "schedule"
                                   ? is_schedule_file(value.text)
                                   : path.has_parent_path() || path.extension() == ".json";
          if (is_path) {
            if (fs::is_directory(path, code))
              hash.add_folder(path);
            else
              hash.add_file(value.text, path);
          }
        }
  return hash.text();
}

}  // namespace orrery
