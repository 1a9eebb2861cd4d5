// Any bytes as a judge's reply or its server's, and any as the answer that it was shown: values of
// the scale or nothing, and no mark that comes out of an answer.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/chat_client.h"
#include "tasks/common/judge_text.h"

namespace asdbench {
namespace {

void try_input(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t border = std::min(input.find('\n'), input.size());
  const std::string_view shown = input.substr(0, border), text = input.substr(border);
  for (const auto& rating : {judge_rating(text), judge_rating_beside(text, shown)}) {
    ASDBENCH_CHECK(!rating || (*rating >= 1 && *rating <= 10), "a rating is on the scale");
  }
  judge_rating(text, RatingRule::kFastchat);
  for (const auto& winner :
       {judge_winner(text), judge_winner_beside(text, shown), judge_two_scores(text)}) {
    ASDBENCH_CHECK(!winner || (*winner >= 'A' && *winner <= 'C'), "a winner is A, B or C");
  }
  const auto ranking = judge_ranking(text);
  ASDBENCH_CHECK(!ranking || *ranking == 1 || *ranking == 2, "a rank is 1 or 2");
  const auto pair = judge_score_pair(text);
  ASDBENCH_CHECK(!pair || *pair == 0 || *pair == 1 || *pair == 2, "a preference is 0, 1 or 2");
  const ChatOutcome outcome = read_chat_body(std::string(text));
  ASDBENCH_CHECK((outcome.fault == ChatFault::kNone) != outcome.reply.text.empty(),
                 "a body gives words or a fault");
  const std::string plain = without_marks(shown);
  ASDBENCH_CHECK(!judge_winner(plain), "no winner comes out of an answer");
  ASDBENCH_CHECK(without_marks(plain) == plain, "marks go at once");
}

}  // namespace
}  // namespace asdbench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  asdbench::try_input(data, size);
  return 0;
}
