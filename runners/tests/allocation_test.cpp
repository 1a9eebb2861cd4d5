// The loop touches no heap after the start: every allocation of the program is counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "runners/tests/decoding.h"

namespace {

std::size_t allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Not inlined: g++ 12 would take the malloc inside for a mismatch with the delete.
__attribute__((noinline)) void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace asdbench {
namespace {

using testing_support::asd;
using testing_support::drafter;
using testing_support::Prompted;
using testing_support::verifier;

TEST(AllocationTest, PassesTouchNoHeap) {
  ToyTarget target({.vocab = 24, .positions = 4096, .ends = 1, .seed = 5});
  const auto ngram = drafter("ngram", target);
  const auto none = drafter("none", target);
  for (const auto& rule : {asd("inf", "inf", "inf"), asd("8", "0.25", "2"), verifier("strict")}) {
    for (Drafter* by : {ngram.get(), none.get()}) {
      const std::int32_t drafts = by == none.get() ? 0 : 8;
      Decoder decoder(target, *by, *rule, {.drafts = drafts, .requests = 2, .positions = 1024});
      const Prompted prompted(target, {.max_tokens = 800, .ignore_end_ids = true});
      const auto first = prompted.request(1, 0), second = prompted.request(2, 1);
      decoder.start(*first);
      decoder.start(*second);
      Request* const live[] = {first.get(), second.get()};
      const std::size_t before = allocations;
      while (!first->finished() || !second->finished()) decoder.pass(live);
      EXPECT_EQ(allocations, before) << by->info().name << ", " << rule->info().name;
      EXPECT_EQ(first->output().size(), 800U);
      EXPECT_EQ(first->passes().size() < 780, drafts > 0) << first->passes().size() << " passes";
    }
  }
}

TEST(AllocationTest, TheCounterCounts) {
  const std::size_t before = allocations;
  const std::vector<int> vector(100);
  EXPECT_EQ(allocations, before + 1);
}

}  // namespace
}  // namespace asdbench
