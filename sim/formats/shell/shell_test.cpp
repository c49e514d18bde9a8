#include "sim/formats/shell/shell_test.hpp"

#include <algorithm>

#include "sim/formats/shell/shell_arithmetic.hpp"
#include "sim/formats/shell/shell_marks.hpp"
#include "sim/formats/shell/shell_pattern.hpp"

namespace orrery {
namespace {

using Truth = std::optional<bool>;  // Nothing: not known.

constexpr int deepest_condition = 50;

Truth negated(Truth truth) { return truth ? Truth{!*truth} : truth; }
Truth both(Truth a, Truth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Truth{true} : std::nullopt;
}
Truth either(Truth a, Truth b) { return negated(both(negated(a), negated(b))); }

class ConditionReader {
 public:
  ConditionReader(const std::vector<std::string>& words,
                  const std::function<bool(const std::string&)>& is_set,
                  std::vector<std::string>& unset)
      : words_{words}, is_set_{is_set}, unset_{unset} {}

  Truth read() {
    if (words_.empty()) return false;
    const Truth truth = any();
    return at_ < words_.size() ? std::nullopt : truth;
  }

 private:
  std::size_t left() const { return words_.size() - at_; }
  bool take(const char* word) {
    if (left() == 0 || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  Truth any() {
    Truth truth = all();
    while (take("||") || take("-o")) truth = either(truth, all());
    return truth;
  }
  Truth all() {
    Truth truth = one();
    while (take("&&") || take("-a")) truth = both(truth, one());
    return truth;
  }

  Truth one() {
    if (left() == 0 || depth_ > deepest_condition) return std::nullopt;
    if (left() > 1 && words_[at_] == "!") {
      ++at_;
      ++depth_;
      const Truth truth = one();
      --depth_;
      return negated(truth);
    }
    if (left() > 2 && words_[at_] == "(") {
      ++at_;
      ++depth_;
      const Truth truth = any();
      --depth_;
      return take(")") ? truth : std::nullopt;
    }
    if (left() > 2 && is_comparison(words_[at_ + 1])) {
      at_ += 3;
      return compared(words_[at_ - 3], words_[at_ - 2], words_[at_ - 1]);
    }
    if (left() > 1 && words_[at_].size() == 2 && words_[at_][0] == '-' && !ends_one(at_ + 1)) {
      at_ += 2;
      return of_one(words_[at_ - 2][1], words_[at_ - 1]);
    }
    const std::string& word = words_[at_++];
    if (!is_known(word)) return std::nullopt;
    return !without_unset(word).empty();
  }

  bool ends_one(std::size_t at) const {
    static const char* const ends[] = {"&&", "||", "-a", "-o", ")"};
    return std::find(std::begin(ends), std::end(ends), words_[at]) != std::end(ends);
  }

  static bool is_comparison(const std::string& word) {
    static const char* const signs[] = {"=",   "==",  "!=",  "=~",  "<",   ">",
                                        "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    return std::find(std::begin(signs), std::end(signs), word) != std::end(signs);
  }

  // As it counts: nothing where it is unset, which is told.
  std::string counted(const std::string& word) {
    for (std::string& name : unset_names(word)) unset_.push_back(std::move(name));
    return without_unset(word);
  }

  Truth of_one(char sign, const std::string& word) {
    if (sign == 'v') return is_known(word) ? Truth{is_set_(word)} : std::nullopt;
    if (sign != 'z' && sign != 'n') return std::nullopt;  // A file decides.
    if (!is_known(word)) return std::nullopt;
    return without_unset(word).empty() == (sign == 'z');
  }

  Truth compared(const std::string& a, const std::string& sign, const std::string& b) {
    if (!is_known(a) || !is_known(b) || sign == "=~") return std::nullopt;
    const std::string left = counted(a), right = counted(b);
    if (sign == "=" || sign == "==") return shell_pattern_fits(right, left);
    if (sign == "!=") return !shell_pattern_fits(right, left);
    if (sign == "<" || sign == ">") return sign == "<" ? left < right : left > right;
    const auto none = [](const std::string&) { return std::optional<std::string>{}; };
    const auto x = left.empty() ? std::optional<std::int64_t>{0} : shell_arithmetic(left, none);
    const auto y = right.empty() ? std::optional<std::int64_t>{0} : shell_arithmetic(right, none);
    if (!x || !y) return std::nullopt;
    if (sign == "-eq") return *x == *y;
    if (sign == "-ne") return *x != *y;
    if (sign == "-lt") return *x < *y;
    if (sign == "-le") return *x <= *y;
    return sign == "-gt" ? *x > *y : *x >= *y;
  }

  const std::vector<std::string>& words_;
  const std::function<bool(const std::string&)>& is_set_;
  std::vector<std::string>& unset_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<bool> shell_test(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& is_set,
                               std::vector<std::string>& unset) {
  return ConditionReader{words, is_set, unset}.read();
}

std::optional<bool> shell_choice(const std::string& subject,
                                 const std::vector<std::string>& patterns) {
  if (!is_known(subject)) return std::nullopt;
  const std::string text = without_unset(subject);
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return shell_pattern_fits(without_unset(pattern), text);
  });
}

}  // namespace orrery
