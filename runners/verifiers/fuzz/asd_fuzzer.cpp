// The rule against its enumeration: the same bytes, both answers, an abort when they differ.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>

#include "runners/cut.h"
#include "runners/verifiers/common/score_block.h"
#include "runners/verifiers/tests/asd_reference.h"

namespace asdbench {
namespace {

// Turns bytes into choices; zeros when they run out.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t next() {
    if (at_ == bytes_.size()) return 0;
    return bytes_[at_++];
  }
  template <std::size_t N>
  double pick(const double (&values)[N]) {
    return values[next() % N];
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void require(bool ok) {
  if (!ok) std::abort();  // layers-allow: a fuzz target reports by dying
}

void try_input(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  AsdControls controls;
  controls.regret_budget = bytes.pick({0, 1.0 / 64, 0.125, 0.25, 0.5, 1, 8, kInfinity, -1, kNan});
  controls.gate = bytes.pick({0, 1.0 / 64, 1.0 / 16, 0.125, 0.25, 1, kInfinity, -1, kNan});
  controls.max_exceptions = bytes.pick({0, 1, 2, 3, kInfinity, 0.5, -1, kNan});
  double spent = bytes.pick({0, 0, 0.25, 0.5, 1, 1.25, -1, kNan});
  if (controls.regret_budget > 0 && controls.regret_budget < kInfinity)
    spent *= controls.regret_budget;
  const std::uint8_t flags = bytes.next();
  controls.tie_policy = (flags & 1) != 0 ? TiePolicy::kLiteral : TiePolicy::kHeadroom;
  controls.value_scheme =
      (flags & 2) != 0 ? ValueScheme::kNormalisedSuffix : ValueScheme::kSuffixLength;
  controls.allow_early_eos = (flags & 4) != 0;
  controls.allow_skip_eos = (flags & 8) != 0;
  controls.masked_vocab = (flags & 16) != 0;
  controls.strict_head = (flags & 32) != 0 ? bytes.next() % 16 : 0;

  reference::RawBlock raw;
  raw.vocab = 2 + bytes.next() % 6;
  raw.output_position = bytes.next() % 16;
  const std::int32_t drafts = bytes.next() % 10;
  for (TokenId id = 0; id < raw.vocab; ++id) {
    if (bytes.next() % 8 == 1) raw.end_ids.push_back(id);
  }
  for (std::int32_t i = 0; i < drafts; ++i) {
    const std::uint8_t byte = bytes.next();  // rarely outside the vocabulary
    raw.draft.push_back(byte == 255 ? -1
                                    : static_cast<TokenId>(byte % (raw.vocab + (byte == 254))));
  }
  for (std::int64_t i = 0; i < (drafts + 1) * raw.vocab; ++i) {
    const std::uint8_t byte = bytes.next();
    const double special = byte == 255 ? kNan : byte == 254 ? kInfinity : -kInfinity;
    raw.logits.push_back(static_cast<float>(byte >= 252 ? special : (byte - 100) / 64.0));
  }

  const LogitsView logits{raw.logits.data(), drafts + 1, raw.vocab};
  const BlockScores scores(logits, raw.draft, controls.masked_vocab ? Masked::kYes : Masked::kNo);
  const StopRule stop{.end_ids = raw.end_ids};
  const Block block{.draft = raw.draft,
                    .scores = scores.view(),
                    .target = logits,
                    .draft_logits = std::nullopt,
                    .stop = stop,
                    .output_position = raw.output_position};
  const auto fault = reference::fault_of(controls, raw, spent);
  try {
    const Decision decision = decide_asd(controls, block, spent);
    require(!fault);
    require(decision.accepted == reference::accepted_by_enumeration(controls, raw, spent));
    require(decision.target_token == raw.choice(decision.accepted));
    if (decision.accepted < drafts) {
      require(decision.blocked_by ==
              reference::broken_by(controls, raw, spent, decision.accepted + 1));
    }
    const Kept kept = cut(block, decision);
    require(spent + kept.block_regret <= controls.regret_budget);
    require(kept.committed() >= 1 && kept.committed() <= drafts + 1);
  } catch (const BlockError& error) {
    require(fault == error.fault());
  }
}

}  // namespace
}  // namespace asdbench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  asdbench::try_input(data, size);
  return 0;
}
