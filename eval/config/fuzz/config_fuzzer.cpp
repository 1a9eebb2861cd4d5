// Any bytes are a configuration or a ConfigError; the first line may be an override.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/config/run_config.h"
#include "eval/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using asdbench::ConfigError;
  using asdbench::KnownNames;
  using asdbench::Override;
  static const KnownNames kKnown = {.tasks = {"gsm8k"},
                                    .targets = {"toy"},
                                    .drafters = {"ngram", "none"},
                                    .verifiers = {"asd", "strict"}};
  std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<Override> overrides;
  constexpr std::string_view kMark = "#set ";
  if (text.starts_with(kMark)) {
    const std::string line = text.substr(kMark.size(), text.find('\n') - kMark.size());
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) {
      overrides.push_back({line.substr(0, equals), line.substr(equals + 1)});
    }
  }
  try {
    expand(parse_config(text, "fuzz.yaml", kKnown, overrides));
  } catch (const ConfigError&) {
    // what bad input is to end in
  }
  try {
    parse_train_config(text, "fuzz.yaml", kKnown, overrides);
  } catch (const ConfigError&) {
    // likewise
  }
  return 0;
}
