// What the memory of this machine gives: the ceiling of every step that streams its weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runners/kernels/pool.h"

namespace asdbench::kernels {

/// Measures the rate at which a pool's threads read memory, over a buffer that no cache holds.
class ReadRate {
 public:
  /// Allocates and writes `bytes`, rounded down to whole segments. std::bad_alloc;
  /// std::invalid_argument below 192 KiB.
  explicit ReadRate(std::int64_t bytes);

  /// Bytes a second in the fastest of 24 segments: other processes can only slow a segment down.
  /// They do change the rate, so measure before and after what is compared with it.
  double measure(Pool& pool) const;

 private:
  std::int64_t words_;  // of 8 bytes, of a thread's part of a segment
  std::shared_ptr<std::byte> buffer_;
};

}  // namespace asdbench::kernels
