// Any bytes as a reply to a coding task: candidates are found without an exception, and each of
// them is part of what it is said to be.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/code_reply.h"

namespace asdbench {
namespace {

void try_input(const std::uint8_t* data, std::size_t size) {
  const std::string_view reply(reinterpret_cast<const char*>(data), size);
  const FencedText fenced = split_fences(reply);
  ASDBENCH_CHECK(reply.starts_with(fenced.before), "before the first fence");
  for (const Bodies bodies : {Bodies::kNone, Bodies::kAllowed}) {
    const CodeCandidates found = code_candidates(reply, "f", bodies);
    for (const std::string& block : found.blocks) ASDBENCH_CHECK(defines(block, "f"), block);
    ASDBENCH_CHECK(found.outside.empty() || defines(found.outside, "f"), found.outside);
    ASDBENCH_CHECK(bodies == Bodies::kAllowed || found.bodies.empty(), "no bodies were asked for");
  }
  ASDBENCH_CHECK(reply.starts_with(preamble_of(reply, "f")), "a preamble");
}

}  // namespace
}  // namespace asdbench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  asdbench::try_input(data, size);
  return 0;
}
