#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

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
