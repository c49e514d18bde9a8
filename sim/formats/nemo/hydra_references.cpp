#include "sim/formats/nemo/hydra_references.hpp"

#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr int most_steps = 8;  // Of references to references.

// "model.data" of "model.data.seq_length"; "" at the top.
std::string parent(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

class ReferenceReader {
 public:
  explicit ReferenceReader(const Settings& settings) : s_{settings} {}

  std::optional<std::string> meaning(const std::string& path, const std::string& word,
                                     int step) const {
    if (!word.starts_with("${") || !word.ends_with("}") || step > most_steps) return std::nullopt;
    const std::string inside = word.substr(2, word.size() - 3);
    if (inside.starts_with("multiply:")) return multiplied(path, inside.substr(9), step);
    if (inside.find_first_of(":{}") != inside.npos) return std::nullopt;
    const std::string target = absolute(path, inside);
    if (auto found = word_at(target, step)) return found;
    const std::size_t dot = target.find('.');
    return dot == target.npos ? std::nullopt : word_at(target.substr(dot + 1), step);
  }

 private:
  static std::string absolute(const std::string& path, const std::string& reference) {
    if (!reference.starts_with('.')) return reference;
    std::string base = parent(path);
    std::size_t at = 1;
    for (; at < reference.size() && reference[at] == '.'; ++at) base = parent(base);
    return base.empty() ? reference.substr(at) : base + "." + reference.substr(at);
  }

  std::optional<std::string> word_at(const std::string& path, int step) const {
    const SettingsTree* value = s_.look(path);
    if (!value || value->kind != SettingsTree::Kind::scalar) return std::nullopt;
    if (value->text.find("${") == value->text.npos) return value->text;
    return meaning(path, value->text, step + 1);
  }

  std::optional<std::string> multiplied(const std::string& path, const std::string& both,
                                        int step) const {
    const std::size_t comma = both.find(',');
    if (comma == both.npos) return std::nullopt;
    const auto factor = [&](const std::string& text) -> std::optional<int> {
      std::string word{trimmed(text)};
      if (word.starts_with("${")) word = meaning(path, word, step + 1).value_or("");
      return plain_integer(word, 1 << 30);
    };
    const auto a = factor(both.substr(0, comma)), b = factor(both.substr(comma + 1));
    if (!a || !b) return std::nullopt;
    return std::to_string(product_of({*a, *b}));
  }

  const Settings& s_;
};

}  // namespace

void resolve_references(Settings& settings) {
  const Settings before = settings;
  const ReferenceReader reader{before};
  settings.replace_words([&](const std::string& path, const std::string& word) {
    return reader.meaning(path, word, 0);
  });
}

}  // namespace orrery
