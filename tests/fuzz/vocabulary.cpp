#include "tests/fuzz/vocabulary.hpp"

#include <cctype>
#include <set>
#include <utility>

#include "sim/core/catalog.hpp"
#include "sim/plan/plan_keys.hpp"
#include "tests/fuzz/corpus.hpp"

namespace orrery {
namespace {

// Runs of letters, digits and what joins them.
void add_words(std::set<std::string>& words, const std::string& text) {
  std::string word;
  for (const char c : text + "\n") {
    if (std::isalnum(static_cast<unsigned char>(c)) || (c && std::string_view{"_-./:"}.find(c) < 5))
      word += c;
    else if (!word.empty())
      words.insert(std::exchange(word, {}));
  }
}

}  // namespace

std::vector<std::string> vocabulary_of(const EntryPoint& entry) {
  constexpr std::size_t longest = 40;
  std::set<std::string> words;
  for (const auto& [name, text] : corpus_of(entry)) add_words(words, text);
  for (const PlanKey& key : plan_keys()) {
    words.insert(key.name);
    add_words(words, key.access.values);
  }
  if (entry.shape == Shape::lines)
    for (const PlanKey& key : plan_keys()) words.insert("--" + key.name);
  for (const char* folder : {"workloads/software", "topologies/systems", "topologies/gpus"})
    for (const std::string& name : list_catalog(folder)) words.insert(name);
  std::erase_if(words, [](const std::string& word) {
    for (const char c : word)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) return true;
    return word.empty() || word.size() > longest;
  });
  return {words.begin(), words.end()};
}

std::string dictionary_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += '"' + word + "\"\n";
  return text;
}

}  // namespace orrery
