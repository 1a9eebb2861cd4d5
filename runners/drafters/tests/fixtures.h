// Drafters of the shared fixtures with the targets that they were made for.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/drafter.h"
#include "runners/models/native_transformer.h"
#ifdef ASDBENCH_TORCH_ENGINE
#include "runners/models/torch_transformer.h"
#endif

namespace asdbench::testing_support {

using DraftOptions = std::vector<std::pair<std::string, std::string>>;

inline std::filesystem::path drafter_data() { return "runners/drafters/tests/data"; }

/// Each kind and layout once.
inline std::vector<std::string> drafter_fixtures() {
  return {"eagle3_safeailab_reduced",
          "eagle3_safeailab_full_bf16",
          "eagle3_deepspec",
          "dspark_trained",
          "dspark_random_bf16",
          "dflash_deepspec",
          "dflash_zlab",
          "dflash_zlab_default_taps_bf16",
          "medusa_v1",
          "medusa_v2_shared_head",
          "medusa_full_model",
          "medusa_vllm"};
}

inline Json golden_of(const std::string& fixture) {
  std::ifstream file(drafter_data() / fixture / "golden.json", std::ios::binary);
  return parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
}

inline std::unique_ptr<Target> fixture_target(const std::filesystem::path& folder,
                                              const std::string& engine = "native") {
  const auto checkpoint = open_checkpoint(folder);
  EngineOptions options;
  options.device = "cpu";
  options.threads = 1;
  TargetInfo info;
  info.name = folder.filename().string();
#ifdef ASDBENCH_TORCH_ENGINE
  if (engine == "torch") return make_torch_transformer(*checkpoint, info, options).target;
#endif
  if (engine != "native") throw InternalError("no engine " + engine);
  return make_native_transformer(*checkpoint, info, options).target;
}

inline std::unique_ptr<Drafter> fixture_drafter(const std::string& method,
                                                const std::filesystem::path& folder, Target& target,
                                                const DraftOptions& options = {}) {
  Params params(method, {.file = "study.yaml", .line = 3});
  params.set("path", folder.string(), {});
  for (const auto& [key, value] : options) params.set(key, value, {});
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name != method) continue;
    auto drafter = factory.make(params, {target});
    params.refuse_unread();
    return drafter;
  }
  throw InternalError("no drafter " + method);
}

struct DrafterFixture {
  std::string name;
  std::unique_ptr<Target> target;
  std::unique_ptr<Drafter> drafter;
};

inline DrafterFixture open_fixture(const std::string& name, const DraftOptions& options = {},
                                   const std::string& engine = "native") {
  const Json golden = golden_of(name);
  const auto folder = drafter_data() / name;
  DrafterFixture fixture{name, nullptr, nullptr};
  fixture.target = fixture_target(folder / golden.at("target").get<std::string>(), engine);
  fixture.drafter = fixture_drafter(golden.at("kind"), folder, *fixture.target, options);
  return fixture;
}

}  // namespace asdbench::testing_support
