// Templates, and the permutation that deals their combinations out.
//
// The problems are so short that changing one slot alone changes over a sixth of the 8-word
// shingles: no two problems are near-duplicates (measurement.md, section 9). The tests hold each
// template to that.
#include "tasks/common/word_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "eval/core/error.h"
#include "eval/core/rng.h"

namespace asdbench {
namespace {

constexpr std::array<std::string_view, 26> kNames = {
    "Anna", "Ben",  "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ivy",
    "Jack", "Kate", "Leo",   "Mia",   "Noah", "Olga",  "Paul",  "Rosa",  "Sam",
    "Tina", "Maya", "Lucy",  "Oscar", "Ella", "Max",   "Nina",  "Victor"};
constexpr std::array<std::string_view, 12> kThings = {"apples",  "pencils", "marbles", "stickers",
                                                      "cookies", "shells",  "coins",   "buttons",
                                                      "flowers", "stamps",  "peaches", "ribbons"};

struct Range {
  std::int64_t from, to;  // both belong to it
  std::int64_t size() const { return to - from + 1; }
};

/// {0} a name, {1} a thing, {2} {3} {4} numbers.
struct Template {
  const char* question;
  const char* solution;  // the same slots, and {5} the answer
  std::array<Range, 3> numbers;
  std::int64_t (*answer)(std::int64_t a, std::int64_t b, std::int64_t c);
};

constexpr Range kNone = {0, 0};
constexpr Range kFew = {2, 5};
constexpr Range kSmall = {2, 9};

// Of those tried on SmolLM2-135M-Instruct, the ones of which it gets a good part right, from five
// in six down to one in six; subtractions it nearly always gets wrong.
constexpr std::array<Template, 8> kTemplates = {{
    {"{0} has {2} {1}. A friend gives {0} {3} more {1}. How many {1} does {0} have now?",
     "{0} has {2} + {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a + b; }},
    {"{0} had {2} {1} and then found {3} more {1}. How many {1} does {0} have in total?",
     "{0} has {2} + {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a + b; }},
    {"{0} buys {2} {1} on Monday and {3} {1} on Tuesday. How many {1} does {0} buy in all?",
     "{0} buys {2} + {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a + b; }},
    {"{0} has {2} red {1} and {3} blue {1}. How many {1} does {0} have altogether?",
     "{0} has {2} + {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a + b; }},
    {"{0} has {2} bags. Each bag holds {3} {1}. How many {1} does {0} have in total?",
     "{0} has {2} * {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a * b; }},
    {"{0} has {2} boxes with {3} {1} in each box. How many {1} does {0} have in all?",
     "{0} has {2} * {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a * b; }},
    {"{0} collects {2} {1} in the morning and {3} {1} in the evening. How many {1} does {0} "
     "collect that day?",
     "{0} collects {2} + {3} = {5} {1}.\n#### {5}",
     {{kSmall, kSmall, kNone}},
     [](auto a, auto b, auto) { return a + b; }},
    // Two steps.
    {"{0} has {2} green {1}, {3} white {1} and {4} black {1}. How many {1} does {0} have "
     "altogether?",
     "{0} has {2} + {3} + {4} = {5} {1}.\n#### {5}",
     {{kFew, kFew, kFew}},
     [](auto a, auto b, auto c) { return a + b + c; }},
}};

std::int64_t combinations(const Template& of) {
  std::int64_t count = static_cast<std::int64_t>(kNames.size() * kThings.size());
  for (const Range& range : of.numbers) count *= range.size();
  return count;
}

std::uint64_t mix(std::uint64_t z) { return SplitMix64(z).next(); }

/// A permutation of [0, size): four rounds of a Feistel network over the next even number of bits,
/// taken again until the result is inside.
std::int64_t permuted(std::int64_t index, std::int64_t size, std::uint64_t key) {
  const int half = (std::bit_width(static_cast<std::uint64_t>(size - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> half, right = value & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mix(right ^ mix(key + round)) & mask);
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(value);
}

/// The smallest template sets how often each of them is dealt.
std::int64_t rounds() {
  std::int64_t least = combinations(kTemplates.front());
  for (const Template& of : kTemplates) least = std::min(least, combinations(of));
  return least;
}

}  // namespace

std::int64_t word_problem_count() {
  return rounds() * static_cast<std::int64_t>(kTemplates.size());
}

WordProblem word_problem(std::uint64_t seed, std::int64_t index) {
  ASDBENCH_CHECK(index >= 0 && index < word_problem_count(), "a problem of this index exists");
  const auto count = static_cast<std::int64_t>(kTemplates.size());
  const auto which = static_cast<std::size_t>(index % count);
  const Template& of = kTemplates[which];
  std::int64_t digits = permuted(index / count, combinations(of), mix(seed) + which);
  const auto take = [&](std::int64_t size) {
    const std::int64_t digit = digits % size;
    digits /= size;
    return digit;
  };
  const std::string_view name = kNames[static_cast<std::size_t>(take(std::ssize(kNames)))];
  const std::string_view thing = kThings[static_cast<std::size_t>(take(std::ssize(kThings)))];
  std::array<std::int64_t, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = of.numbers[i].from + take(of.numbers[i].size());
  }
  const auto [a, b, c] = numbers;
  const std::int64_t answer = of.answer(a, b, c);
  return {.question = fmt::format(fmt::runtime(of.question), name, thing, a, b, c),
          .solution = fmt::format(fmt::runtime(of.solution), name, thing, a, b, c, answer),
          .answer = answer};
}

}  // namespace asdbench
