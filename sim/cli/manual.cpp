#include "sim/cli/manual.hpp"

#include <filesystem>
#include <iostream>
#include <sstream>
#include <string_view>

#include "sim/cli/options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"

namespace orrery {
namespace {

// Collects in `text` all that is printed while it lives.
class CapturedOutput {
 public:
  CapturedOutput() : before_{std::cout.rdbuf(text_.rdbuf())} {}
  ~CapturedOutput() { std::cout.rdbuf(before_); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
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
  const CapturedOutput help;
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

namespace {

// Text as roff takes it: a backslash, a minus that stays one when it is copied, and no line that
// looks like a request.
std::string roff_escaped(const std::string& text) {
  std::string safe;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
    at_line_start = c == '\n';
  }
  return safe;
}

// Quotes are doubled in an argument of a request.
std::string quoted(const std::string& text) {
  std::string doubled;
  for (const char c : roff_escaped(text)) doubled += c == '"' ? "\"\"" : std::string(1, c);
  return "\"" + doubled + "\"";
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string head(const std::string& name, const std::string& summary) {
  return ".TH " + quoted(upper(name)) + " 1 \"\" " + quoted("Orrery " ORRERY_VERSION) +
         " \"User Commands\"\n.SH NAME\n" + roff_escaped(name) + " \\- " + roff_escaped(summary) +
         "\n";
}

std::string as_printed(const std::string& text) { return ".nf\n" + roff_escaped(text) + "\n.fi\n"; }

// A paragraph whose lines were set by hand stays as it is.
std::string paragraphs(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& paragraph : all) {
    const bool set_by_hand = paragraph.starts_with(' ') || paragraph.find("\n ") != paragraph.npos;
    text += ".PP\n" + (set_by_hand ? as_printed(paragraph) : roff_escaped(paragraph) + "\n");
  }
  return text;
}

std::string options(const OptionTable& table) {
  std::string text;
  std::string group = "Options";  // Says no more than the section's own heading.
  for (const OptionEntry& option : table.options) {
    if (option.group != group && !option.group.empty())
      text += ".SS " + quoted(option.group) + "\n";
    group = option.group;
    text += ".TP\n";
    if (option.value.empty())
      text += ".B " + quoted("--" + option.name);
    else
      text += ".BI " + quoted("--" + option.name + " ") + " " +
              quoted(option.value_may_lack() ? "[" + option.value + "]" : option.value);
    text += "\n" + roff_escaped(option.help) + "\n";
  }
  return text;
}

constexpr std::string_view exit_status =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nsuccess\n"
    ".TP\n.B 1\nan error of the program, or output that could not be written\n"
    ".TP\n.B 2\nbad input\n"
    ".TP\n.B 3\na plan that cannot run: it does not divide, or does not fit\n"
    ".TP\n.B 4\na threshold was exceeded\n"
    ".TP\n.B 5\npart of a sweep is missing\n"
    ".TP\n.B 6\nthe GPU failed during a measurement\n"
    ".TP\n.B 77\nthe hardware is not there\n"
    ".TP\n.B 130\nCtrl\\-C ended it\n";

constexpr std::string_view environment =
    ".SH ENVIRONMENT\n"
    ".TP\n.B ORRERY_DATA\na folder that holds topologies, workloads and calibration/data, in place "
    "of those that came with the program\n"
    ".TP\n.B ORRERY_PROGRESS\n\"lines\": how far a command is goes to stderr in lines of their "
    "own, also "
    "where it is no terminal\n"
    ".TP\n.B NO_COLOR\nno colours on a terminal\n"
    ".SH FILES\n"
    ".TP\n.I share/orrery\nbeside the folder of the program: the catalog of GPUs, systems, models "
    "and software, and what was measured of them\n"
    ".TP\n.I share/doc/orrery\nthe pages about everything that the program does\n";

std::string see_also(const std::string& except) {
  std::string text = ".SH SEE ALSO\n";
  std::vector<std::string> pages;
  if (!except.empty()) pages.emplace_back("orrery");
  for (const Command& command : commands())
    if (command.name != except) pages.push_back("orrery-" + command.name);
  for (const std::string& page : pages)
    text += ".BR " + roff_escaped(page) + " (1)" + (&page == &pages.back() ? "\n" : ",\n");
  return text;
}

}  // namespace

std::string man_page(const Command& command) {
  const CommandPage page = describe(command);
  std::string text = head("orrery-" + page.name, page.summary);
  text += ".SH SYNOPSIS\n" + as_printed(joined(page.synopsis, "\n"));
  if (!page.text.empty()) text += ".SH DESCRIPTION\n" + paragraphs(page.text);
  const std::vector<CommandPage> smaller = smaller_pages(command, page);
  if (!page.table.options.empty()) text += ".SH OPTIONS\n" + options(page.table);
  for (const CommandPage& one : smaller)
    text += ".SH " + quoted("ORRERY " + upper(one.name)) + "\n" +
            as_printed(joined(one.synopsis, "\n")) + paragraphs(one.text) + options(one.table);
  return text + see_also(page.name);
}

std::string man_page_of_program() {
  std::string text = head("orrery", "how long training and serving take on a GPU cluster, and why");
  text += ".SH SYNOPSIS\n.B orrery\n.I COMMAND\n[options]\n.br\n.B orrery help\n.I COMMAND\n";
  text +=
      ".SH DESCRIPTION\nOrrery simulates GPU clusters that train and serve large language models: "
      "how long a step takes, why, whether it fits, and which plan is the best. Names of models, "
      "systems and software are those of its catalog "
      "(orrery list), or paths of files.\n.SH COMMANDS\n";
  for (const Command& command : commands())
    text += ".TP\n.BR " + roff_escaped("orrery-" + command.name) + " (1)\n" +
            roff_escaped(command.summary) + "\n";
  return text + std::string{exit_status} + std::string{environment} + see_also("");
}

int run_manual(const Arguments& arguments) {
  std::optional<std::string> out;
  bool force = false;
  Options accepted;
  accepted.add("output", "DIR",
               "write all pages into this folder (also -o DIR): orrery.1, orrery-search.1, ...",
               out);
  accepted.add("force", "replace files that Orrery did not write", force);
  accepted.help();
  if (!accepted.read(arguments,
                     "usage: orrery manual [COMMAND]\n"
                     "       orrery manual --output DIR\n\n"
                     "Prints a manual page for man(1): orrery manual search | man -l -"))
    return exit_ok;
  const std::vector<std::string>& names = accepted.words();
  if (names.size() > 1 || (out && !names.empty()))
    fail_input({}, "'" + names.back() + "' is one word too many",
               "name one command, or a folder for all: --output DIR");
  if (out) {
    const std::filesystem::path folder{*out};
    OutputFiles files{force};
    files.add((folder / "orrery.1").string(), man_page_of_program());
    for (const Command& command : commands())
      files.add((folder / ("orrery-" + command.name + ".1")).string(), man_page(command));
    files.commit();
    return exit_ok;
  }
  if (names.empty()) return std::cout << man_page_of_program(), exit_ok;
  const Command* command = find_command(names.front());
  if (!command)
    fail_input({}, "'" + names.front() + "' is not a command",
               suggestion(names.front(), names_of(commands())));
  std::cout << man_page(*command);
  return exit_ok;
}

}  // namespace orrery
