// Finds, opens and checks the checkpoint of a drafter.
#include "runners/drafters/common/fitted_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"
#include "runners/models/native_transformer.h"

#ifdef ASDBENCH_TORCH_ENGINE
#include "runners/drafters/common/pickle.h"
#endif

namespace asdbench {
namespace {

namespace fs = std::filesystem;

fs::path find_folder(const Params& params, const DrafterContext& context) {
  fs::path path = params.text("path");
  if (fs::exists(path) || context.shipped.empty()) return path;
  fs::path shipped = context.shipped / path;
  return fs::exists(shipped) ? shipped : path;
}

/// "2,14,25".
std::vector<std::int64_t> parse_taps(const Params& params, const std::string& text) {
  std::vector<std::int64_t> taps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto tap = parse_integer(text.substr(at, end - at));
    if (!tap)
      params.fail("taps", fmt::format("taps: \"{}\"; expected R indices: \"2,14,25\"", text));
    taps.push_back(*tap);
    at = end + 1;
  }
  return taps;
}

void override_taps(const Params& params, const CheckpointTarget& target, FittedDrafter& fitted) {
  const std::string text = params.text("taps", "");
  if (text.empty()) return;
  const std::vector<std::int64_t> taps = parse_taps(params, text);
  const std::int64_t layers = target.config().layers;
  for (const std::int64_t tap : taps) {
    if (tap < 0 || tap > layers) {
      params.fail("taps", fmt::format("taps: R[{}]; expected 0 to {}", tap, layers));
    }
  }
  if (taps.size() != fitted.taps.size()) {
    params.fail("taps", fmt::format("taps: {} indices; this drafter reads {}", taps.size(),
                                    fitted.taps.size()));
  }
  fitted.taps = taps;
}

/// The option `weights`.
std::optional<kernels::WeightFormat> read_weights(const Params& params,
                                                  const CheckpointTarget& target) {
  const std::string name = params.choice("weights", "stored", {"stored", "q8_0", "q4_0"});
  if (name == "stored") return std::nullopt;
  if (dynamic_cast<const NativeTarget*>(&target) == nullptr) {
    params.fail("weights",
                fmt::format("weights: {} is a type of our CPU kernels, and target {} runs on "
                            "libtorch; expected stored, or a target with engine: native",
                            name, target.info().name));
  }
  return name == "q8_0" ? kernels::WeightFormat::kQ8_0 : kernels::WeightFormat::kQ4_0;
}

}  // namespace

DrafterInfo FittedDrafter::info() const {
  DrafterInfo info;
  info.name = name_of(checkpoint->drafter().method);
  info.sha256 = sha256_of_checkpoint(checkpoint->path());
  // A file without a limit has the largest count there is.
  constexpr std::int64_t kNoLimit = 0x7fffffff;
  if (sizes.positions < kNoLimit) info.positions = sizes.positions;
  info.has_law = true;
  return info;
}

FittedDrafter open_fitted(const Params& params, const DrafterContext& context, DraftMethod method) {
  FittedDrafter fitted;
  fitted.target = dynamic_cast<CheckpointTarget*>(&context.target);
  if (fitted.target == nullptr) {
    throw ConfigError(
        fmt::format("{}: drafter {} reads hidden states, and target {} has none\n  use a model's "
                    "file or folder "
                    "as the target, or the drafter ngram",
                    params.where().text(), name_of(method), context.target.info().name));
  }
  const fs::path folder = find_folder(params, context);
  fitted.checkpoint = open_drafter(folder, pickle_reader());
  const DraftMethod found = fitted.checkpoint->drafter().method;
  if (found != method) {
    params.fail("path", fmt::format("{} holds a drafter of kind {}; write {}: {{path: ...}}",
                                    folder.string(), name_of(found), name_of(found)));
  }
  fitted.taps = fit_drafter(*fitted.checkpoint, fitted.target->config());
  refuse_nonfinite(*fitted.checkpoint);
  fitted.sizes = fitted.checkpoint->config();
  if (method != DraftMethod::kMedusa) {
    override_taps(params, *fitted.target, fitted);
    fitted.sizes.rope_theta = params.number("rope_theta", fitted.sizes.rope_theta, 1, 1e12);
  }
  fitted.weights = read_weights(params, *fitted.target);
  for (const std::string& warning : fitted.checkpoint->warnings()) context.warn(warning);
  return fitted;
}

PickleReader pickle_reader() {
#ifdef ASDBENCH_TORCH_ENGINE
  return read_pickle;
#else
  return {};
#endif
}

}  // namespace asdbench
