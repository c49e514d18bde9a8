// libFuzzer's door to the entry point that ORRERY_FUZZ names. With --list it prints the names of
// all, with --dictionary the entry's words, with --corpus where its texts lie.
#include <sys/types.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/mutation.hpp"
#include "tests/fuzz/vocabulary.hpp"

// libFuzzer's own changes of bytes.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace orrery;

const EntryPoint* entry = nullptr;
std::vector<std::string> words;
long executions = 0, accepted = 0;

void tell_figures() {
  if (executions > 0)
    std::fprintf(stderr, "%s: %ld executions, %ld accepted\n", entry->name.c_str(), executions,
                 accepted);
}

void print_list() {
  for (const EntryPoint& one : entry_points())
    std::printf("%s %s\n", one.name.c_str(), one.simulates ? "simulates" : "reads");
}

}  // namespace

// No fuzzed code may start a process: an attempt must be reported as failed.
extern "C" pid_t fork() noexcept {
  errno = EAGAIN;
  return -1;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const auto asks = [&](const char* option) {
    return *argc == 2 && std::strcmp((*argv)[1], option) == 0;
  };
  const char* name = std::getenv("ORRERY_FUZZ");
  entry = find_entry_point(name ? name : "");
  if (asks("--list")) {
    print_list();
    std::exit(0);
  }
  if (!entry) {
    std::fprintf(stderr, "set ORRERY_FUZZ to one of those that --list prints\n");
    std::exit(2);
  }
  if (asks("--corpus")) {
    for (const auto& folder : corpus_folders(*entry)) std::puts(folder.c_str());
    std::exit(0);
  }
  words = vocabulary_of(*entry);
  if (asks("--dictionary")) {
    std::fputs(dictionary_text(words).c_str(), stdout);
    std::exit(0);
  }
  std::atexit(tell_figures);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ++executions;
  accepted += entry->run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937 random{seed};
  if (entry->shape != Shape::bytes && random() % 4 != 0) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::string changed = changed_in_shape(text, entry->shape, words, random);
    if (!changed.empty() && changed.size() <= most) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}
