// Training in a build without libtorch: says so.
#include "eval/core/error.h"
#include "runners/train/train.h"

namespace asdbench {
namespace {

[[noreturn]] void fail() {
  throw ConfigError(
      "this build has no libtorch, which training needs\n  configure with "
      "-DASDBENCH_WITH_TORCH=ON");
}

}  // namespace

void check_drafter_options(const std::string& /*kind*/, const Params& /*params*/,
                           const ModelConfig& /*target*/) {
  fail();
}

TrainOutcome train_drafter(const std::string& /*kind*/, const Params& /*params*/,
                           const TrainInput& /*input*/, const TrainOptions& /*options*/,
                           const std::filesystem::path& /*folder*/,
                           const TrainCallbacks& /*callbacks*/) {
  fail();
}

}  // namespace asdbench
