#pragma once

#include <string>

#include "sim/core/error.hpp"
#include "sim/pipeline/explicit_order.hpp"

namespace orrery {

/// A schedule as a file has it (docs/guides/own-pipelines.md): lines of a word and what belongs to
/// it.
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
std::string schedule_text(const SpeltOrder& order);

/// Reads one and checks that it can run. Errors (bad_input), with the line: words that are unknown,
/// missing or given twice, numbers out of range; places, passes and circles as in
/// spelt_order.hpp.
SpeltOrder read_schedule(const std::string& text, const std::string& file);

/// Whether a user's word is the path of a schedule: it has a '/' or a '.'.
bool is_schedule_file(const std::string& word);

/// The schedule that a user's word means: the name of a built-in one, or the path of a file. Errors
/// (bad_input): none of both, with the nearest name; a file that cannot be read or does not run.
const Schedule& schedule_of_word(const std::string& word, const Place& at);

/// The schedule that a file's text is, under the name by which the user calls it: the same object
/// for the same of both, as long as the program runs. Errors: as read_schedule().
const Schedule& user_schedule(const std::string& name, const std::string& text);

}  // namespace orrery
