#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/entry_points.hpp"

namespace orrery {

/// Where texts of an entry point lie: its folder in corpus/, and of scripts those that the
/// importer's tests read.
std::vector<std::filesystem::path> corpus_folders(const EntryPoint& entry);

/// These texts, by their names.
std::map<std::string, std::string> corpus_of(const EntryPoint& entry);

}  // namespace orrery
