// Where a test body runs: each CPU instruction set, or a CUDA device.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "runners/kernels/isa.h"
#include "runners/kernels/score_rows.h"

namespace asdbench::kernels::testing {

/// Host copies of the arrays of RowScores.
struct HostScores {
  std::vector<TokenId> choice;
  std::vector<float> choice_logit;
  std::vector<float> runner_up;
  std::vector<float> draft_logit;
  std::vector<std::uint8_t> bad;
};

struct Backend {
  std::string name;
  Isa isa = Isa::kPlain;  // of the CPU backends
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

/// What this test program runs its bodies on; never empty.
std::vector<Backend> backends();

/// score_rows over [draft.size(), vocab] logits that start `offset` floats past an aligned address.
HostScores score_rows_on(const Backend& backend, const std::vector<float>& logits,
                         const std::vector<TokenId>& draft, std::int64_t vocab, MaskedVocab masked,
                         int offset);

}  // namespace asdbench::kernels::testing
