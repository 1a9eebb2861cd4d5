// Memory of weights and caches: large mappings that many arrays share, on huge pages where
// possible.
#pragma once

#include <cstddef>
#include <memory>

namespace asdbench::kernels {

/// `bytes` of zeroed memory, 64-byte aligned; bytes >= 1.
///
/// A step streams through all weights and cached keys and values once, so small pages would cost a
/// table walk each 4 KiB, and an array alone is often smaller than a huge page. Arrays allocated
/// one after another therefore lie in one mapping, which is returned to the system with the last of
/// them: allocate together what lives equally long. Thread-safe.
/// Errors: std::bad_alloc.
std::shared_ptr<std::byte> allocate_pages(std::size_t bytes);

}  // namespace asdbench::kernels
