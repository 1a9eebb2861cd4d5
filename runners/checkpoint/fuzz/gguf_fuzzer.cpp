// Feeds arbitrary bytes to the GGUF container reader and to the model on top of it.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runners/checkpoint/checkpoint_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using asdbench::GgufFile;
  using asdbench::GgufTensor;
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    GgufFile file = GgufFile::parse(bytes, "fuzz");
    for (const GgufTensor& each : file.tensors()) {
      std::vector<float> values(static_cast<std::size_t>(each.tensor.elements()));
      dequantise(each.tensor, values);
    }
    const auto checkpoint = asdbench::checkpoint_of_gguf(std::move(file), "fuzz");
    asdbench::describe_checkpoint(*checkpoint);
    for (const auto& [name, tensor] : checkpoint->tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      checkpoint->read(name, values);
    }
  } catch (const asdbench::ModelError&) {
    // The only way out that foreign bytes may cause.
  }
  return 0;
}
