#pragma once

#include <string>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// The folder that holds topologies/, workloads/ and calibration/data: $ORRERY_DATA if set, else
/// ../share/orrery beside the program's folder if it is there, else the source tree that it was
/// built from.
std::string data_folder();

/// The path that a user's word means. A word with a '/' or ending in ".json" is a path (and is
/// returned as it is), as are "." and ".."; anything else is the name of a file in
/// data_folder()/`shelf`. Errors: a name that is not in the catalog, with those that may be meant.
std::string find_in_catalog(const std::string& shelf, const std::string& word, const Place& at);

/// The same word where a file says it: a relative path ending in ".json" lies beside that file.
std::string beside_file(const std::string& word, const Place& said);

/// Names in data_folder()/`shelf`, sorted, without ".json".
std::vector<std::string> list_catalog(const std::string& shelf);

}  // namespace orrery
