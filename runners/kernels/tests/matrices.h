// Random weights in the layouts of files, and their values by the formulas of
// specs/targets.md 10.5.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runners/kernels/half.h"
#include "runners/kernels/linear.h"

namespace asdbench::kernels::testing {

inline constexpr WeightFormat kAllFormats[] = {
    WeightFormat::kF32,  WeightFormat::kF16,  WeightFormat::kBf16, WeightFormat::kQ8_0,
    WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ5_0, WeightFormat::kQ5_1};

inline constexpr ActivationType kAllActivations[] = {ActivationType::kFloat32,
                                                     ActivationType::kBf16, ActivationType::kInt8};

struct StoredMatrix {
  WeightFormat format;
  std::int64_t outputs;
  std::int64_t inputs;
  std::vector<std::byte> bytes;
  std::vector<float> values;  // [outputs, inputs], dequantised

  PackedMatrix packed(Isa isa) const {
    return PackedMatrix::pack(format, outputs, inputs, bytes, isa);
  }
};

/// `inputs` must be a multiple of 32 for the Q formats.
inline StoredMatrix random_matrix(WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                                  std::uint32_t seed) {
  StoredMatrix matrix{format, outputs, inputs, {}, {}};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-0.25f, 0.25f);
  const auto append = [&](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    matrix.bytes.insert(matrix.bytes.end(), bytes, bytes + size);
  };
  const auto append_half = [&](float value) {
    const std::uint16_t half = float_to_half(value);
    append(&half, 2);
    return half_to_float(half);
  };
  for (std::int64_t i = 0; i < outputs * inputs; i += block_inputs(format)) {
    switch (format) {
      case WeightFormat::kF32: {
        const float value = uniform(random);
        append(&value, 4);
        matrix.values.push_back(value);
        break;
      }
      case WeightFormat::kF16:
        matrix.values.push_back(append_half(uniform(random)));
        break;
      case WeightFormat::kBf16: {
        const std::uint16_t half = float_to_bf16(uniform(random));
        append(&half, 2);
        matrix.values.push_back(bf16_to_float(half));
        break;
      }
      case WeightFormat::kQ8_0: {
        const float d = append_half(uniform(random) / 100);
        for (int j = 0; j < 32; ++j) {
          const auto q = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
          append(&q, 1);
          matrix.values.push_back(static_cast<float>(q) * d);
        }
        break;
      }
      default: {
        const bool offset = format == WeightFormat::kQ4_1 || format == WeightFormat::kQ5_1;
        const bool five = format == WeightFormat::kQ5_0 || format == WeightFormat::kQ5_1;
        const float d = append_half(uniform(random) / 10);
        const float m = offset ? append_half(uniform(random)) : 0.0f;
        const std::uint32_t high = five ? static_cast<std::uint32_t>(random()) : 0;
        if (five) append(&high, 4);
        std::uint8_t q[16];
        for (std::uint8_t& byte : q) byte = static_cast<std::uint8_t>(random());
        append(q, 16);
        for (int j = 0; j < 32; ++j) {
          int integer = j < 16 ? q[j] & 15 : q[j - 16] >> 4;
          integer |= static_cast<int>((high >> j) & 1u) << 4;
          if (!offset) integer -= five ? 16 : 8;
          matrix.values.push_back(static_cast<float>(integer) * d + m);
        }
      }
    }
  }
  return matrix;
}

inline std::vector<float> random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

/// A row of activations rounded to `type` by its definition (activation_type.h).
inline std::vector<float> rounded_row(std::vector<float> row, ActivationType type) {
  if (type == ActivationType::kBf16) {
    for (float& value : row) value = bf16_to_float(float_to_bf16(value));
  }
  if (type == ActivationType::kInt8) {
    for (std::size_t begin = 0; begin < row.size(); begin += 32) {
      const std::size_t end = std::min(begin + 32, row.size());
      float largest = 0.0f;
      for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(row[i]));
      if (largest == 0.0f) continue;
      for (std::size_t i = begin; i < end; ++i) {
        row[i] = std::nearbyint(row[i] * (127.0f / largest)) * (largest / 127.0f);
      }
    }
  }
  return row;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace asdbench::kernels::testing
