// Every example in README.md and docs/ is run: a fenced block of language `console` holds commands
// ("$ orrery ...") and, under each, what it prints. Lines that tell how long something took are
// left out of the comparison. UPDATE_GOLDEN=1 rewrites the documents.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace orrery::examples_test {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A folder that looks like the source tree and keeps what examples write out of it.
class Desk {
 public:
  Desk() {
    for (const auto& entry : fs::directory_iterator{ORRERY_TEST_SOURCE})
      fs::create_symlink(entry.path(), folder_.path() / entry.path().filename());
  }
  std::string path() const { return folder_.path().string(); }

 private:
  orrery::TemporaryFolder folder_;
};

// stdout and stderr of a shell command, run on `desk` with the binary first in the path.
std::string run(const std::string& command, const Desk& desk) {
  const std::string shell = "cd '" + desk.path() +
                            "' && PATH='" ORRERY_TEST_BINARY_FOLDER
                            "':$PATH NO_COLOR=1 sh -c \"$ORRERY_EXAMPLE\" 2>&1";
  setenv("ORRERY_EXAMPLE", command.c_str(), 1);
  std::string output;
  FILE* pipe = popen(shell.c_str(), "r");
  if (!pipe) return "cannot run";
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    output.append(buffer, count);
  pclose(pipe);
  return output;
}

std::vector<std::string> comparable(const std::vector<std::string>& lines) {
  std::vector<std::string> kept;
  for (const std::string& line : lines)
    if (!line.starts_with("Took ")) kept.push_back(line);
  while (!kept.empty() && kept.back().empty()) kept.pop_back();
  return kept;
}

// The document with every example's output replaced by what the command prints today, and the
// number of examples that said something else.
struct Checked {
  std::string text;
  int examples = 0;
  std::vector<std::string> stale;
};

Checked check(const fs::path& path) {
  Checked checked;
  const Desk desk;
  const std::vector<std::string> lines = lines_of(read(path));
  bool console = false;
  for (std::size_t i = 0; i < lines.size();) {
    if (lines[i].starts_with("```")) console = lines[i] == "```console";
    checked.text += lines[i] + "\n";
    if (!console || !lines[i].starts_with("$ ")) {
      ++i;
      continue;
    }
    std::string command = lines[i++].substr(2);
    while (command.ends_with("\\") && i < lines.size()) {
      command.pop_back();
      checked.text += lines[i] + "\n";
      command += lines[i++];
    }
    std::vector<std::string> written;
    while (i < lines.size() && !lines[i].starts_with("```") && !lines[i].starts_with("$ "))
      written.push_back(lines[i++]);
    const std::string printed = run(command, desk);
    ++checked.examples;
    if (comparable(written) != comparable(lines_of(printed)))
      checked.stale.push_back(command + "\n" + printed);
    checked.text += printed;
  }
  return checked;
}

TEST(Documents, EveryExamplePrintsWhatTheDocumentSays) {
  std::vector<fs::path> documents{fs::path{ORRERY_TEST_SOURCE} / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator{fs::path{ORRERY_TEST_SOURCE} / "docs"})
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  int examples = 0;
  for (const fs::path& document : documents) {
    const Checked checked = check(document);
    examples += checked.examples;
    if (checked.stale.empty()) continue;
    if (std::getenv("UPDATE_GOLDEN")) {
      std::ofstream{document} << checked.text;
      continue;
    }
    for (const std::string& example : checked.stale)
      ADD_FAILURE() << document.filename()
                    << " is stale (UPDATE_GOLDEN=1 rewrites it): " << example;
  }
  EXPECT_GE(examples, 5) << "documents lost their examples";
}

}  // namespace
}  // namespace orrery::examples_test
