#include "sim/core/fingerprint.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/input_file.hpp"

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

namespace {

// The program and its catalog, which are large and stay as they are while it runs.
const std::string& fingerprint_of_program() {
  static std::map<std::string, std::string> known;  // By the catalog's folder.
  const auto [found, fresh] = known.try_emplace(data_folder());
  if (fresh) {
    Hash hash;
    hash.add_file("", "/proc/self/exe");
    for (const char* folder : {"topologies", "workloads", "calibration/data"})
      hash.add_folder(fs::path{found->first} / folder);
    found->second = hash.text();
  }
  return found->second;
}

}  // namespace

std::string fingerprint_of_inputs(const std::function<void()>& read) {
  // What is read, and what that names in its turn: nothing can be forgotten here.
  const FilesRead files;
  read();
  Hash hash;
  hash.add(fingerprint_of_program());
  const std::string catalog = (fs::path{data_folder()} / "").string();
  for (const std::string& file : files.paths())
    if (!file.starts_with(catalog)) hash.add_file(file, file);
  return hash.text();
}

}  // namespace orrery
