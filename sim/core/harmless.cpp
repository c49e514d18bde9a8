#include "sim/core/harmless.hpp"

#include <cstdio>

namespace orrery {

std::string harmless(const std::string& message) {
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const auto byte = static_cast<unsigned char>(message[i]);
    // Of UTF-8 the second byte of U+0080 to U+009F, which some terminals take for control.
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

}  // namespace orrery
