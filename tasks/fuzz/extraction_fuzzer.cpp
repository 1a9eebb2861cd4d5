// Any bytes as a reply: every grader answers, and an answer of the default is a number that equals
// itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/number_graders.h"
#include "tasks/common/numbers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view reply(reinterpret_cast<const char*>(data), size);
  for (const asdbench::NumberGrader& grader : asdbench::number_graders()) {
    const auto answer = grader.extract(reply);
    if (!answer) continue;
    grader.equal(answer->text, "18");
    // Shorter than the limit on digits, so that the number can be compared.
    if (grader.name == "default" && answer->text.size() < 1000) {
      ASDBENCH_CHECK(asdbench::same_number(answer->text, answer->text), answer->text);
      const auto canonical = asdbench::canonical_number(answer->text);
      ASDBENCH_CHECK(canonical && asdbench::same_number(*canonical, answer->text), answer->text);
    }
  }
  return 0;
}
