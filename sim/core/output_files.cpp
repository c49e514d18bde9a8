#include "sim/core/output_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/core/error.hpp"
#include "sim/core/input_file.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// What stands at the beginning of all that Orrery writes: JSON with a schema, HTML, SVG and
// Graphviz with a remark, a trace, the rows of a sweep.
bool is_by_orrery(const std::string& path) {
  std::string text(4096, '\0');
  std::ifstream file{path, std::ios::binary};
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return true;
  for (const std::string_view mark :
       {R"("schema": "orrery.)", R"("schema":"orrery.)", R"(name="generator" content="orrery")",
        "<!-- orrery -->", "// orrery\n"})
    if (text.find(mark) != text.npos) return true;
  for (const std::string_view beginning : {R"({"displayTimeUnit":"ms",)"
                                           "\n"
                                           R"("otherData":{"model":)",
                                           R"({"point":)", "point,"})
    if (text.starts_with(beginning)) return true;
  return false;
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code code;
  if (fs::equivalent(one, other, code)) return true;
  // Of files that are not there yet the names decide.
  return fs::weakly_canonical(fs::absolute(one, code), code) ==
         fs::weakly_canonical(fs::absolute(other, code), code);
}

}  // namespace

void require_replaceable(const std::string& path, bool force) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return;
  for (const std::string& input : FilesRead::by_this_process())
    if (is_same_file(path, input))
      fail_input({path, ""}, "is also what is read", "name another file");
  if (!force && !is_by_orrery(path))
    fail_input({path, ""}, "is there, and Orrery did not write it",
               "name another file, or say --force to replace it");
}

void OutputFiles::add(const std::string& path, const std::string& text) {
  require_replaceable(path, force_);
  std::error_code code;
  const bool is_device = fs::exists(path, code) && !fs::is_regular_file(path, code);
  for (const std::string& other : paths_)
    if (!is_device && is_same_file(path, other))
      fail_input({path, ""}, "is named for two outputs", "name a file for each");
  paths_.push_back(path);
  files_.emplace_back(path).append(text);
}

void OutputFiles::commit() {
  for (FileWriter& file : files_) file.prepare();
  for (FileWriter& file : files_) file.publish();
  files_.clear();
}

}  // namespace orrery
