#pragma once

#include "sim/formats/shell/shell_syntax.hpp"

namespace orrery {

/// A word, and what it assigns if it is NAME=value, NAME+=value or NAME[index]=value. An array has
/// no value yet: it begins behind the word.
ShellItem shell_item(WrittenWord word);

}  // namespace orrery
