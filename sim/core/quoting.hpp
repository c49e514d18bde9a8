#pragma once

#include <string>
#include <vector>

namespace orrery {

/// `text` as it stands between tags or in quotes, in HTML and XML alike. What XML 1.0 (2.2) does
/// not have at all becomes a question mark, and a mark that turns the direction of writing its
/// number, "\u202E".
std::string escaped(const std::string& text);

/// The form that a POSIX shell reads back: all but plain words stand in single quotes.
std::string shell_word(const std::string& text);

/// A cell of CSV, in quotes only where it needs them (RFC 4180).
std::string csv_cell(const std::string& text);
/// The same of a text, which a spreadsheet must not take for a formula: one that begins like it
/// gets an apostrophe.
std::string csv_text(const std::string& text);

/// "orrery estimate --model ...": how a command was typed.
std::string typed_command(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace orrery
