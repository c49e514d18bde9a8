// An option that is given is read by what the command then does, or refused.

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::unused_options_test {
namespace {

// Options with a value, as the command's help lists them.
std::vector<std::string> options_of(const std::string& command) {
  std::istringstream help{run_orrery(command + " --help all").out};
  std::vector<std::string> names;
  for (std::string line; std::getline(help, line);) {
    const std::size_t at = line.find("--");
    if (!line.starts_with("  ") || at == line.npos || at > 10) continue;
    std::istringstream words{line.substr(at + 2)};
    std::string name, value;
    words >> name >> value;
    const bool takes_value = line.find(name + " " + value) != line.npos && !value.empty();
    if (takes_value && (value.find_first_of("|[") != value.npos || std::isupper(value.front())))
      names.push_back(name);
  }
  return names;
}

// The value names no file and is no number, no word and no list of any option.
TEST(UnusedOptions, AreRefused) {
  const std::string served = "--model llama3.1-8b --system dgx-h100 --gpus 1 --engine vllm";
  const std::string trained = "--model llama3-8b --system dgx-h100 --gpus 16 --gbs 64 --tp 2";
  const TemporaryFolder folder;
  const std::string result = (folder.path() / "result.json").string();
  ASSERT_EQ(run_orrery("estimate " + trained + " --json > " + result).code, 0);
  const std::set<std::string> any_word{"checkpoint-name"};
  int tried = 0;
  for (const auto& [command, rest] : std::vector<std::pair<std::string, std::string>>{
           {"serve", served + " --step 8x1000"},
           {"serve", "--model llama3.1-8b --system dgx-h100 --engine vllm --pools 1P1D --step 8x9"},
           {"serve", served + " --isl 100 --osl 10 --concurrency 4 --requests 40"},
           {"serve", "--search " + served + " --isl 100 --osl 10 --concurrency 1"},
           {"kernel", "gemm 8192 4096 4096 --gpu h100-sxm"},
           {"kernel", "decode --batch 16 --context 4096 --heads 32 --gpu h100-sxm"},
           {"kernel", "dispatch 4096 7168 256 8 16 --system dgx-h100"},
           {"kernel step", trained},
           {"kernel iteration", served + " --step 8x1000"},
           {"collective", "all_reduce --system dgx-h100 --gpus 8 --bytes 1M"},
           {"compare", "--model llama3-8b --system dgx-h100 --gpus 16 --gbs 64 '--tp 1' '--tp 2'"},
           {"compare", result + " " + result},
           {"estimate", trained},
           {"search", "--model llama3-8b --system dgx-h100 --gpus 8 --gbs 16 --fix cp=1"},
           {"check", "--model llama3-8b"},
           {"export megatron", trained},
           {"export server", served},
           {"export simgrid", "--system dgx-h100"}})
    for (const std::string& option : options_of(command)) {
      if ((" " + rest).find(" --" + option + " ") != rest.npos || any_word.contains(option))
        continue;
      EXPECT_NE(run_orrery(command + " " + rest + " --" + option + " no/such").code, 0)
          << command << " " << rest << " --" << option;
      ++tried;
    }
  EXPECT_GT(tried, 400);
}

}  // namespace
}  // namespace orrery::unused_options_test
