// Distils a small drafter for a target from the target's own greedy replies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "eval/core/params.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/train/corpus.h"

namespace asdbench {

/// The `train` section of a configuration.
struct TrainOptions {
  std::string name;              // of the drafter
  std::uint64_t seed = 0;        // order of the replies, and every initial weight
  std::int64_t steps = 0;        // updates
  std::int64_t step_tokens = 0;  // reply ids an update is computed from, at least
  double learning_rate = 0;      // after warm-up; falls to a twentieth by half a cosine
  std::int64_t warmup = 0;       // steps
  double clip = 0;               // largest norm of a gradient
  double weight_decay = 0;
  std::int64_t evaluate_every = 0;    // steps
  std::int64_t checkpoint_every = 0;  // steps
  std::int32_t threads = 1;           // 1 or 2; a part of the result, as other sums are rounded
  std::string compute;                // float32 | bfloat16, of matrix products
  std::int32_t drafts = 0;            // K of the predicted acceptance
};

/// ConfigError for values that are out of range and keys that nobody reads. `steps` overrides the
/// configuration's.
TrainOptions read_train_options(const Params& params, std::optional<std::int64_t> steps);

/// Kinds of drafters that can be trained, sorted.
std::vector<std::string> trainable_drafters();

/// Refuses options that `kind` cannot be trained with, and targets that it does not fit, before any
/// reply is made. ConfigError, ModelError.
void check_drafter_options(const std::string& kind, const Params& params,
                           const ModelConfig& target);

/// What would happen if the target verified this drafter's chains strictly on the held-out replies.
struct Acceptance {
  std::vector<double> position;   // [K] share of chains whose drafts 1 to j + 1 are all accepted
  std::vector<double> committed;  // [K] ids a pass commits when j + 1 are drafted
  std::int64_t replies = 0;
};

struct TrainProgress {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;               // mean since the last report
  double tokens_per_second = 0;  // reply ids trained on
  double seconds_left = 0;
  std::optional<Acceptance> held_out;  // when it was measured at this step
};

struct TrainCallbacks {
  std::function<void(const TrainProgress&)> progress;
  std::function<bool()> interrupted;
};

struct TrainInput {
  const Checkpoint& target;
  TapPlan taps;
  std::vector<Reply> train, held_out;
};

/// From this step on the learning rate was that of a training of so many steps.
struct PlannedSteps {
  std::int64_t from = 1;
  std::int64_t steps = 0;
};

struct TrainOutcome {
  bool interrupted = false;  // the state was saved; the same call goes on from it
  double first_loss = 0;     // mean of the first and of the last tenth of the steps of this call
  double last_loss = 0;
  std::vector<PlannedSteps> schedule;  // one entry, unless it was resumed with another number
  Acceptance held_out;
};

/// Trains `kind` with the sizes in `params` and writes config.json and the weights, in the layout
/// its authors released, into `folder`. The state is kept in `folder`/training.safetensors while it
/// runs: a later call with the same arguments goes on from there and ends with the same bits; one
/// with another number of steps goes on too, and the outcome says so.
///
/// Errors:  ConfigError, DataError (a state of other arguments, a disk that is full), ModelError (a
///          target that this kind of drafter does not fit).
/// Source:  specs, drafters, sections 2, 4 and 6.
TrainOutcome train_drafter(const std::string& kind, const Params& params, const TrainInput& input,
                           const TrainOptions& options, const std::filesystem::path& folder,
                           const TrainCallbacks& callbacks);

}  // namespace asdbench
