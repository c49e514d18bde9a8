#include "sim/formats/shell/shell_printed.hpp"

#include "sim/formats/shell/shell_arithmetic.hpp"
#include "sim/formats/shell/shell_marks.hpp"

namespace orrery {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_not_of('/') == path.npos
                                ? path.npos
                                : path.rfind('/', path.find_last_not_of('/'));
  if (slash == path.npos) return path.starts_with('/') ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == path.npos) return path;
  return path.substr(0, end + 1).substr(path.rfind('/', end) + 1);
}

}  // namespace

std::optional<std::string> printed_by(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& program = words[0];
  std::vector<std::string> rest;
  std::string joined;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!is_known(words[i])) return std::nullopt;
    if (words[i].size() > 1 && words[i][0] == '-' && rest.empty() && program != "expr") continue;
    rest.push_back(words[i]);
    joined += (joined.empty() ? "" : " ") + words[i];
  }
  if (program == "pwd") return ".";
  if (program == "echo") return joined;
  if (program == "expr") {
    if (!unset_names(joined).empty()) return std::nullopt;
    const auto value =
        shell_arithmetic(joined, [](const std::string&) { return std::optional<std::string>{}; });
    return value ? std::optional{std::to_string(*value)} : std::nullopt;
  }
  if (rest.size() != 1 || !unset_names(rest[0]).empty()) return std::nullopt;
  if (program == "dirname") return folder_of(rest[0]);
  if (program == "basename") return name_of(rest[0]);
  if (program == "readlink" || program == "realpath" || program == "cd") return rest[0];
  return std::nullopt;
}

}  // namespace orrery
