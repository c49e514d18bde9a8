#pragma once

#include <string_view>

namespace orrery {

/// What a shell reads so that it asks `orrery completion words` whenever it completes the command.
/// `shell`: bash, zsh or fish. "": another.
std::string_view completion_script(std::string_view shell);

}  // namespace orrery
