#pragma once

// A GPU's thread block on the host: includes the kernels of calibration/kernels as C++ and runs
// them thread by thread, so that what they compute can be tested where there is no GPU. Each thread
// is a fiber; barriers and warp instructions switch to the next one. What is not imitated: memory
// ordering (a missing barrier may go unnoticed), rounding of the fast functions, time.
//
// Include this before a kernel's header.

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#define __global__ inline
#define __device__
#define __shared__ static  // One block at a time.
#define __launch_bounds__(threads)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};

namespace orrery::calibration {

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

/// Runs blocks one after the other, each with its threads as fibers that take turns.
class ThreadBlocks {
 public:
  static void run(dim3 grid, unsigned threads, std::size_t shared_bytes,
                  const std::function<void()>& kernel) {
    gridDim = grid;
    blockDim = {threads, 1, 1};
    for (unsigned z = 0; z < grid.z; ++z)
      for (unsigned y = 0; y < grid.y; ++y)
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          ThreadBlocks block{threads, shared_bytes, kernel};
          current() = &block;
          block.run_block();
        }
  }

  static ThreadBlocks*& current() {
    static ThreadBlocks* block = nullptr;
    return block;
  }

  void wait_for_block() { wait(Waits::for_block); }
  void* shared() { return shared_.data(); }

  /// The values that a lane shows to the others of its warp.
  struct Slot {
    std::uint32_t words[6];
    const void* pointer;
  };
  /// Shows `own` and waits until all lanes have; then slot() has theirs, until the next exchange.
  /// Two sets of slots take turns: when one is written again, everybody has been through the
  /// other's exchange, and so is done with reading it.
  void exchange(const Slot& own) {
    Fiber& fiber = fibers_[threadIdx.x];
    ++fiber.exchanges;
    slots_[fiber.exchanges % 2 * fibers_.size() + threadIdx.x] = own;
    wait(Waits::for_warp);
  }
  const Slot& slot(unsigned lane) const {
    return slots_[fibers_[threadIdx.x].exchanges % 2 * fibers_.size() + threadIdx.x / 32 * 32 +
                  lane];
  }

 private:
  static constexpr std::size_t stack_bytes = 256 * 1024;

  enum class Waits { no, for_block, for_warp, forever };
  struct Fiber {
    ucontext_t context;  // Its beginning.
    jmp_buf place;       // Where it waits; swapcontext() would enter the kernel each time.
    bool begun = false;
    Waits waits = Waits::no;
    unsigned exchanges = 0;
  };

  ThreadBlocks(unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel)
      // Poison: unwritten memory is no number.
      : kernel_{kernel}, fibers_(threads), slots_(2 * threads), shared_(shared_bytes / 16 + 1) {
    std::memset(shared_.data(), 0xff, shared_.size() * sizeof(uint4));
  }

  // Kept from block to block: the pages of a new one would cost more than most kernels.
  static char* stack(std::size_t i) {
    static std::vector<std::unique_ptr<char[]>> stacks;
    while (stacks.size() <= i) stacks.push_back(std::make_unique<char[]>(stack_bytes));
    return stacks[i].get();
  }

  // To the compiler getcontext() may return twice: a caller's variables must not be in registers.
  [[gnu::noinline]] static void prepare(Fiber& fiber, std::size_t i) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack(i);
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;  // begin() never returns.
    makecontext(&fiber.context, begin, 0);
  }

  void run_block() {
    for (unsigned i = 0; i < fibers_.size(); ++i) prepare(fibers_[i], i);
    while (true) {
      bool ran = false, left = false;
      for (unsigned i = 0; i < fibers_.size(); ++i) {
        if (fibers_[i].waits == Waits::no) {
          threadIdx = {i, 0, 0};
          resume(fibers_[i]);
          ran = true;
        }
        left = left || fibers_[i].waits != Waits::forever;
      }
      if (!left) return;
      for (unsigned warp = 0; warp < fibers_.size(); warp += 32)
        release(Waits::for_warp, warp, warp + 32);
      if (!release(Waits::for_block, 0, static_cast<unsigned>(fibers_.size())) && !ran)
        throw std::logic_error{"the threads of a block wait for each other"};
    }
  }

  // Once all of the threads that still run wait for the same thing.
  bool release(Waits what, unsigned from, unsigned to) {
    bool any = false;
    for (unsigned i = from; i < to; ++i) {
      if (fibers_[i].waits == Waits::forever) continue;
      if (fibers_[i].waits != what) return false;
      any = true;
    }
    for (unsigned i = from; i < to; ++i)
      if (fibers_[i].waits == what) fibers_[i].waits = Waits::no;
    return any;
  }

  // Not inlined: what a function with setjmp keeps in registers is lost.
  [[gnu::noinline]] void resume(Fiber& fiber) {
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
  }

  [[gnu::noinline]] void wait(Waits what) {
    Fiber& own = fibers_[threadIdx.x];
    own.waits = what;
    if (_setjmp(own.place) == 0) _longjmp(scheduler_, 1);
  }

  static void begin() {
    ThreadBlocks* const block = current();
    block->kernel_();
    block->wait(Waits::forever);
  }

  const std::function<void()>& kernel_;
  std::vector<Fiber> fibers_;
  std::vector<Slot> slots_;
  std::vector<uint4> shared_;
  jmp_buf scheduler_;
};

inline void __syncthreads() { ThreadBlocks::current()->wait_for_block(); }

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(ThreadBlocks::current()->shared());
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static_assert(sizeof(T) == 4);
  ThreadBlocks& block = *ThreadBlocks::current();
  ThreadBlocks::Slot own{};
  std::memcpy(own.words, &value, 4);
  block.exchange(own);
  T other;
  std::memcpy(&other, block.slot(threadIdx.x % 32 ^ static_cast<unsigned>(mask)).words, 4);
  return other;
}

inline float __uint_as_float(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline std::uint32_t bf16_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // To nearest, ties to even.
}
inline std::uint32_t pack_bf16(float low, float high) {
  return bf16_bits(low) | bf16_bits(high) << 16;
}

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline void atomicAdd(float* to, float value) { *to += value; }
inline void atomicXor(unsigned* to, unsigned value) { *to ^= value; }

// Matrix instructions, after the PTX ISA; warp_matrix.cuh has a figure of what a lane holds.

inline void load_matrices_at(std::uint32_t (&r)[4], const std::uint16_t* row, bool transposed) {
  ThreadBlocks& block = *ThreadBlocks::current();
  const unsigned lane = threadIdx.x % 32;
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
    throw std::logic_error{"ldmatrix needs rows at multiples of 16 bytes"};
  block.exchange({{}, row});
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    const auto element = [&](unsigned i, unsigned j) {
      return static_cast<const std::uint16_t*>(block.slot(8 * matrix + i).pointer)[j];
    };
    const unsigned i = lane / 4, j = 2 * (lane % 4);
    const std::uint32_t first = transposed ? element(j, i) : element(i, j);
    const std::uint32_t second = transposed ? element(j + 1, i) : element(i, j + 1);
    r[matrix] = first | second << 16;
  }
}
inline void load_matrices(std::uint32_t (&r)[4], const std::uint16_t* row) {
  load_matrices_at(r, row, false);
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], const std::uint16_t* row) {
  load_matrices_at(r, row, true);
}

inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1) {
  ThreadBlocks& block = *ThreadBlocks::current();
  const unsigned lane = threadIdx.x % 32;
  block.exchange({{a[0], a[1], a[2], a[3], b0, b1}, nullptr});
  const auto half = [](std::uint32_t word, unsigned odd) {
    return __uint_as_float(odd ? word & 0xffff0000u : word << 16);
  };
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + e / 2 * 8, column = 2 * (lane % 4) + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const std::uint32_t left = block.slot(row % 8 * 4 + k % 8 / 2).words[row / 8 + k / 8 * 2];
      const std::uint32_t right = block.slot(column * 4 + k % 8 / 2).words[4 + k / 8];
      c[e] += half(left, k % 2) * half(right, k % 2);
    }
  }
}

inline void copy_async(std::uint16_t* to, const std::uint16_t* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 || reinterpret_cast<std::uintptr_t>(from) % 16)
    throw std::logic_error{"cp.async needs multiples of 16 bytes"};
  std::memcpy(to, from, 16);
}
inline void wait_for_copies() {}

}  // namespace orrery::calibration
