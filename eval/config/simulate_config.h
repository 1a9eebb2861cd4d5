// The configuration of `asdbench simulate`: single values, and lists of which every combination is
// drawn.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "eval/config/run_config.h"
#include "eval/core/params.h"

namespace asdbench {

struct SimulateConfig {
  std::filesystem::path file;
  Params options;                                    // single values
  std::map<std::string, std::vector<double>> lists;  // name -> values, at least one each
};

/// A map `simulate` of values and lists of numbers. ConfigError with file, line and key.
SimulateConfig read_simulate_config(const std::filesystem::path& file,
                                    const std::vector<Override>& overrides = {});
SimulateConfig parse_simulate_config(const std::string& text, const std::filesystem::path& file,
                                     const std::vector<Override>& overrides = {});

}  // namespace asdbench
