#include "sim/formats/shell/shell_parser.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "sim/formats/shell/shell_lexer.hpp"

namespace orrery {
namespace {

using PieceKind = ShellPiece::Kind;

// The text left of the '=', and the start of the value.
struct LeftSide {
  std::string text;
  std::size_t piece = 0;  ///< Index of the piece with the '='.
  std::string value;      ///< Rest of this piece.
};

// The index of NAME[$I]=value is made of several pieces.
bool find_left_side(const std::vector<ShellPiece>& pieces, LeftSide& left) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ShellPiece& piece = pieces[i];
    const bool in_index = left.text.find('[') != std::string::npos;
    if ((piece.kind != PieceKind::text || piece.quoted) && !in_index) return false;
    if (piece.kind == PieceKind::text && !piece.quoted) {
      const std::size_t equals = piece.text.find('=');
      left.text += piece.text.substr(0, equals);
      if (equals == std::string::npos) continue;
      left.piece = i;
      left.value = piece.text.substr(equals + 1);
      return true;
    }
    left.text += piece.kind == PieceKind::variable ? "${" + piece.text + "}" : piece.text;
  }
  return false;
}

}  // namespace

ShellItem shell_item(WrittenWord word) {
  ShellItem item;
  LeftSide left;
  const bool has_equals = find_left_side(word.pieces, left);
  item.word = std::move(word);
  if (!has_equals) return item;
  const bool appends = left.text.ends_with('+');
  if (appends) left.text.pop_back();
  const std::size_t bracket = left.text.find('[');
  if (!is_shell_name(left.text.substr(0, bracket))) return item;
  if (bracket != std::string::npos && !left.text.ends_with(']')) return item;
  item.name = left.text.substr(0, bracket);
  if (bracket != std::string::npos)
    item.index = left.text.substr(bracket + 1, left.text.size() - bracket - 2);
  item.appends = appends;
  WrittenWord value;
  value.line = item.word.line;
  if (!left.value.empty()) value.pieces.push_back({PieceKind::text, left.value, false});
  value.pieces.insert(value.pieces.end(),
                      item.word.pieces.begin() + static_cast<std::ptrdiff_t>(left.piece) + 1,
                      item.word.pieces.end());
  if (!value.pieces.empty()) item.values.push_back(std::move(value));
  return item;
}

namespace {

using NodeKind = ShellNode::Kind;
using Keywords = std::initializer_list<std::string_view>;

// Compound commands in one another; deeper ones are mere words.
constexpr int deepest_compound = 100;

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

class Parser {
 public:
  Parser(const std::string& text, std::size_t line) : lexer_{text, line} {}

  ShellNode parse() {
    ShellNode all = list({});
    while (!lexer_.at_end()) {  // An end without a beginning, which is skipped.
      lexer_.skip();
      for (ShellNode& part : list({}).parts) all.parts.push_back(std::move(part));
    }
    return all;
  }

 private:
  ShellNode node(NodeKind kind) const {
    ShellNode made;
    made.kind = kind;
    made.line = made.last_line = lexer_.line();
    return made;
  }
  ShellNode closed(ShellNode made) const {
    made.last_line = lexer_.line();
    return made;
  }

  // Commands up to one of the words that end them, which stays, or to a sign that does.
  ShellNode list(Keywords ends) {
    ShellNode made = node(NodeKind::list);
    for (;;) {
      skip_separators(made);
      if (lexer_.at_end() || lexer_.here() == ')' || lexer_.starts(";;") || at_word(ends)) break;
      const std::size_t before = lexer_.position();
      made.parts.push_back(chain());
      if (lexer_.position() == before) lexer_.skip();
    }
    if (!made.parts.empty()) made.line = made.parts.front().line;
    return closed(std::move(made));
  }

  // Blanks, ends of lines, comments and ";"; a comment for Slurm is a command.
  void skip_separators(ShellNode& made) {
    for (;;) {
      lexer_.skip_blanks();
      if (lexer_.starts("#SBATCH"))
        made.parts.push_back(directive());
      else if (lexer_.here() == '#')
        lexer_.rest_of_line();
      else if (lexer_.here() == '\n')
        lexer_.skip();
      else if (lexer_.here() == ';' && lexer_.next() != ';')
        lexer_.skip();
      else if (lexer_.here() == '&' && lexer_.next() != '&' && lexer_.next() != '>')
        lexer_.skip();
      else
        return;
    }
  }

  ShellNode directive() {
    ShellNode made = node(NodeKind::command);
    while (lexer_.here() != '\n' && !lexer_.at_end()) {
      const bool is_first = made.items.empty();
      if (lexer_.here() == '#' && !is_first) {
        lexer_.rest_of_line();
        break;
      }
      ShellItem item;
      item.word = lexer_.read_word();
      if (item.word.pieces.empty())
        lexer_.skip();  // A sign that means nothing here.
      else
        made.items.push_back(std::move(item));
      lexer_.skip_blanks();
    }
    return made;
  }

  bool at_word(Keywords words) const {
    for (const std::string_view word : words) {
      if (!lexer_.starts(word)) continue;
      ShellLexer ahead = lexer_;
      ahead.skip(word.size());
      const char c = ahead.here();
      if (c == '\0' || std::string_view{" \t\r\n;&|()<>"}.find(c) != std::string_view::npos)
        return true;
    }
    return false;
  }
  bool take_word(std::string_view word) {
    if (!at_word({word})) return false;
    lexer_.skip(word.size());
    return true;
  }

  ShellNode chain() {
    ShellNode made = node(NodeKind::chain);
    made.parts.push_back(pipeline());
    for (;;) {
      lexer_.skip_blanks();
      if (!lexer_.starts("&&") && !lexer_.starts("||")) break;
      made.name += lexer_.here();
      lexer_.skip(2);
      skip_lines();
      made.parts.push_back(pipeline());
    }
    if (made.name.empty()) return std::move(made.parts.front());
    return closed(std::move(made));
  }

  void skip_lines() {
    for (lexer_.skip_blanks(); lexer_.here() == '\n' || lexer_.here() == '#'; lexer_.skip_blanks())
      if (lexer_.here() == '#')
        lexer_.rest_of_line();
      else
        lexer_.skip();
  }

  ShellNode pipeline() {
    lexer_.skip_blanks();
    bool is_negated = false;
    while (take_word("!")) {
      is_negated = !is_negated;
      lexer_.skip_blanks();
    }
    ShellNode first = command();
    lexer_.skip_blanks();
    if (is_negated) {
      ShellNode negation = node(NodeKind::negation);
      negation.line = first.line;
      negation.parts.push_back(std::move(first));
      first = closed(std::move(negation));
    }
    if (lexer_.here() != '|' || lexer_.next() == '|') return first;
    ShellNode joined = node(NodeKind::list);
    joined.parts.push_back(std::move(first));
    while (lexer_.here() == '|' && lexer_.next() != '|') {
      lexer_.skip(lexer_.next() == '&' ? 2 : 1);
      skip_lines();
      joined.parts.push_back(command());
      pass_document(joined.parts.end()[-2], joined.parts.back());
      lexer_.skip_blanks();
    }
    return closed(std::move(joined));
  }

  // cat <<EOF | sbatch is sbatch <<EOF.
  static void pass_document(ShellNode& from, ShellNode& to) {
    if (!is_command(from, {"cat"}) || !from.output.pieces.empty() || !to.document.pieces.empty())
      return;
    if (to.kind == NodeKind::command) std::swap(from.document, to.document);
  }

  ShellNode command() {
    lexer_.skip_blanks();
    if (depth_ >= deepest_compound) return simple();
    ++depth_;
    ShellNode made = compound();
    --depth_;
    return made;
  }

  ShellNode compound() {
    if (lexer_.starts("((")) return arithmetic();
    if (lexer_.here() == '(') return enclosed('(');
    if (take_word("{")) return enclosed('{');
    if (take_word("[[")) return test();
    if (take_word("if")) return branch();
    if (take_word("case")) return choice();
    if (take_word("while")) return repetition(false);
    if (take_word("until")) return repetition(true);
    if (take_word("for")) return each();
    if (take_word("function")) {
      lexer_.skip_blanks();
      return function(lexer_.read_word());
    }
    return simple();
  }

  ShellNode arithmetic() {
    ShellNode made = node(NodeKind::arithmetic);
    made.name = lexer_.take_enclosed("((", "))");
    return made;
  }

  ShellNode enclosed(char open) {
    if (open == '(') lexer_.skip();
    ShellNode made = open == '(' ? list({}) : list({"}"});
    if (open == '(' ? lexer_.here() == ')' : at_word({"}"})) lexer_.skip();
    skip_redirections();
    return made;
  }

  ShellNode test() {
    ShellNode made = node(NodeKind::test);
    while (!lexer_.at_end()) {
      skip_lines();
      if (take_word("]]")) break;
      const std::size_t line = lexer_.line();
      const auto sign = [&](const std::string& text) {
        lexer_.skip(text.size());
        made.words.push_back({{{ShellPiece::Kind::text, text, false}}, line});
      };
      if (lexer_.starts("&&") || lexer_.starts("||"))
        sign(std::string(2, lexer_.here()));
      else if (std::string_view{"()<>;|&"}.find(lexer_.here()) != std::string_view::npos)
        sign({lexer_.here()});
      else
        made.words.push_back(lexer_.read_word());
    }
    return closed(std::move(made));
  }

  // Condition and body of "if" and of each "elif"; then the body of "else".
  ShellNode branch() {
    ShellNode made = node(NodeKind::branch);
    do {
      made.parts.push_back(list({"then"}));
      take_word("then");
      made.parts.push_back(list({"elif", "else", "fi"}));
    } while (take_word("elif"));
    if (take_word("else")) made.parts.push_back(list({"fi"}));
    take_word("fi");
    skip_redirections();
    return closed(std::move(made));
  }

  ShellNode choice() {
    ShellNode made = node(NodeKind::choice);
    lexer_.skip_blanks();
    made.words.push_back(lexer_.read_word());
    skip_lines();
    take_word("in");
    while (!lexer_.at_end()) {
      skip_lines();
      if (take_word("esac")) break;
      if (lexer_.here() == '(') lexer_.skip();
      std::vector<WrittenWord> patterns;
      while (!lexer_.at_end() && lexer_.here() != ')' && lexer_.here() != '\n') {
        WrittenWord pattern = lexer_.read_word();
        if (pattern.pieces.empty())
          lexer_.skip();
        else
          patterns.push_back(std::move(pattern));
        lexer_.skip_blanks();
      }
      lexer_.skip();
      made.patterns.push_back(std::move(patterns));
      made.parts.push_back(list({"esac"}));
      if (lexer_.starts(";;")) lexer_.skip(2);
      if (lexer_.here() == '&') lexer_.skip();
    }
    return closed(std::move(made));
  }

  ShellNode repetition(bool until) {
    ShellNode made = node(NodeKind::repetition);
    made.is_condition_negated = until;
    made.parts.push_back(list({"do"}));
    body_of(made);
    return closed(std::move(made));
  }

  ShellNode each() {
    ShellNode made = node(NodeKind::each);
    lexer_.skip_blanks();
    if (lexer_.starts("(("))  // The counter of such a loop is not followed.
      lexer_.take_enclosed("((", "))");
    else
      for (const ShellPiece& piece : lexer_.read_word().pieces) made.name += piece.text;
    skip_lines();
    if (take_word("in"))
      for (lexer_.skip_blanks(); !lexer_.at_end() && lexer_.here() != '\n' && lexer_.here() != ';';
           lexer_.skip_blanks()) {
        ShellItem item;
        item.word = lexer_.read_word();
        if (item.word.pieces.empty())
          lexer_.skip();
        else
          made.items.push_back(std::move(item));
      }
    list({"do"});
    body_of(made);
    return closed(std::move(made));
  }

  void body_of(ShellNode& made) {
    take_word("do");
    made.parts.push_back(list({"done"}));
    take_word("done");
    skip_redirections();
  }

  ShellNode function(const WrittenWord& name) {
    ShellNode made = node(NodeKind::function);
    for (const ShellPiece& piece : name.pieces) made.name += piece.text;
    skip_lines();
    if (lexer_.here() == '(') lexer_.skip();
    if (lexer_.here() == ')') lexer_.skip();
    skip_lines();
    made.parts.push_back(command());
    return closed(std::move(made));
  }

  ShellNode simple() {
    ShellNode made = node(NodeKind::command);
    for (lexer_.skip_blanks(); !lexer_.at_end(); lexer_.skip_blanks()) {
      const char c = lexer_.here();
      if (c == '\n' || c == ';' || c == '|' || c == ')' || c == '#') break;
      if (c == '&' && lexer_.next() != '>') break;
      if (c == '<' || c == '>' || c == '&') {
        redirect(made);
      } else if (c == '(') {  // No command has it here: a list of layers, unquoted.
        add_text(made, "(" + lexer_.take_enclosed("(", ")") + ")");
      } else {
        item(made);
        if (made.items.size() == 1 && lexer_.here() == '(' && lexer_.next() == ')')
          return function(made.items[0].word);
      }
    }
    if (lexer_.here() == '#') lexer_.rest_of_line();
    return closed(std::move(made));
  }

  void add_text(ShellNode& made, const std::string& text) {
    ShellItem item;
    item.word = {{{ShellPiece::Kind::text, text, true}}, lexer_.line()};
    made.items.push_back(std::move(item));
  }

  void item(ShellNode& made) {
    ShellItem item;
    item.word = lexer_.read_word();
    if (item.word.pieces.empty()) return lexer_.skip();
    const char c = lexer_.here();
    if ((c == '<' || c == '>') && item.word.pieces.size() == 1 &&
        is_digits(item.word.pieces[0].text)) {  // 2>file
      const WrittenWord output = made.output;
      redirect(made);
      if (item.word.pieces[0].text != "1") made.output = output;
      return;
    }
    item = shell_item(std::move(item.word));
    if (!item.name.empty() && item.values.empty() && c == '(') read_array(item);
    made.items.push_back(std::move(item));
  }

  void read_array(ShellItem& item) {
    item.is_array = true;
    lexer_.skip();
    for (skip_lines(); !lexer_.at_end() && lexer_.here() != ')'; skip_lines()) {
      WrittenWord value = lexer_.read_word();
      if (value.pieces.empty())
        lexer_.skip();  // A sign that means nothing here.
      else
        item.values.push_back(std::move(value));
    }
    lexer_.skip();
  }

  void skip_redirections() {
    ShellNode ignored;
    for (lexer_.skip_blanks(); lexer_.here() == '<' || lexer_.here() == '>'; lexer_.skip_blanks())
      redirect(ignored);
  }

  // Reads one of < > << <<< >> >& <& &>.
  void redirect(ShellNode& made) {
    const bool document = lexer_.starts("<<") && !lexer_.starts("<<<");
    const std::string sign = document ? "<<" : "<>&";
    const bool strips_tabs = lexer_.starts("<<-");
    const bool writes = lexer_.here() == '>' && lexer_.next() != '&';
    while (!lexer_.at_end() && sign.find(lexer_.here()) != std::string::npos) lexer_.skip();
    if (strips_tabs) lexer_.skip();
    lexer_.skip_blanks();
    WrittenWord target = lexer_.read_word();
    if (writes) made.output = std::move(target);
    if (!document) return;
    std::string end;
    bool quoted = false;
    for (const ShellPiece& piece : target.pieces) {
      end += piece.text;
      quoted = quoted || piece.quoted;
    }
    const std::size_t line = lexer_.line() + 1;
    const std::string text = lexer_.take_document(end, strips_tabs);
    made.document = quoted ? WrittenWord{{{ShellPiece::Kind::text, text, true}}, line}
                           : shell_document(text, line);
  }

  ShellLexer lexer_;
  int depth_ = 0;
};

}  // namespace

ShellNode parse_shell(const std::string& text, std::size_t line) {
  return Parser{text, line}.parse();
}

WrittenWord shell_operand(const std::string& text, std::size_t line) {
  return ShellLexer{text, line}.read_word(ShellLexer::Mode::operand);
}

WrittenWord shell_document(const std::string& text, std::size_t line) {
  return ShellLexer{text, line}.read_word(ShellLexer::Mode::verbatim);
}

}  // namespace orrery
