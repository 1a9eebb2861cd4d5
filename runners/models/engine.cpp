// Checks that engines share.
#include "runners/models/engine.h"

#include <fmt/format.h>

#include "eval/core/error.h"

namespace asdbench {

void check_selection(const HiddenSelection& selection, const ModelConfig& config,
                     const std::string& target) {
  for (const std::int64_t tap : selection.taps) {
    if (tap >= 0 && tap <= config.layers) continue;
    throw ConfigError(fmt::format("{}: hidden state R[{}] was asked for, expected 0 to {}", target,
                                  tap, config.layers));
  }
}

}  // namespace asdbench
