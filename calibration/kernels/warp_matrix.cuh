#pragma once

// The few instructions that matrix units need, and how tiles lie in shared memory.
//
// A warp multiplies a 16 x 16 by a 16 x 8 tile. Lane l holds, with g = l / 4 and t = l % 4 (PTX
// ISA, "Matrix Fragments for mma.m16n8k16"; two bf16 a register):
//   A  [0] row g,     columns 2t, 2t+1     [1] row g + 8, the same columns
//      [2] row g,     columns 2t+8, 2t+9   [3] row g + 8, the same columns
//   B  [0] rows 2t, 2t+1 of column g       [1] rows 2t+8, 2t+9 of column g
//   C  [0], [1] row g, columns 2t, 2t+1    [2], [3] row g + 8, the same columns
// So two tiles of C side by side are, rounded, one tile of A.

#include <cstdint>

namespace orrery::calibration {

#ifdef __CUDACC__
/// c += a b
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Four 8 x 8 matrices: lane l names the address of row l % 8 of matrix l / 8. Register j of lane l
/// gets matrix j's row l / 4, columns 2 (l % 4) and the next.
__device__ inline void load_matrices(std::uint32_t (&r)[4], const std::uint16_t* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// The same with each matrix transposed.
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const std::uint16_t* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// 16 bytes to shared memory, behind the thread's back until wait_for_copies().
__device__ inline void copy_async(std::uint16_t* to, const std::uint16_t* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
/// Until all copies of this thread have arrived. Others' need a barrier as well.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

/// Place of element (row, column) of a tile of `width` columns: blocks of eight are exchanged
/// within a row, so that eight rows of one column block lie in different banks.
template <int width>
__device__ inline int tile_at(int row, int column) {
  return row * width + ((((column >> 3) ^ (row & 7)) << 3) | (column & 7));
}

/// Begins to copy a tile of rows x width whose rows lie `stride` apart.
template <int width>
__device__ inline void load_tile(std::uint16_t* tile, const std::uint16_t* from,
                                 std::int64_t stride, int rows) {
  constexpr int pieces = width / 8;
  for (int i = threadIdx.x; i < rows * pieces; i += blockDim.x) {
    const int row = i / pieces, column = i % pieces * 8;
    copy_async(tile + tile_at<width>(row, column), from + row * stride + column);
  }
}

/// A as it lies: rows row..row+15, columns column..column+15.
template <int width>
__device__ inline void load_a(std::uint32_t (&a)[4], const std::uint16_t* tile, int row,
                              int column) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, tile + tile_at<width>(row + lane % 16, column + lane / 16 * 8));
}
/// A from a tile that holds it transposed: A's rows are the tile's columns.
template <int width>
__device__ inline void load_a_transposed(std::uint32_t (&a)[4], const std::uint16_t* tile, int row,
                                         int column) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(
      a, tile + tile_at<width>(column + lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8));
}
/// B, 16 rows and 16 columns, from a tile that holds it transposed (a row of the tile is a column
/// of B): b[0], b[1] are its first eight columns, b[2], b[3] the others.
template <int width>
__device__ inline void load_b_transposed(std::uint32_t (&b)[4], const std::uint16_t* tile, int row,
                                         int column) {
  const int lane = threadIdx.x % 32;
  load_matrices(b,
                tile + tile_at<width>(column + lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8));
}
/// B as it lies.
template <int width>
__device__ inline void load_b(std::uint32_t (&b)[4], const std::uint16_t* tile, int row,
                              int column) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(
      b, tile + tile_at<width>(row + lane % 8 + lane / 8 % 2 * 8, column + lane / 16 * 8));
}

}  // namespace orrery::calibration
