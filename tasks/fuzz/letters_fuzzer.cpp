// Any bytes as a reply to a multiple-choice question: every grader answers, the default with a
// letter from A to D.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "eval/core/error.h"
#include "tasks/common/letter_graders.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view reply(reinterpret_cast<const char*>(data), size);
  // The first line of the input is also a choice, so that the reply may hold it.
  const std::vector<std::string> choices = {
      "London", std::string(reply.substr(0, reply.find('\n'))), "", "7"};
  for (const asdbench::LetterGrader& grader : asdbench::letter_graders()) {
    const auto answer = grader.extract(reply, choices);
    if (!answer) continue;
    grader.equal(answer->text, "B");
    if (grader.name != "default") continue;
    ASDBENCH_CHECK(answer->text.size() == 1 && answer->text[0] >= 'A' && answer->text[0] <= 'D',
                   answer->text);
  }
  return 0;
}
