// What activations are rounded to before they enter a linear layer.
#pragma once

#include <cstdint>
#include <string_view>

namespace asdbench::kernels {

/// Everything but kFloat32 trades accuracy for speed and must be named wherever results are.
enum class ActivationType : std::uint8_t {
  kFloat32,  // as they are
  kBf16,     // to the nearest bf16, ties to even
  kInt8,     // per 32 inputs: the nearest multiples of largest magnitude / 127
};

/// "float32", "bf16", "int8".
std::string_view name_of(ActivationType type);

}  // namespace asdbench::kernels
