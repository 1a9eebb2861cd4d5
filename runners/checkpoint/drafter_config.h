// config.json of drafters, in the spellings of their authors' releases; for this folder only.
#pragma once

#include <string>

#include "eval/core/json.h"
#include "runners/checkpoint/drafter_checkpoint.h"

namespace asdbench {

struct DrafterSettings {
  ModelConfig sizes;  // of its own layers; for Medusa only what the file says, else 0
  DrafterConfig drafter;
};

/// Reads and checks a configuration (specs: drafters, sections 2 to 6). What only tensors can tell
/// (q/k norms, heads of Medusa) is left for the caller.
/// Errors: ModelError kUnknownArch when it describes no drafter, kUnsupported, kBadConfig.
DrafterSettings read_drafter_config(const Json& json, const std::string& where);

/// Whether the keys are those of a drafter.
bool is_drafter_config(const Json& json);

}  // namespace asdbench
