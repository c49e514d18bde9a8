#include "sim/core/shard.hpp"

#include <filesystem>

namespace orrery {

void make_folder(const std::string& path, const Place& said) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code || !std::filesystem::is_directory(path))
    fail_input(said, "'" + path + "' cannot be made a folder" + (code ? ": " + code.message() : ""),
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

}  // namespace orrery
