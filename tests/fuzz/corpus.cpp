#include "tests/fuzz/corpus.hpp"

#include <fstream>
#include <sstream>

namespace orrery {

namespace fs = std::filesystem;

std::vector<fs::path> corpus_folders(const EntryPoint& entry) {
  const fs::path tests = fs::path{ORRERY_TEST_SOURCE} / "tests";
  std::vector<fs::path> folders;
  for (const fs::path& folder :
       {tests / "fuzz/corpus" / entry.name,
        entry.name == "shell" ? tests / "unit/import/megatron/scripts" : ""})
    if (!folder.empty() && fs::is_directory(folder)) folders.push_back(folder);
  return folders;
}

std::map<std::string, std::string> corpus_of(const EntryPoint& entry) {
  std::map<std::string, std::string> texts;
  for (const fs::path& folder : corpus_folders(entry))
    for (const auto& file : fs::directory_iterator{folder}) {
      if (!file.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream{file.path(), std::ios::binary}.rdbuf();
      texts[file.path().filename().string()] = text.str();
    }
  return texts;
}

}  // namespace orrery
