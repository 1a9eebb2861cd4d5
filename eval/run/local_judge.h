// A target of ours as the judge.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "eval/core/params.h"
#include "eval/run/ask_queue.h"
#include "eval/run/experiment.h"

namespace asdbench {

/// Answers greedily, without a drafter; one at a time. `params`: the target's options.
/// ConfigError, ModelError, DeviceError.
std::unique_ptr<Judge> make_local_judge(const std::string& target, const Params& params,
                                        const Paths& paths, std::int64_t max_tokens,
                                        std::function<bool()> interrupted);

}  // namespace asdbench
