// Memory of packed weights: large mappings that many matrices share, on huge pages where possible.
#pragma once

#include <cstddef>
#include <memory>

namespace asdbench::kernels {

/// `bytes` of zeroed memory, 64-byte aligned; bytes >= 1.
///
/// A pass streams through every weight once, so small pages would cost a table walk each 4 KiB, and
/// a matrix alone is smaller than a huge page. Matrices packed one after another therefore lie in
/// one mapping, which is returned to the system with the last of them. Thread-safe.
/// Errors: std::bad_alloc.
std::shared_ptr<std::byte> allocate_weights(std::size_t bytes);

}  // namespace asdbench::kernels
