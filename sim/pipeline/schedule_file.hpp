#pragma once

#include <string>

#include "sim/core/error.hpp"
#include "sim/pipeline/explicit_order.hpp"

namespace orrery {

/// The format of schedule files (docs/guides/own-pipelines.md): each line has a word and its
/// values.
///
///     orrery.schedule/1
///     stages 2                  # ranks of a pipeline
///     chunks 2                  # that a rank holds; left out: 1
///     microbatches 4
///     recomputes_for_weights 0  # or 1: as Schedule says; left out: 0
///     holds 0: 0 3              # virtual stages of its chunks; left out: s, p + s, 2 p + s, ...
///     holds 1: 1 2
///     runs 0: F0.0 F1.0 ...     # may go on in further lines
///     runs 1: ...
std::string schedule_text(const ExplicitOrder& order);

/// Reads and checks a schedule. Errors (bad_input), with the line: words that are unknown, missing
/// or repeated, numbers out of range; places, passes and circles as in explicit_order.hpp.
ExplicitOrder read_schedule(const std::string& text, const std::string& file);

/// A word with a '/' or a '.' is the path of a schedule file.
bool is_schedule_file(const std::string& word);

/// The built-in schedule of that name, or the one in the file at that path. Errors (bad_input):
/// neither exists, with the nearest name; a file that cannot be read or does not run.
const Schedule& schedule_of_word(const std::string& word, const Place& at);

/// The schedule of a file's text, under the user's name for it. The same arguments give the same
/// object for the life of the program. Errors as in read_schedule().
const Schedule& user_schedule(const std::string& name, const std::string& text);

}  // namespace orrery
