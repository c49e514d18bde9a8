#include "sim/core/shard.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {

void make_folder(const std::string& path, const Place& at) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code || !std::filesystem::is_directory(path))
    fail_input(at, "'" + path + "' cannot be made a folder" + (code ? ": " + code.message() : ""),
               "name a folder that is there or can be made");
}

std::string places_missing(const std::vector<bool>& done) {
  std::string list;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i]) continue;
    std::size_t last = i;
    while (last + 1 < done.size() && !done[last + 1]) ++last;
    list += (list.empty() ? "" : ",") + std::to_string(i);
    if (last > i) list += "-" + std::to_string(last);
    i = last;
  }
  return list;
}

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

  // Adds its name, its length and its bytes; a folder adds the files in it.
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
  static std::map<std::string, std::string> known;  // Keyed by the catalog's folder.
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
  // All files read are recorded, with those that they name: none can be forgotten.
  const FilesRead files;
  read();
  Hash hash;
  hash.add(fingerprint_of_program());
  const std::string catalog = (fs::path{data_folder()} / "").string();
  for (const std::string& file : files.paths())
    if (!file.starts_with(catalog)) hash.add_file(file, file);
  return hash.text();
}

namespace {

constexpr std::string_view key = ",\"check\":\"";
constexpr std::string_view end = "\"}";
constexpr std::size_t digits = 16;

// `salt`: further bytes that the seal covers.
std::string with_seal(const std::string& line, const std::string& salt) {
  assert(line.ends_with('}'));
  std::string text = line.substr(0, line.size() - 1);
  text += key;
  text += fingerprint_of(salt + line);
  return text += end;
}

std::optional<std::string> without_seal(const std::string& line, const std::string& salt) {
  const std::size_t length = key.size() + digits + end.size();
  if (line.size() < length || !line.ends_with(end)) return std::nullopt;
  const std::size_t at = line.size() - length;
  if (line.compare(at, key.size(), key) != 0) return std::nullopt;
  std::string bare = line.substr(0, at) + "}";
  if (line.compare(at + key.size(), digits, fingerprint_of(salt + bare)) != 0) return std::nullopt;
  return bare;
}

}  // namespace

std::string sealed(const std::string& line) { return with_seal(line, ""); }

std::optional<std::string> unsealed(const std::string& line) { return without_seal(line, ""); }

RowSeal::RowSeal(const ShardHeader& header) : owner_{fingerprint_of(header.line)} {}

std::string RowSeal::seal(std::int64_t place, const std::string& row) const {
  return with_seal(row, owner_ + " " + std::to_string(place) + " ");
}

std::optional<std::string> RowSeal::open(std::int64_t place, const std::string& line) const {
  return without_seal(line, owner_ + " " + std::to_string(place) + " ");
}

}  // namespace orrery
