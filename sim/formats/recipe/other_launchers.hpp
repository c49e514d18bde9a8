#pragma once

#include <string>

#include "sim/formats/shell/shell_script.hpp"

namespace orrery {

/// Refuses a script that starts a training of a program that no importer reads (verl, OpenRLHF,
/// `swift sft`), or whose settings are in a file that one of them reads (LLaMA-Factory, axolotl,
/// NeMo's factories), naming it and the way out. Does nothing for others. Errors (bad_input).
void refuse_other_launcher(const ShellScript& script);

/// Refuses a file of settings, or Python that makes them, that `orrery import READER` does not
/// read, by its first words: it names the program, and the importer or the way out. Python is never
/// run. Does nothing for others. Errors (bad_input).
void refuse_other_file(const std::string& text, const std::string& file, const std::string& reader);

}  // namespace orrery
