#include "sim/formats/settings/settings_files.hpp"

#include <toml++/toml.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr int deepest_yaml = 100;
constexpr std::size_t most_values = 100'000;  // Limit that includes values repeated by aliases.

std::size_t count_of(const SettingsTree& tree) {
  std::size_t count = 1;
  for (const SettingsTree& item : tree.items) count += count_of(item);
  for (const auto& [key, value] : tree.entries) count += count_of(value);
  return count;
}

std::string text_of(const yaml_char_t* text) {
  return text ? reinterpret_cast<const char*>(text) : "";
}

// Owns an event of libyaml.
class Event {
 public:
  explicit Event(yaml_parser_t& parser) : is_good_{yaml_parser_parse(&parser, &event_) != 0} {}
  ~Event() {
    if (is_good_) yaml_event_delete(&event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool is_good() const { return is_good_; }
  yaml_event_type_t type() const { return event_.type; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_{};
  bool is_good_;
};

class Reader {
 public:
  Reader(const std::string& text, const std::string& file)
      : file_{file}, is_template_{text.find("{{") != text.npos} {
    if (!yaml_parser_initialize(&parser_)) fail(0, "cannot be read");
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Reader() { yaml_parser_delete(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  SettingsTree read() {
    for (;;) {
      const Event event{parser_};
      require(event);
      if (event.type() == YAML_DOCUMENT_START_EVENT) break;
      if (event.type() == YAML_STREAM_END_EVENT) return {};
    }
    SettingsTree tree;
    {
      const Event event{parser_};
      tree = value(event, 0);
    }
    refuse_more_documents();
    return tree;
  }

 private:
  void refuse_more_documents() {
    for (;;) {
      const Event event{parser_};
      require(event);
      if (event.type() == YAML_STREAM_END_EVENT) return;
      if (event.type() != YAML_DOCUMENT_START_EVENT) continue;
      const Event first{parser_};
      require(first);
      const bool is_empty = first.type() == YAML_SCALAR_EVENT && first->data.scalar.length == 0;
      if (!is_empty)
        fail_input(line_place(file_, event->start_mark.line), "begins another document (---)",
                   "keep the document that has the settings");
    }
  }

  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    if (is_template_)
      fail_input(line_place(file_, line), "is a template of YAML ({{ ... }})",
                 "render it first, as helm template does");
    fail_input(line_place(file_, line), problem, "write YAML, as the tool did");
  }

  void require(const Event& event) const {
    if (!event.is_good())
      fail(parser_.problem_mark.line,
           "is no YAML: " + std::string{parser_.problem ? parser_.problem : "unreadable"});
  }

  SettingsTree value(const Event& event, int depth) {
    require(event);
    SettingsTree tree;
    tree.line = event->start_mark.line;
    if (depth > deepest_yaml) fail(tree.line, "is nested deeper than 100 levels");
    if (++values_ > most_values) fail(tree.line, "has more than 100,000 values");
    switch (event.type()) {
      case YAML_SCALAR_EVENT:
        tree.text.assign(reinterpret_cast<const char*>(event->data.scalar.value),
                         event->data.scalar.length);
        tree.is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return anchored(text_of(event->data.scalar.anchor), std::move(tree));
      case YAML_ALIAS_EVENT:
        return alias(text_of(event->data.alias.anchor), tree.line);
      case YAML_SEQUENCE_START_EVENT:
        tree.kind = SettingsTree::Kind::list;
        for (;;) {
          const Event next{parser_};
          require(next);
          if (next.type() == YAML_SEQUENCE_END_EVENT) break;
          tree.items.push_back(value(next, depth + 1));
        }
        return anchored(text_of(event->data.sequence_start.anchor), std::move(tree));
      case YAML_MAPPING_START_EVENT:
        read_map(tree, depth);
        return anchored(text_of(event->data.mapping_start.anchor), std::move(tree));
      default:
        fail(tree.line, "ends where a value is expected");
    }
  }

  void read_map(SettingsTree& tree, int depth) {
    tree.kind = SettingsTree::Kind::map;
    std::vector<SettingsTree> merged;
    for (;;) {
      const Event next{parser_};
      require(next);
      if (next.type() == YAML_MAPPING_END_EVENT) break;
      const SettingsTree key = value(next, depth + 1);
      if (key.kind != SettingsTree::Kind::scalar) fail(key.line, "has a key that is no word");
      const Event behind{parser_};
      SettingsTree entry = value(behind, depth + 1);
      if (key.text == "<<" && !key.is_quoted)
        merged.push_back(std::move(entry));
      else
        tree.entries.push_back({key.text, std::move(entry)});
    }
    for (const SettingsTree& from : merged) merge(tree, from);
  }

  // A map's own keys win over those of one that is merged, as the earlier of a list's do.
  static void merge(SettingsTree& tree, const SettingsTree& from) {
    for (const SettingsTree& item : from.items) merge(tree, item);
    for (const auto& [key, value] : from.entries)
      if (!tree.find(key)) tree.entries.push_back({key, value});
  }

  SettingsTree anchored(const std::string& anchor, SettingsTree tree) {
    if (!anchor.empty()) anchors_[anchor] = tree;
    return tree;
  }

  SettingsTree alias(const std::string& anchor, std::size_t line) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(line, "has no anchor '" + anchor + "' before its alias");
    values_ += count_of(found->second);
    if (values_ > most_values) fail(line, "has aliases that grow to more than 100,000 values");
    return found->second;
  }

  yaml_parser_t parser_{};
  const std::string& file_;
  bool is_template_;
  std::map<std::string, SettingsTree> anchors_;
  std::size_t values_ = 0;
};

}  // namespace

SettingsTree read_yaml(const std::string& text, const std::string& file) {
  return Reader{text, file}.read();
}

namespace {

std::size_t line_of(const toml::source_region& region) {
  return region.begin.line > 0 ? region.begin.line - 1 : 0;
}

constexpr int deepest_toml = 100;
constexpr std::ptrdiff_t most_dots = 1'000;  // Limit of a line: each dot may be a level.

[[noreturn]] void fail_too_deep(const std::string& file, std::size_t line) {
  fail_input(line_place(file, line), "is nested deeper than 100 levels",
             "write TOML, as the tool did");
}

SettingsTree tree_of(const toml::node& node, const std::string& file, int depth) {
  SettingsTree tree;
  tree.line = line_of(node.source());
  if (depth > deepest_toml) fail_too_deep(file, tree.line);
  if (const toml::table* table = node.as_table()) {
    tree.kind = SettingsTree::Kind::map;
    for (const auto& [key, value] : *table)
      tree.entries.push_back({std::string{key.str()}, tree_of(value, file, depth + 1)});
    // The library keeps keys in the order of the alphabet.
    std::stable_sort(tree.entries.begin(), tree.entries.end(),
                     [](const auto& a, const auto& b) { return a.value.line < b.value.line; });
  } else if (const toml::array* array = node.as_array()) {
    tree.kind = SettingsTree::Kind::list;
    for (const toml::node& item : *array) tree.items.push_back(tree_of(item, file, depth + 1));
  } else if (const auto* word = node.as_string()) {
    tree.text = word->get();
    tree.is_quoted = true;
  } else if (const auto* number = node.as_integer()) {
    tree.text = std::to_string(number->get());
  } else if (const auto* truth = node.as_boolean()) {
    tree.text = truth->get() ? "true" : "false";
  } else {
    std::ostringstream text;
    text << toml::default_formatter{node};
    tree.text = text.str();
  }
  return tree;
}

}  // namespace

SettingsTree read_toml(const std::string& text, const std::string& file) {
  // The library bounds how deep values nest, but not the dots of a key.
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (std::count(lines[i].begin(), lines[i].end(), '.') > most_dots) fail_too_deep(file, i);
  try {
    return tree_of(toml::parse(text), file, 0);
  } catch (const toml::parse_error& error) {
    std::string problem{error.description()};  // "Error while parsing key: ..."
    if (const std::size_t colon = problem.find(": "); colon != problem.npos)
      problem.erase(0, colon + 2);
    fail_input(line_place(file, line_of(error.source())), "is no TOML: " + shown_text(problem),
               "write TOML, as the tool did");
  }
}

}  // namespace orrery
