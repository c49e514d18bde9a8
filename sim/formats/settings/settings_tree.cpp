#include "sim/formats/settings/settings_tree.hpp"

namespace orrery {

const SettingsTree* SettingsTree::find(const std::string& key) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->key == key) return &entry->value;
  return nullptr;
}

}  // namespace orrery
