// config.json of HF checkpoints, in the spellings of transformers 4 and 5; for this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "runners/checkpoint/checkpoint.h"

namespace asdbench {

/// Reads and checks a configuration (specs: targets, section 2). `tied_head` is what the file says;
/// whether the head is there is for the caller to see. `where` stands in messages.
/// Errors: ModelError kUnknownArch, kUnsupported, kBadConfig.
ModelConfig read_hf_config(const Json& json, const std::string& where);

/// `eos_token_id` of an object: one id or a list; nullopt when it is absent or null.
std::optional<std::vector<TokenId>> read_end_ids(const Json& json, const std::string& where);

}  // namespace asdbench
