#include "sim/formats/settings/references.hpp"

#include <algorithm>

#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr int most_steps = 8;                                    // Limit of chained references.
constexpr std::int64_t largest_product = std::int64_t{1} << 40;  // More than any plan has.

// "model.data" of "model.data.seq_length"; "" at the top.
std::string parent(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

class ReferenceReader {
 public:
  explicit ReferenceReader(const Settings& settings) : s_{settings} {}

  // The word with all references that have a value in place of them, inner ones first.
  std::string resolved(const std::string& path, std::string word, int step) const {
    std::size_t from = word.npos;
    while (step <= most_steps) {
      const std::size_t begin = word.rfind("${", from);
      if (begin == word.npos) break;
      const std::size_t end = word.find('}', begin);
      if (end != word.npos)
        if (const auto value = value_of(path, word.substr(begin + 2, end - begin - 2), step))
          word.replace(begin, end + 1 - begin, *value);
      if (begin == 0) break;
      from = begin - 1;
    }
    return word;
  }

 private:
  std::optional<std::string> value_of(const std::string& path, const std::string& inside,
                                      int step) const {
    for (const char* product : {"multiply:", "mul:"})
      if (inside.starts_with(product))
        return computed(inside, [](std::int64_t a, std::int64_t b) {
          return std::min(a * b, largest_product);
        });
    if (inside.starts_with("div:"))
      return computed(inside, [](std::int64_t a, std::int64_t b) { return b > 0 ? a / b : 0; });
    if (inside.find_first_of(":{}") != inside.npos) return std::nullopt;
    const std::string target = absolute(path, inside);
    if (auto found = word_at(target, step)) return found;
    const std::size_t dot = target.find('.');
    return dot == target.npos ? std::nullopt : word_at(target.substr(dot + 1), step);
  }

  static std::string absolute(const std::string& path, const std::string& reference) {
    if (!reference.starts_with('.')) return reference;
    std::string base = parent(path);
    std::size_t at = 1;
    for (; at < reference.size() && reference[at] == '.'; ++at) base = parent(base);
    return base.empty() ? reference.substr(at) : base + "." + reference.substr(at);
  }

  // A value that refers to nothing is none.
  std::optional<std::string> word_at(const std::string& path, int step) const {
    const SettingsTree* value = s_.look(path);
    if (!value || value->kind != SettingsTree::Kind::scalar) return std::nullopt;
    if (value->text.find("${") == value->text.npos) return value->text;
    std::string word = resolved(path, value->text, step + 1);
    if (word.find("${") != word.npos) return std::nullopt;
    return word;
  }

  template <class Operation>
  static std::optional<std::string> computed(const std::string& inside,
                                             const Operation& operation) {
    const auto items = split(inside.substr(inside.find(':') + 1), ",");
    if (items.size() != 2) return std::nullopt;
    const auto a = plain_integer(trimmed(items[0]), 1 << 30);
    const auto b = plain_integer(trimmed(items[1]), 1 << 30);
    if (!a || !b) return std::nullopt;
    return std::to_string(operation(*a, *b));
  }

  const Settings& s_;
};

}  // namespace

void resolve_references(Settings& settings) {
  const Settings before = settings;
  const ReferenceReader reader{before};
  settings.replace_words(
      [&](const std::string& path, const std::string& word) -> std::optional<std::string> {
        if (word.find("${") == word.npos) return std::nullopt;
        return reader.resolved(path, word, 0);
      });
}

}  // namespace orrery
