#include "sim/cli/command_page.hpp"

#include <iostream>
#include <sstream>

namespace orrery {
namespace {

// What is printed goes into `text` while it lives.
class Overheard {
 public:
  Overheard() : before_{std::cout.rdbuf(text_.rdbuf())} {}
  ~Overheard() { std::cout.rdbuf(before_); }
  Overheard(const Overheard&) = delete;
  Overheard& operator=(const Overheard&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "usage: a\n       b" up to the first empty line is the synopsis, and paragraphs follow.
void take_apart(const std::string& help, CommandPage& page) {
  const std::string begins = "usage: ";
  bool in_synopsis = true;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) page.text.push_back(std::move(paragraph));
    paragraph.clear();
  };
  for (const std::string& line : lines_of(help)) {
    in_synopsis = in_synopsis && !line.empty();
    if (in_synopsis)
      page.synopsis.push_back(line.size() > begins.size() ? line.substr(begins.size()) : "");
    else if (line.empty())
      end_paragraph();
    else
      paragraph += (paragraph.empty() ? "" : "\n") + line;
  }
  end_paragraph();
}

}  // namespace

CommandPage describe(const Command& command, const std::string& word) {
  CommandPage page;
  page.name = command.name + (word.empty() ? "" : " " + word);
  page.summary = word.empty() ? command.summary : "";
  const CommandListener listener{
      {[&](const OptionTable& table) { page.table = table; },
       [&](const std::vector<std::string>& words) { page.words = words; }}};
  const Overheard help;
  command.run(word.empty() ? Arguments{"--help"} : Arguments{word, "--help"});
  std::string text = help.text();
  if (text.ends_with(page.table.text)) text.resize(text.size() - page.table.text.size());
  take_apart(text, page);
  return page;
}

std::vector<CommandPage> smaller_pages(const Command& command, const CommandPage& page) {
  std::vector<CommandPage> pages;
  for (const std::string& word : page.words) {
    CommandPage smaller = describe(command, word);
    const bool its_own = smaller.table.text != page.table.text;
    if (its_own && !smaller.table.options.empty()) pages.push_back(std::move(smaller));
  }
  return pages;
}

}  // namespace orrery
