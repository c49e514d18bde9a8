#pragma once

#include <stdexcept>
#include <string>

#include "sim/core/harmless.hpp"

namespace orrery {

/// Where an input went wrong: a file and a JSON pointer in it, or, without a file, an option of the
/// command line.
struct Place {
  std::string file;
  std::string pointer;

  Place operator/(const std::string& key) const {
    return {file, file.empty() ? "--" + key : pointer + "/" + key};
  }
  Place operator/(std::size_t index) const { return *this / std::to_string(index); }
};

/// The one error that a user can cause. It names the place, the problem and what to write instead;
/// only main() catches it. A wrong program asserts. Whoever prints or stores the text need not fear
/// what was typed: it is harmless().
class Error : public std::runtime_error {
 public:
  enum class Kind {
    bad_input,   ///< The input says something that cannot be meant: exit code 2.
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

}  // namespace orrery
