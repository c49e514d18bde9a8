#include "sim/core/process.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace orrery {

#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)

void use_large_pages() {
  constexpr std::uintptr_t page = 2u << 20;   // A large one of x86-64, and of most of arm64.
  constexpr int reserved = 256 << 20;         // Addresses; a larger heap has small pages.
  constexpr int default_top_pad = 128 << 10;  // mallopt(3)
  constexpr int largest_in_heap = 32 << 20;   // The most that mallopt(3) takes for it.
  constexpr int largest_kept = 2 * reserved;  // Above what is reserved, or it would be given back.
  mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  mallopt(M_TRIM_THRESHOLD, largest_kept);
  mallopt(M_TOP_PAD, reserved);
  const auto begin = reinterpret_cast<std::uintptr_t>(sbrk(0));
  // One that does not fit into what the heap has left. Nothing is written into it.
  void* volatile unused = std::malloc(1 << 20);  // Else a compiler leaves both out.
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  std::free(unused);
  mallopt(M_TOP_PAD, default_top_pad);
  const std::uintptr_t first = (begin + page - 1) / page * page;
  // Without permission it is a heap of small pages.
  if (end > first + page)
    madvise(reinterpret_cast<void*>(first), (end - first) / page * page, MADV_HUGEPAGE);
}

#else

void use_large_pages() {}

#endif

void* module_entry(const char* library, const char* entry) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = opened ? dlsym(opened, entry) : nullptr;
  if (!found)
    throw std::runtime_error{std::string{library} + " cannot be loaded: " + dlerror() +
                             "; install Orrery again"};
  return found;
}

}  // namespace orrery
