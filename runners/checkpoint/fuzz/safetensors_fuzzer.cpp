// Feeds arbitrary bytes to the safetensors reader, and objects to the reader of config.json.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/hf_config.h"
#include "runners/checkpoint/safetensors.h"

namespace {

void read_container(std::span<const std::byte> bytes) {
  const auto file = asdbench::SafetensorsFile::parse(bytes, "fuzz");
  for (const asdbench::SafetensorsEntry& entry : file.entries()) {
    const asdbench::Tensor tensor = file.weights(entry);
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    dequantise(tensor, values);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    if (size > 0 && data[0] == '{') {
      const std::string_view text(reinterpret_cast<const char*>(data), size);
      asdbench::read_hf_config(asdbench::parse_json(text), "fuzz");
    } else {
      read_container(std::as_bytes(std::span(data, size)));
    }
  } catch (const asdbench::ModelError&) {
    // What foreign bytes may cause here, and below for text that is no JSON.
  } catch (const asdbench::DataError&) {
  }
  return 0;
}
