#include "sim/core/error.hpp"

#include <cstdio>

namespace orrery {

std::string harmless(const std::string& message) {
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const auto byte = static_cast<unsigned char>(message[i]);
    // The second byte of U+0080 to U+009F in UTF-8, which some terminals take for control.
    const bool controls_in_utf8 = byte >= 0x80 && byte < 0xa0 && i > 0 && message[i - 1] == '\xc2';
    if (byte >= 0x20 && byte != 0x7f && !controls_in_utf8) {
      text += message[i];
      continue;
    }
    if (controls_in_utf8) text.pop_back();
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", byte);
    text += code;
  }
  return text;
}

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
