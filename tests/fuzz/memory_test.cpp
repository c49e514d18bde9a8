// Memory that is at an end: of all allocations of a reader one fails, for every text of its corpus.
// What comes out is an answer, an Error or std::bad_alloc; with ASan, nothing is lost on the way.
// ORRERY_EVERY_ALLOCATION=1 tries all, else they lie a quarter apart.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/fuzz/corpus.hpp"

namespace {

long until = 0;  // Allocations up to the one that fails; 0: none does.

// nlohmann_json's destructor, libstdc++'s directory_iterator and toml++ allocate where they promise
// not to throw, and end the program where they cannot: no answer is wrong, and we could not prevent
// it.
bool promises_not_to_throw(void* frame) {
  Dl_info about{};
  if (!::dladdr(frame, &about) || !about.dli_sname) return false;
  for (const char* promise : {"json_value7destroy", "directory_iterator", "4toml"})
    if (std::strstr(about.dli_sname, promise)) return true;
  return false;
}

// dladdr searches all symbols of the program: its result for a frame is kept, without allocating.
bool is_known_to_promise(void* frame) {
  struct Known {
    void* frame = nullptr;
    bool promises = false;
  };
  static std::array<Known, 1 << 16> all;
  Known& known = all[(reinterpret_cast<std::uintptr_t>(frame) * 0x9E3779B97F4A7C15) >> 48];
  if (known.frame != frame) known = {frame, promises_not_to_throw(frame)};
  return known.promises;
}

bool is_beyond_us() {
  void* frames[64];
  return std::any_of(frames, frames + ::backtrace(frames, 64), is_known_to_promise);
}

void* allocated(std::size_t size) {
  if (until > 0 && --until == 0 && !is_beyond_us()) throw std::bad_alloc{};
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc{};
}

}  // namespace

// What else is new and delete comes to these.
void* operator new(std::size_t size) { return allocated(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace orrery {
namespace {

class Memory : public testing::TestWithParam<EntryPoint> {};

std::vector<EntryPoint> readers() {
  std::vector<EntryPoint> all = entry_points();
  std::erase_if(all, [](const EntryPoint& entry) { return entry.simulates; });
  return all;
}

// Whether the text was read before the allocation's turn came.
bool reads_with_a_failure(const std::string& text, long at) {
  const EntryPoint& reader = Memory::GetParam();
  until = at;
  bool failed = false;
  try {
    reader.run(text);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  const bool reached = until == 0;
  until = 0;
  EXPECT_TRUE(reached || !failed);
  return !reached;
}

TEST_P(Memory, AnyAllocationMayFail) {
  const bool every = std::getenv("ORRERY_EVERY_ALLOCATION");
  long failures = 0;
  for (const auto& [name, text] : corpus_of(GetParam())) {
    SCOPED_TRACE(name);
    GetParam().run(text);  // What is read once in a process is there.
    for (long at = 1; !reads_with_a_failure(text, at); at += every ? 1 : 1 + at / 4) ++failures;
  }
  RecordProperty("failures", static_cast<int>(failures));
  EXPECT_GT(failures, 0);
  std::printf("%s: %ld allocations failed\n", GetParam().name.c_str(), failures);
}

INSTANTIATE_TEST_SUITE_P(Readers, Memory, testing::ValuesIn(readers()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace orrery
