// Reads a buffer segment by segment with the plain kernel of the active instruction set.
#include "runners/kernels/read_rate.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/slab.h"

namespace asdbench::kernels {
namespace {

constexpr std::int64_t kSegments = 24;
constexpr std::int64_t kParts = 16;
constexpr std::int64_t kWordsStep = 64;  // of the kernel

}  // namespace

ReadRate::ReadRate(std::int64_t bytes)
    : words_(bytes / 8 / (kSegments * kParts * kWordsStep) * kWordsStep) {
  if (words_ < 1) {
    throw std::invalid_argument("a read rate over " + std::to_string(bytes) +
                                " bytes; at least 192 KiB are needed");
  }
  const std::int64_t whole = words_ * 8 * kSegments * kParts;
  // The same kind of memory as the weights, written so that it is there.
  buffer_ = allocate_pages(static_cast<std::size_t>(whole));
  std::fill_n(buffer_.get(), whole, std::byte{0x5a});
}

double ReadRate::measure(Pool& pool) const {
  const auto* words = reinterpret_cast<const std::uint64_t*>(buffer_.get());
  const CpuKernels& kernels = cpu_kernels(active_isa());
  double fastest = std::numeric_limits<double>::infinity();
  for (std::int64_t segment = 0; segment < kSegments; ++segment) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(kParts, [&](std::int64_t part) {
      const std::uint64_t all = kernels.read(words + part * words_, words_);
      asm volatile("" : : "r"(all));  // the reads may not be left out
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, took.count());
    words += kParts * words_;
  }
  return static_cast<double>(kParts * words_ * 8) / fastest;
}

}  // namespace asdbench::kernels
