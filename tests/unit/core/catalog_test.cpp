#include "sim/core/catalog.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::catalog_test {
namespace {

const Place at{"command line", "--model"};

class Catalog : public testing::Test {
 protected:
  Catalog() {
    const std::filesystem::path folder = folder_.path() / "workloads" / "models";
    std::filesystem::create_directories(folder);
    for (const char* file : {"gpt3-175b.json", "llama3-8b.json", "notes.txt", "bert.json"})
      std::ofstream{folder / file} << "{}";
    ::setenv("ORRERY_DATA", folder_.path().c_str(), 1);
  }
  ~Catalog() override { ::unsetenv("ORRERY_DATA"); }

  TemporaryFolder folder_;
};

TEST_F(Catalog, LiesWhereTheEnvironmentSays) {
  EXPECT_EQ(data_folder(), folder_.path());
  ::setenv("ORRERY_DATA", "", 1);  // Empty counts as not set.
  EXPECT_EQ(data_folder(), ORRERY_TEST_SOURCE);
  ::unsetenv("ORRERY_DATA");
  EXPECT_EQ(data_folder(), ORRERY_TEST_SOURCE);
}

TEST_F(Catalog, ListsNamesInOrder) {
  EXPECT_EQ(list_catalog("workloads/models"),
            (std::vector<std::string>{"bert", "gpt3-175b", "llama3-8b"}));
  EXPECT_TRUE(list_catalog("workloads/engines").empty());
}

TEST_F(Catalog, FindsANameAndLeavesAPathAlone) {
  EXPECT_EQ(find_in_catalog("workloads/models", "bert", at),
            (folder_.path() / "workloads/models/bert.json").string());
  for (const std::string path : {"./bert", "a/b", "bert.json", "/nowhere/x", ".", ".."})
    EXPECT_EQ(find_in_catalog("workloads/models", path, at), path);
}

TEST_F(Catalog, RefusesAWordThatIsNotThereWithTheNearest) {
  const auto error = [](const std::string& word) {
    return error_text([&] { find_in_catalog("workloads/models", word, at); });
  };
  EXPECT_EQ(error("gpt3-175"),
            "command line: --model: 'gpt3-175' is not in the catalog; did you mean 'gpt3-175b'? (a "
            "path needs a '/' or ends in .json)");
  EXPECT_EQ(error(""),
            "command line: --model: '' is not in the catalog; write one of: bert, gpt3-175b, "
            "llama3-8b (a path needs a '/' or ends in .json)");
  EXPECT_EQ(error("\x1b[31m"),
            "command line: --model: '\\u001b[31m' is not in the catalog; write one of: bert, "
            "gpt3-175b, llama3-8b (a path needs a '/' or ends in .json)");
}

TEST_F(Catalog, ContinuesAWordThatWasCutShort) {
  const auto error = [](const std::string& word) {
    return error_text([&] { find_in_catalog("workloads/models", word, {}); });
  };
  const std::filesystem::path folder = folder_.path() / "workloads" / "models";
  const std::string path = " (a path needs a '/' or ends in .json)";
  std::ofstream{folder / "llama3-70b.json"} << "{}";
  EXPECT_EQ(error("llama3"),
            "'llama3' is not in the catalog; did you mean 'llama3-70b' or 'llama3-8b'?" + path);
  std::ofstream{folder / "llama3-405b.json"} << "{}";
  std::ofstream{folder / "llamas.json"} << "{}";  // Nearer by letters, and no more meant.
  EXPECT_EQ(error("llama"),
            "'llama' is not in the catalog; did you mean 'llama3-405b', 'llama3-70b', 'llama3-8b' "
            "or 'llamas'?" +
                path);
  EXPECT_EQ(error("lamas"), "'lamas' is not in the catalog; did you mean 'llamas'?" + path);
  for (int i = 0; i < 20; ++i) std::ofstream{folder / ("m" + std::to_string(i) + ".json")} << "{}";
  EXPECT_EQ(error("something"), "'something' is not in the catalog; see orrery list models" + path);
}

TEST_F(Catalog, SaysWhenThereIsNone) {
  ::setenv("ORRERY_DATA", "nowhere", 1);
  EXPECT_EQ(error_text([] { find_in_catalog("workloads/models", "bert", at); }),
            "command line: --model: the catalog 'workloads/models' was not found in nowhere; set "
            "ORRERY_DATA to the folder that holds topologies and workloads");
}

}  // namespace
}  // namespace orrery::catalog_test
