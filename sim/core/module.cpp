#include "sim/core/module.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace orrery {

void* module_entry(const char* library, const char* entry) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = opened ? dlsym(opened, entry) : nullptr;
  if (!found)
    throw std::runtime_error{std::string{library} + " cannot be loaded: " + dlerror() +
                             "; install Orrery again"};
  return found;
}

}  // namespace orrery
