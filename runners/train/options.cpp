// The `train` section of a configuration.
#include <limits>

#include "eval/core/error.h"
#include "runners/train/train.h"

namespace asdbench {

TrainOptions read_train_options(const Params& params, std::optional<std::int64_t> steps) {
  constexpr std::int64_t kMany = 1'000'000'000;
  TrainOptions options;
  options.name = params.text("name");
  if (options.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") !=
          std::string::npos ||
      options.name.front() == '.') {
    params.fail("name", shown(options.name) +
                            " names a folder; expected a-z, 0-9, '-', '_' and '.', not first");
  }
  options.seed = static_cast<std::uint64_t>(
      params.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.steps = steps.value_or(params.integer("steps", 1000, 1, kMany));
  options.step_tokens = params.integer("step_tokens", 1024, 1, 1 << 20);
  options.learning_rate = params.number("learning_rate", 1e-3, 1e-9, 1);
  options.warmup = params.integer("warmup", 50, 0, kMany);
  options.clip = params.number("clip", 1, 1e-6, 1e6);
  options.weight_decay = params.number("weight_decay", 0.01, 0, 1);
  options.evaluate_every = params.integer("evaluate_every", 250, 1, kMany);
  options.checkpoint_every = params.integer("checkpoint_every", 250, 1, kMany);
  options.threads = static_cast<std::int32_t>(params.integer("threads", 2, 1, 2));
  options.compute = params.choice("compute", "float32", {"float32", "bfloat16"});
  options.drafts = static_cast<std::int32_t>(params.integer("K", 5, 1, 16));
  params.refuse_unread();
  return options;
}

std::vector<std::string> trainable_drafters() { return {"dspark", "eagle3", "medusa"}; }

}  // namespace asdbench
