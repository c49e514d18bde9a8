#pragma once

#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// The folder that holds topologies/, workloads/ and calibration/data: $ORRERY_DATA if set, else
/// ../share/orrery relative to the program's folder if it exists, else the source tree that it was
/// built from.
std::string data_folder();

/// The path that a user's word means. A word with a '/' or ending in ".json" is a path (and is
/// returned unchanged), and so are "." and ".."; anything else is the name of a file in
/// data_folder()/`folder`. Errors: a name that is not in the catalog, with those that may be meant.
std::string find_in_catalog(const std::string& folder, const std::string& word, const Place& at);

/// The same of a word in a file: a relative path ending in ".json" starts at that file's folder.
std::string relative_to_file(const std::string& word, const Place& at);

/// The document of a kind ("models", "systems") in a file: the one that a result carries in its
/// inputs, if it carries exactly one, else the file itself.
JsonValue carried_or_self(const JsonValue& file, const std::string& kind);

/// Names in data_folder()/`folder`, sorted, without ".json".
std::vector<std::string> list_catalog(const std::string& folder);

}  // namespace orrery
