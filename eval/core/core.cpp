// Names of the enumerators that are stored and printed, and field access with a useful error.
#include <fmt/format.h>

#include <array>

#include "eval/core/completion.h"
#include "eval/core/error.h"
#include "eval/core/sample.h"

namespace asdbench {

const std::string& Sample::field(std::string_view name) const {
  const auto found = fields.find(name);
  if (found == fields.end())
    throw DataError(fmt::format("sample {}: field \"{}\" is absent", id, name));
  return found->second;
}

std::string_view name_of(Role role) {
  static constexpr std::array<std::string_view, 3> kNames = {"system", "user", "assistant"};
  return kNames.at(static_cast<std::size_t>(role));
}

std::string_view name_of(Verdict verdict) {
  static constexpr std::array<std::string_view, 4> kNames = {"correct", "incorrect", "no_answer",
                                                             "unscored"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

std::string_view name_of(FinishReason reason) {
  static constexpr std::array<std::string_view, 4> kNames = {"eos", "stop_string", "length",
                                                             "context_limit"};
  return kNames.at(static_cast<std::size_t>(reason));
}

std::string describe_blocked_by(std::uint8_t flags) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "gate", "cap", "budget", "headroom", "eos_guard", "strict", "strict_head"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if ((flags >> i & 1) == 0) continue;
    if (!text.empty()) text += ',';
    text += kNames[i];
  }
  return text;
}

}  // namespace asdbench
