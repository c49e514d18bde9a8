#include <gtest/gtest.h>

#include <regex>

#include "sim/core/error.hpp"
#include "sim/serving/kv_capacity.hpp"

namespace orrery::remedy_test {
namespace {

// What a user asks for: options that win over each other, and the GPUs.
struct Question {
  std::string model, system;
  int gpus = 1;
  DeploymentRequest request;
  std::int64_t tokens = 2048;

  void set(const std::string& key, const std::string& value) {
    if (key == "gpus")
      gpus = std::stoi(value);
    else
      set_deployment_flag(request, key, value);
  }
};

struct Refusal {
  std::string text;
  bool of_memory = false;
};

Refusal refusal(const Question& asked) {
  const Model model = read_model(asked.model, {"", ""});
  const System system = read_system(asked.system, {"", ""});
  const ServingEngine engine = read_serving_engine("vllm", {"", ""});
  Refusal refused;
  try {
    const Deployment plan =
        make_deployment(model, system, engine, asked.request, asked.gpus, {"", ""});
    refused.of_memory = true;
    need_length(plan, asked.tokens, {"", ""});
    need_kv(model, system, plan, engine, asked.tokens, {"", ""});
    return {};
  } catch (const Error& error) {
    refused.text = error.what();
  }
  return refused;
}

// "use --gpus 4 or --tp 2": two changes; "--gpus 4 --tp 4 would do": one of two options.
std::vector<Question> followed(const Question& asked, const std::string& refused) {
  std::vector<Question> all;
  std::string remedy = refused.substr(refused.find("; ") + 2);
  static const std::regex option{"--(\\w+) ([\\w.]+)"};
  const std::regex separator{" or |; "};
  for (std::sregex_token_iterator part{remedy.begin(), remedy.end(), separator, -1}, end;
       part != end; ++part) {
    const std::string way = *part;
    Question changed = asked;
    std::sregex_iterator one{way.begin(), way.end(), option}, none;
    if (one == none) continue;
    for (; one != none; ++one) changed.set((*one)[1], (*one)[2]);
    all.push_back(changed);
  }
  return all;
}

// A hint is a change that works as it is given: of memory at once; of degrees, so that memory alone
// can still be short.
TEST(Remedy, WhatItSaysWorks) {
  int hints = 0, of_memory = 0;
  const auto follow = [&](const Question& asked) {
    const Refusal refused = refusal(asked);
    if (refused.text.empty()) return;
    for (const Question& changed : followed(asked, refused.text)) {
      ++hints;
      of_memory += refused.of_memory;
      const Refusal again = refusal(changed);
      EXPECT_TRUE(again.text.empty() || (again.of_memory && !refused.of_memory))
          << asked.model << " on " << asked.gpus << " GPUs of " << asked.system << ": "
          << refused.text << "\n  and then: " << again.text;
    }
  };
  using Options = std::vector<std::pair<const char*, const char*>>;
  const std::vector<Options> options{{},
                                     {{"tp", "2"}},
                                     {{"tp", "3"}},
                                     {{"tp", "4"}},
                                     {{"pp", "2"}},
                                     {{"tp", "16"}, {"weights", "bf16"}},
                                     {{"tp", "2"}, {"ep", "2"}, {"moe_tp", "1"}},
                                     {{"tp", "4"}, {"ep", "3"}},
                                     {{"tp", "2"}, {"dp", "3"}},
                                     {{"tp", "1"}, {"replicas", "2"}},
                                     {{"tp", "2"}, {"replicas", "2"}, {"weights", "bf16"}},
                                     {{"weights", "bf16"}, {"experts", "bf16"}},
                                     {{"kv_share", "0.99"}},
                                     {{"kv_share", "0.99"}, {"kv", "fp8"}},
                                     {{"max_length", "100000"}, {"kv_share", "0.95"}}};
  for (const char* model : {"llama3.1-70b", "qwen2.5-14b", "gpt-oss-120b", "deepseek-v3",
                            "qwen3-235b-a22b", "gemma-3-27b", "falcon-40b"})
    for (const char* system : {"dgx-h100", "dgx-a100-40gb", "rtx-4090-pcie"})
      for (const int gpus : {1, 2, 3, 6, 8, 12})
        for (const Options& one : options)
          for (const std::int64_t tokens : {2048, 90'000}) {
            Question asked{model, system, gpus, {}, tokens};
            for (const auto& [key, value] : one) asked.set(key, value);
            follow(asked);
          }
  EXPECT_GT(hints, 1000);
  EXPECT_GT(of_memory, 300);
}

// The newcomer's question: gpt-oss-120b in 16 bits needs four GPUs, so that both options change.
TEST(Remedy, MoreRanksNeedMoreGpus) {
  Question asked{"gpt-oss-120b", "dgx-h100", 1, {}, 2048};
  asked.set("weights", "bf16");
  const std::string text = refusal(asked).text;
  EXPECT_EQ(text.substr(text.find("; ") + 2), "--gpus 4 --tp 4 would do");
  asked.gpus = 4;
  asked.set("tp", "1");
  const std::string enough = refusal(asked).text;
  EXPECT_EQ(enough.substr(enough.find("; ") + 2), "--tp 4 would do");
}

}  // namespace
}  // namespace orrery::remedy_test
