// Element types and their exact conversion to float32 (specs: targets, section 10.5).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/checkpoint_internal.h"

static_assert(std::endian::native == std::endian::little, "model files are little-endian");

namespace asdbench {
namespace {

using Byte = std::uint8_t;

struct TypeRow {
  WeightType type;
  std::string_view name;
  BlockSize block;
};

constexpr std::array<TypeRow, 11> kTypes = {{
    {WeightType::kF32, "F32", {1, 4}},
    {WeightType::kF16, "F16", {1, 2}},
    {WeightType::kBF16, "BF16", {1, 2}},
    {WeightType::kQ4_0, "Q4_0", {32, 18}},
    {WeightType::kQ4_1, "Q4_1", {32, 20}},
    {WeightType::kQ5_0, "Q5_0", {32, 22}},
    {WeightType::kQ5_1, "Q5_1", {32, 24}},
    {WeightType::kQ8_0, "Q8_0", {32, 34}},
    {WeightType::kQ4_K, "Q4_K", {256, 144}},
    {WeightType::kQ5_K, "Q5_K", {256, 176}},
    {WeightType::kQ6_K, "Q6_K", {256, 210}},
}};

const TypeRow& row_of(WeightType type) {
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(),
                                 [type](const TypeRow& each) { return each.type == type; });
  ASDBENCH_CHECK(row != kTypes.end(),
                 fmt::format("weight type {}", static_cast<std::int32_t>(type)));
  return *row;
}

template <typename T>
T load(const Byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Exact for every bit pattern; NaN payloads are kept, which hardware conversions do not promise.
float widen_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31U;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, which float32 holds exactly
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float half_at(const Byte* at) { return widen_half(load<std::uint16_t>(at)); }

int low(Byte byte) { return byte & 15; }
int high(Byte byte) { return byte >> 4; }

void q4_0(const Byte* block, float* y) {
  const float d = half_at(block);
  const Byte* q = block + 2;
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(low(q[j]) - 8) * d;
    y[j + 16] = static_cast<float>(high(q[j]) - 8) * d;
  }
}

void q4_1(const Byte* block, float* y) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const Byte* q = block + 4;
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(low(q[j])) * d + m;
    y[j + 16] = static_cast<float>(high(q[j])) * d + m;
  }
}

int fifth_bit(std::uint32_t bits, int index) { return static_cast<int>((bits >> index) & 1U) << 4; }

void q5_0(const Byte* block, float* y) {
  const float d = half_at(block);
  const auto bits = load<std::uint32_t>(block + 2);
  const Byte* q = block + 6;
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>((low(q[j]) | fifth_bit(bits, j)) - 16) * d;
    y[j + 16] = static_cast<float>((high(q[j]) | fifth_bit(bits, j + 16)) - 16) * d;
  }
}

void q5_1(const Byte* block, float* y) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const auto bits = load<std::uint32_t>(block + 4);
  const Byte* q = block + 8;
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(low(q[j]) | fifth_bit(bits, j)) * d + m;
    y[j + 16] = static_cast<float>(high(q[j]) | fifth_bit(bits, j + 16)) * d + m;
  }
}

void q8_0(const Byte* block, float* y) {
  const float d = half_at(block);
  for (int j = 0; j < 32; ++j) {
    y[j] = static_cast<float>(static_cast<std::int8_t>(block[2 + j])) * d;
  }
}

// Six-bit scale and minimum of sub-block t = 0..7, packed into s[12].
int scale_k(const Byte* s, int t) {
  return t < 4 ? s[t] & 63 : (s[t + 4] & 15) | ((s[t - 4] >> 6) << 4);
}
int minimum_k(const Byte* s, int t) {
  return t < 4 ? s[t + 4] & 63 : (s[t + 4] >> 4) | ((s[t] >> 6) << 4);
}

// `fifth` [32] holds one more bit for each of eight sub-blocks, or is null (Q4_K).
void q45_k(const Byte* block, const Byte* fifth, const Byte* q, float* y) {
  const float d = half_at(block);
  const float e = half_at(block + 2);
  const Byte* s = block + 4;
  for (int t = 0; t < 8; ++t, y += 32) {
    const float scale = d * static_cast<float>(scale_k(s, t));
    const float minimum = e * static_cast<float>(minimum_k(s, t));
    const Byte* group = q + std::ptrdiff_t{32} * (t / 2);
    for (int l = 0; l < 32; ++l) {
      int value = t % 2 == 0 ? low(group[l]) : high(group[l]);
      if (fifth != nullptr) value |= ((fifth[l] >> t) & 1) << 4;
      y[l] = scale * static_cast<float>(value) - minimum;
    }
  }
}

void q4_k(const Byte* block, float* y) { q45_k(block, nullptr, block + 16, y); }
void q5_k(const Byte* block, float* y) { q45_k(block, block + 16, block + 48, y); }

void q6_k(const Byte* block, float* y) {
  const float d = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const Byte* ql = block + std::ptrdiff_t{64} * half;
    const Byte* qh = block + 128 + std::ptrdiff_t{32} * half;
    const Byte* sc = block + 192 + std::ptrdiff_t{8} * half;
    for (int l = 0; l < 32; ++l) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        const Byte packed = ql[l + 32 * (quarter % 2)];
        const int four_bits = quarter < 2 ? low(packed) : high(packed);
        const int two_bits = (qh[l] >> (2 * quarter)) & 3;
        const auto scale = static_cast<float>(static_cast<std::int8_t>(sc[l / 16 + 2 * quarter]));
        y[128 * half + 32 * quarter + l] =
            d * scale * static_cast<float>((four_bits | (two_bits << 4)) - 32);
      }
    }
  }
}

template <typename Convert>
void each_block(BlockSize size, std::span<const std::byte> bytes, std::span<float> out,
                Convert convert) {
  const auto* block = reinterpret_cast<const Byte*>(bytes.data());
  float* y = out.data();
  const float* end = y + out.size();
  for (; y != end; y += size.values, block += size.bytes) convert(block, y);
}

void convert(WeightType type, std::span<const std::byte> bytes, std::span<float> out) {
  const BlockSize size = block_size(type);
  const auto with = [&](auto convert_one) { each_block(size, bytes, out, convert_one); };
  switch (type) {
    case WeightType::kF32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size_bytes());
      return;
    case WeightType::kF16:
      return with([](const Byte* block, float* y) { *y = half_at(block); });
    case WeightType::kBF16:
      return with([](const Byte* block, float* y) {
        *y = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(block)) << 16);
      });
    case WeightType::kQ4_0:
      return with([](const Byte* block, float* y) { q4_0(block, y); });
    case WeightType::kQ4_1:
      return with([](const Byte* block, float* y) { q4_1(block, y); });
    case WeightType::kQ5_0:
      return with([](const Byte* block, float* y) { q5_0(block, y); });
    case WeightType::kQ5_1:
      return with([](const Byte* block, float* y) { q5_1(block, y); });
    case WeightType::kQ8_0:
      return with([](const Byte* block, float* y) { q8_0(block, y); });
    case WeightType::kQ4_K:
      return with([](const Byte* block, float* y) { q4_k(block, y); });
    case WeightType::kQ5_K:
      return with([](const Byte* block, float* y) { q5_k(block, y); });
    case WeightType::kQ6_K:
      return with([](const Byte* block, float* y) { q6_k(block, y); });
  }
}

}  // namespace

std::string_view name_of(WeightType type) { return row_of(type).name; }

BlockSize block_size(WeightType type) { return row_of(type).block; }

std::optional<WeightType> weight_type_of_id(std::int32_t id) {
  for (const TypeRow& row : kTypes) {
    if (static_cast<std::int32_t>(row.type) == id) return row.type;
  }
  return std::nullopt;
}

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

namespace {

// The exponent of a NaN or an infinity is all ones.
template <typename Bits>
bool no_full_exponent(std::span<const std::byte> bytes, Bits exponent) {
  bool full = false;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    full |= (load<Bits>(reinterpret_cast<const Byte*>(bytes.data()) + at) & exponent) == exponent;
  }
  return !full;
}

}  // namespace

bool all_finite(const Tensor& tensor) {
  switch (tensor.type) {
    case WeightType::kF32:
      return no_full_exponent<std::uint32_t>(tensor.bytes, 0x7f80'0000U);
    case WeightType::kBF16:
      return no_full_exponent<std::uint16_t>(tensor.bytes, 0x7f80U);
    case WeightType::kF16:
      return no_full_exponent<std::uint16_t>(tensor.bytes, 0x7c00U);
    default:
      return true;
  }
}

void dequantise(const Tensor& tensor, std::span<float> out) {
  ASDBENCH_CHECK(static_cast<std::int64_t>(out.size()) == tensor.elements(),
                 fmt::format("{} values into {}", tensor.elements(), out.size()));
  convert(tensor.type, tensor.bytes, out);
}

void dequantise_rows(const Tensor& tensor, std::int64_t first, std::int64_t count,
                     std::span<float> out) {
  ASDBENCH_CHECK(tensor.shape.size() == 2, fmt::format("rank {}", tensor.shape.size()));
  const std::int64_t rows = tensor.shape[0];
  const std::int64_t columns = tensor.shape[1];
  ASDBENCH_CHECK(first >= 0 && count >= 0 && first <= rows && count <= rows - first,
                 fmt::format("rows [{}, +{}) of {}", first, count, rows));
  ASDBENCH_CHECK(static_cast<std::int64_t>(out.size()) == count * columns,
                 fmt::format("{} x {} values into {}", count, columns, out.size()));
  const BlockSize block = block_size(tensor.type);
  const auto row_bytes = static_cast<std::size_t>(columns / block.values * block.bytes);
  convert(tensor.type,
          tensor.bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                               static_cast<std::size_t>(count) * row_bytes),
          out);
}

}  // namespace asdbench
