// A drafter's checkpoint, opened and fitted to the target that it drafts for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/params.h"
#include "runners/checkpoint/drafter_checkpoint.h"
#include "runners/drafter.h"
#include "runners/kernels/weight_format.h"
#include "runners/models/engine.h"

namespace asdbench {

struct FittedDrafter {
  std::unique_ptr<DrafterCheckpoint> checkpoint;
  ModelConfig sizes;               // the checkpoint's, with the overrides of the options
  std::vector<std::int64_t> taps;  // R[k] that it reads; none for Medusa
  CheckpointTarget* target = nullptr;
  /// What its own matrices are rounded to when our kernels pack them; none: as stored.
  std::optional<kernels::WeightFormat> weights;

  /// name, sha256 and positions.
  DrafterInfo info() const;
};

/// Opens the folder that the option `path` names, or the shipped drafter of that name, and checks
/// it against the target of `context`.
///
/// Options: path; weights (stored, q8_0 or q4_0: fewer bytes to read for each draft, on our CPU
///          kernels only); rope_theta (of the drafter), taps (R indices, such as "2,14,25"):
///          overrides for files whose configuration is known to be wrong (specs: drafters, section
///          10).
/// Errors:  ConfigError for options and for a target without hidden states; ModelError.
FittedDrafter open_fitted(const Params& params, const DrafterContext& context, DraftMethod method);

/// Reads pickled weights where this build can; else empty.
PickleReader pickle_reader();

}  // namespace asdbench
