// Values from the command line written into a configuration's tree before it is read.
#pragma once

#include <string>

#include "eval/config/yaml_tree.h"

namespace asdbench {

/// Sets the value at `key` ("speed.groups", "matrix.task[0].gsm8k.limit"), making the maps on the
/// way. A bare name in a list ("gsm8k") becomes the same name with options. ConfigError that names
/// the key.
void apply_override(YamlNode& root, const std::string& key, const std::string& value);

}  // namespace asdbench
