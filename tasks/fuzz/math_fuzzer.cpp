// Any bytes as a reply and as answers (parted by the first line break): extraction and equality
// never crash, and equality is reflexive and symmetric.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math_graders.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using asdbench::math::compare_answers;
  using asdbench::math::Equality;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const std::string_view left = text.substr(0, line);
  const std::string_view right = line == text.npos ? "" : text.substr(line + 1);
  for (const asdbench::MathGrader& grader : asdbench::math_graders()) {
    if (const auto answer = grader.extract(text)) grader.compare(answer->text, right);
    grader.compare(left, right);
  }
  // Not so of every named grader: minerva's cannot read an interval.
  ASDBENCH_CHECK(left.empty() || compare_answers(left, left).equality == Equality::kEqual,
                 "an answer equals itself");
  const auto forth = compare_answers(left, right);
  const auto back = compare_answers(right, left);
  // Undecided once and decided once is no contradiction: the limit on time is one of the clock.
  const bool decided =
      forth.equality != Equality::kUndecided && back.equality != Equality::kUndecided;
  ASDBENCH_CHECK(!decided || forth.one_way || back.one_way || forth.equality == back.equality,
                 "equality is symmetric");
  return 0;
}
