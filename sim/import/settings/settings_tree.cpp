#include "sim/import/settings/settings_tree.hpp"

namespace orrery {

const SettingsTree* SettingsTree::find(const std::string& key) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->first == key) return &entry->second;
  return nullptr;
}

}  // namespace orrery
