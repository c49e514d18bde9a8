#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace orrery {

/// A message as a terminal may have it, whatever was typed or stood in a file: on one line, with
/// control characters written out, such as \x1b.
std::string harmless(const std::string& message);

/// The place of an input's error: a file and a JSON pointer in it, or, without a file, an option of
/// the command line.
struct Place {
  std::string file;
  std::string pointer;

  Place operator/(const std::string& key) const {
    return {file, file.empty() ? "--" + key : pointer + "/" + key};
  }
  Place operator/(std::size_t index) const { return *this / std::to_string(index); }
};

/// The one error that a user can cause. It names the place, the problem and what to write instead;
/// only main() catches it. A wrong program asserts. Its text is harmless() to print or store,
/// whatever was typed.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    bad_input,   ///< The input cannot be meant: exit code 2.
    infeasible,  ///< Sound, but cannot run (does not divide, does not fit): exit code 3.
  };

  Error(Kind kind, const Place& place, const std::string& problem, const std::string& remedy)
      : std::runtime_error(harmless(text(place, problem, remedy))), kind_{kind} {}

  Kind kind() const { return kind_; }

 private:
  static std::string text(const Place& place, const std::string& problem,
                          const std::string& remedy) {
    std::string where = place.file;
    if (!place.pointer.empty()) where += (where.empty() ? "" : ": ") + place.pointer;
    return where + (where.empty() ? "" : ": ") + problem + (remedy.empty() ? "" : "; " + remedy);
  }

  Kind kind_;
};

[[noreturn]] inline void fail_input(const Place& place, const std::string& problem,
                                    const std::string& remedy) {
  throw Error{Error::Kind::bad_input, place, problem, remedy};
}

[[noreturn]] inline void fail_infeasible(const Place& place, const std::string& problem,
                                         const std::string& remedy) {
  throw Error{Error::Kind::infeasible, place, problem, remedy};
}

/// The reason why a request cannot be fulfilled, as a value, for searches that try thousands of
/// plans and go on. Commands throw its error() instead.
struct Refused {
  Error::Kind kind = Error::Kind::infeasible;
  std::string key;  ///< The key at fault, within the place that the caller knows; "": all of it.
  std::string problem, remedy;

  Error error(const Place& at) const {
    return {kind, key.empty() ? at : at / key, problem, remedy};
  }
};

inline Refused infeasible(const std::string& key, const std::string& problem,
                          const std::string& remedy) {
  return {Error::Kind::infeasible, key, problem, remedy};
}
inline Refused contradiction(const std::string& key, const std::string& problem,
                             const std::string& remedy) {
  return {Error::Kind::bad_input, key, problem, remedy};
}

/// Nothing where there is nothing against it.
using MaybeRefused = std::optional<Refused>;

/// The value, or the reason that there is none.
template <class Value>
using OrRefused = std::variant<Value, Refused>;

/// Several errors of one input, so that a user mends them in one go: a line each. Its kind and its
/// first line are those of the first.
class SeveralErrors : public Error {
 public:
  /// `errors`: two or more; of very many the rest is counted.
  explicit SeveralErrors(std::vector<Error> errors);
  const std::vector<Error>& errors() const { return errors_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Error> errors_;
  std::string text_;
};

/// Collects what independent readings of an input throw.
class ErrorList {
 public:
  /// Runs `read` and keeps the Error that it throws. Whether it threw none.
  template <class Read>
  bool attempt(Read&& read) {
    try {
      std::forward<Read>(read)();
      return true;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }
  bool empty() const { return errors_.empty(); }
  /// Throws what there is: nothing, the one error itself, or SeveralErrors.
  void raise() const;

 private:
  void add(const Error& error);

  std::vector<Error> errors_;
};

}  // namespace orrery
