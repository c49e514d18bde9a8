#include "sim/core/error_list.hpp"

namespace orrery {
namespace {

constexpr std::size_t most_lines = 20;

std::string lines(const std::vector<Error>& errors) {
  std::string text;
  for (std::size_t i = 0; i < errors.size() && i < most_lines; ++i)
    text += (i == 0 ? "" : "\n") + std::string{errors[i].what()};
  if (errors.size() > most_lines)
    text += "\nand " + std::to_string(errors.size() - most_lines) + " more";
  return text;
}

}  // namespace

SeveralErrors::SeveralErrors(std::vector<Error> errors)
    : Error{errors.front()}, errors_{std::move(errors)}, text_{lines(errors_)} {}

void ErrorList::add(const Error& error) {
  if (const auto* several = dynamic_cast<const SeveralErrors*>(&error))
    errors_.insert(errors_.end(), several->errors().begin(), several->errors().end());
  else
    errors_.push_back(error);
}

void ErrorList::raise() const {
  if (errors_.size() == 1) throw errors_.front();
  if (errors_.size() > 1) throw SeveralErrors{errors_};
}

}  // namespace orrery
