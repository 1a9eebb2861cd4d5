// Runs the bodies on every instruction set that this CPU has.
#include <algorithm>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/tests/backend.h"

namespace asdbench::kernels::testing {

std::vector<Backend> backends() {
  std::vector<Backend> all;
  for (const Isa isa : supported_isas()) all.push_back({std::string(name_of(isa)), isa});
  return all;
}

HostScores score_rows_on(const Backend& backend, const std::vector<float>& logits,
                         const std::vector<TokenId>& draft, std::int64_t vocab, MaskedVocab masked,
                         int offset) {
  // A heap buffer of the exact size, so that the address sanitizer sees a read past its end.
  std::vector<float> shifted(static_cast<std::size_t>(offset) + logits.size());
  std::copy(logits.begin(), logits.end(), shifted.begin() + offset);
  const std::size_t rows = draft.size();
  HostScores out{std::vector<TokenId>(rows, -77), std::vector<float>(rows, -77.0f),
                 std::vector<float>(rows, -77.0f), std::vector<float>(rows, -77.0f),
                 std::vector<std::uint8_t>(rows, 77)};
  cpu_kernels(backend.isa)
      .score_rows(shifted.data() + offset, draft.data(), static_cast<std::int64_t>(rows), vocab,
                  masked,
                  {out.choice.data(), out.choice_logit.data(), out.runner_up.data(),
                   out.draft_logit.data(), out.bad.data()});
  return out;
}

}  // namespace asdbench::kernels::testing
