// Hands out neighbouring pieces of a mapping until it is full.
#include "runners/kernels/slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace asdbench::kernels {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSlabBytes = std::size_t{64} << 20;  // untouched pages cost nothing
constexpr std::size_t kAlignment = 64;

/// An anonymous mapping with a huge-page boundary at `data`.
class Slab {
 public:
  explicit Slab(std::size_t bytes) : mapped_(bytes + kHugePage) {
    void* mapping =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapping);
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    data_ = mapping_ + (kHugePage - address % kHugePage) % kHugePage;
    // Advice only: without huge pages everything works, a little slower.
    madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Slab() { munmap(mapping_, mapped_); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::size_t mapped_;
  std::byte* mapping_;
  std::byte* data_;
};

struct Current {
  std::mutex lock;
  std::weak_ptr<Slab> slab;  // weak: its matrices alone keep it
  std::size_t used = 0;
};

}  // namespace

std::shared_ptr<std::byte> allocate_pages(std::size_t bytes) {
  static Current current;
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - 2 * kHugePage) throw std::bad_alloc();
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard<std::mutex> lock(current.lock);
  std::shared_ptr<Slab> slab = current.slab.lock();
  if (slab == nullptr || rounded > kSlabBytes - current.used) {
    slab = std::make_shared<Slab>(std::max(rounded, kSlabBytes));
    current.slab = slab;
    current.used = 0;
  }
  std::byte* data = slab->data() + current.used;
  current.used = std::min(current.used + rounded, kSlabBytes);
  return {std::move(slab), data};
}

}  // namespace asdbench::kernels
