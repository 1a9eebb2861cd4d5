// Feeds arbitrary bytes to the reader of a drafter's config.json.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/drafter_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const asdbench::Json json = asdbench::parse_json(text);
    asdbench::is_drafter_config(json);
    asdbench::read_drafter_config(json, "fuzz");
  } catch (const asdbench::ModelError&) {
    // What foreign bytes may cause here, and below for text that is no JSON.
  } catch (const asdbench::DataError&) {
  }
  return 0;
}
