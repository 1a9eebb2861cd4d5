// Packing of weight matrices.
#include "runners/kernels/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/half.h"
#include "runners/kernels/panel_layout.h"
#include "runners/kernels/slab.h"

namespace asdbench::kernels {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;

std::uint16_t load_u16(const std::byte* from) {
  std::uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

std::uint32_t load_u32(const std::byte* from) {
  std::uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// The fifth bits of a block, from the file's order (bit i for input i) into the panel's.
std::uint32_t ordered_high_bits(std::uint32_t stored) {
  std::uint32_t ordered = 0;
  for (int input = 0; input < kBlock; ++input) {
    ordered |= ((stored >> input) & 1u) << fifth_bit(input);
  }
  return ordered;
}

/// The integers of a block of a Q4 or Q5 row: `bytes` after the scales, `high` the fifth bits.
int nibble(const std::byte* bytes, int input) {
  const auto byte = std::to_integer<int>(bytes[input % 16]);
  return input < 16 ? byte & 15 : byte >> 4;
}

/// The file's block of `values` [kBlock] in Q8_0 or Q4_0; false when a value is not finite or its
/// scale no finite float16.
bool round_block(WeightFormat format, const float* values, std::byte* block) {
  float largest = 0.0f;  // in magnitude
  for (int input = 0; input < kBlock; ++input) {
    if (!std::isfinite(values[input])) return false;
    if (std::fabs(values[input]) > std::fabs(largest)) largest = values[input];
  }
  const bool bytes = format == WeightFormat::kQ8_0;
  const std::uint16_t stored = float_to_half(bytes ? std::fabs(largest) / 127.0f : largest / -8.0f);
  const float scale = half_to_float(stored);
  if (!std::isfinite(scale)) return false;
  std::memcpy(block, &stored, sizeof stored);
  const auto integer = [&](int input, int least, int most) {
    if (scale == 0.0f) return 0;
    // The scale was rounded itself: the largest value may be a little beyond the last integer.
    return std::clamp(static_cast<int>(std::lround(values[input] / scale)), least, most);
  };
  for (int input = 0; input < (bytes ? kBlock : kBlock / 2); ++input) {
    block[2 + input] = static_cast<std::byte>(
        bytes ? integer(input, -127, 127)
              : (integer(input, -8, 7) + 8) | ((integer(input + kBlock / 2, -8, 7) + 8) << 4));
  }
  return true;
}

/// A row as a file stores it; false as round_block.
bool store_row(WeightFormat format, std::span<const float> values, std::byte* out) {
  const auto store_16 = [&](std::uint16_t (*narrow)(float)) {
    for (const float value : values) {
      const std::uint16_t bits = narrow(value);
      std::memcpy(out, &bits, sizeof bits);
      out += sizeof bits;
    }
    return true;
  };
  if (format == WeightFormat::kF16) return store_16(float_to_half);
  if (format == WeightFormat::kBf16) return store_16(float_to_bf16);
  if (format == WeightFormat::kF32) {
    std::memcpy(out, values.data(), values.size_bytes());
    return true;
  }
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    if (!round_block(format, values.data() + begin, out)) return false;
    out += block_bytes(format);
  }
  return true;
}

std::invalid_argument shape_error(const std::string& what, WeightFormat format,
                                  std::int64_t outputs, std::int64_t inputs) {
  return std::invalid_argument("weights " + std::string(name_of(format)) + " [" +
                               std::to_string(outputs) + ", " + std::to_string(inputs) +
                               "]: " + what);
}

void check_sizes(WeightFormat format, std::int64_t outputs, std::int64_t inputs) {
  if (outputs < 1 || inputs < 1 || outputs > kMaxSize || inputs > kMaxSize) {
    throw shape_error("each size must be from 1 to 2^31", format, outputs, inputs);
  }
}

/// For a source in whole blocks.
void check_shape(WeightFormat format, std::int64_t outputs, std::int64_t inputs) {
  check_sizes(format, outputs, inputs);
  if (inputs % block_inputs(format) != 0) {
    throw shape_error(
        "inputs must be a multiple of the block of " + std::to_string(block_inputs(format)), format,
        outputs, inputs);
  }
}

}  // namespace

std::string_view name_of(WeightFormat format) {
  constexpr std::string_view kNames[] = {"F32",  "F16",  "BF16", "Q8_0",
                                         "Q4_0", "Q4_1", "Q5_0", "Q5_1"};
  return kNames[static_cast<std::size_t>(format)];
}

int block_inputs(WeightFormat format) {
  return format == WeightFormat::kF32 || format == WeightFormat::kF16 ||
                 format == WeightFormat::kBf16
             ? 1
             : kBlock;
}

int block_bytes(WeightFormat format) {
  constexpr int kBytes[] = {4, 2, 2, 34, 18, 20, 22, 24};
  return kBytes[static_cast<std::size_t>(format)];
}

PackedMatrix::PackedMatrix(WeightFormat format, std::int64_t outputs, std::int64_t inputs, Isa isa)
    : format_(format),
      isa_(isa),
      outputs_(outputs),
      inputs_(inputs),
      panels_((outputs + kPanel - 1) / kPanel),
      // At most 2^31 / 32 blocks of 4 * 32 * 48 bytes: no overflow.
      panel_bytes_((inputs + kBlock - 1) / kBlock * panel_layout(format).bytes) {
  static_cast<void>(cpu_kernels(isa));  // refuses a set that this CPU lacks
  if (panel_bytes_ > std::numeric_limits<std::int64_t>::max() / panels_) throw std::bad_alloc();
  data_ = allocate_pages(static_cast<std::size_t>(panels_ * panel_bytes_));
}

PackedMatrix PackedMatrix::pack(WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                                std::span<const std::byte> source, Isa isa) {
  check_shape(format, outputs, inputs);
  const std::int64_t row_bytes = inputs / block_inputs(format) * block_bytes(format);
  if (row_bytes > std::numeric_limits<std::int64_t>::max() / outputs ||
      source.size() != static_cast<std::size_t>(row_bytes * outputs)) {
    throw shape_error("the source has " + std::to_string(source.size()) + " bytes, " +
                          std::to_string(row_bytes) + " per output are expected",
                      format, outputs, inputs);
  }
  PackedMatrix matrix(format, outputs, inputs, isa);
  for (std::int64_t output = 0; output < outputs; ++output) {
    matrix.pack_row(output, source.data() + output * row_bytes);
  }
  return matrix;
}

PackedMatrix PackedMatrix::from_rows(WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                                     const std::function<void(std::int64_t, std::span<float>)>& row,
                                     Isa isa) {
  if (is_quantised(format) && format != WeightFormat::kQ8_0 && format != WeightFormat::kQ4_0) {
    throw shape_error("only F32, F16, BF16, Q8_0 and Q4_0 are made from float32 rows", format,
                      outputs, inputs);
  }
  check_sizes(format, outputs, inputs);
  PackedMatrix matrix(format, outputs, inputs, isa);
  // The last block may be short: what is missing is zero.
  const std::int64_t blocks = (inputs + block_inputs(format) - 1) / block_inputs(format);
  std::vector<float> values(static_cast<std::size_t>(blocks * block_inputs(format)));
  std::vector<std::byte> stored(static_cast<std::size_t>(blocks * block_bytes(format)));
  for (std::int64_t output = 0; output < outputs; ++output) {
    row(output, std::span(values).first(static_cast<std::size_t>(inputs)));
    if (!store_row(format, values, stored.data())) {
      throw shape_error("row " + std::to_string(output) +
                            " has a value that is not finite, or a scale beyond float16",
                        format, outputs, inputs);
    }
    matrix.pack_row(output, stored.data());
  }
  return matrix;
}

void PackedMatrix::pack_row(std::int64_t output, const std::byte* source) {
  const PanelLayout layout = panel_layout(format_);
  const std::int64_t place = output % kPanel;
  std::byte* block = data_.get() + output / kPanel * panel_bytes_;
  const int width = block_inputs(format_) == 1 ? block_bytes(format_) : 0;  // of a plain value
  for (std::int64_t begin = 0; begin < inputs_; begin += kBlock, block += layout.bytes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kBlock, inputs_ - begin));
    if (width != 0) {
      for (int input = 0; input < count; ++input, source += width) {
        std::memcpy(block + (input * kPanel + place) * width, source,
                    static_cast<std::size_t>(width));
      }
      continue;
    }
    // The file's block: d, for _1 types m, for Q5 the fifth bits, then the integers.
    std::byte* scales = block + layout.scales;
    std::memcpy(scales + place * 2, source, 2);
    const std::byte* integers = source + 2;
    if (layout.has_offsets) {
      std::memcpy(scales + (kPanel + place) * 2, integers, 2);
      integers += 2;
    }
    if (layout.has_high_bits) {
      const std::uint32_t word = ordered_high_bits(load_u32(integers));
      std::memcpy(block + layout.high_bits + place * 4, &word, 4);
      integers += 4;
    }
    if (format_ == WeightFormat::kQ8_0) {
      for (int input = 0; input < kBlock; input += kWordBytes) {
        std::memcpy(block + (input / kWordBytes * kPanel + place) * kWordBytes, integers + input,
                    kWordBytes);
      }
    } else {
      for (int group = 0; group < kBlock / kNibbles; ++group) {
        std::uint32_t word = 0;
        for (int i = 0; i < kNibbles; ++i) {
          word |= static_cast<std::uint32_t>(nibble(integers, group * kNibbles + i)) << (4 * i);
        }
        std::memcpy(block + (group * kPanel + place) * 4, &word, 4);
      }
    }
    source += block_bytes(format_);
  }
}

PackedMatrix PackedMatrix::rows(std::span<const std::int32_t> outputs) const {
  check_sizes(format_, static_cast<std::int64_t>(outputs.size()), inputs_);
  const PanelLayout layout = panel_layout(format_);
  // A block is words of each place in turn, then scales of each place; or plain values.
  const int word_bytes = is_quantised(format_) ? kWordBytes : block_bytes(format_);
  const int words_end = is_quantised(format_) ? layout.scales : layout.bytes;
  PackedMatrix chosen(format_, static_cast<std::int64_t>(outputs.size()), inputs_, isa_);
  for (std::size_t to = 0; to < outputs.size(); ++to) {
    const std::int64_t from = outputs[to];
    if (from < 0 || from >= outputs_) {
      throw shape_error("row " + std::to_string(from), format_, outputs_, inputs_);
    }
    const auto row = static_cast<std::int64_t>(to);
    const std::byte* source = panel(from / kPanel);
    std::byte* target = chosen.data_.get() + row / kPanel * chosen.panel_bytes_;
    const auto copy = [&](int first, int end, int width) {
      for (int at = first; at < end; at += kPanel * width) {
        std::memcpy(target + at + row % kPanel * width, source + at + from % kPanel * width,
                    static_cast<std::size_t>(width));
      }
    };
    for (std::int64_t begin = 0; begin < inputs_; begin += kBlock) {
      copy(0, words_end, word_bytes);
      copy(words_end, layout.bytes, 2);
      source += layout.bytes;
      target += layout.bytes;
    }
  }
  return chosen;
}

void PackedMatrix::unpack_row(std::int64_t output, std::span<float> values) const {
  if (output < 0 || output >= outputs_ || values.size() != static_cast<std::size_t>(inputs_)) {
    throw shape_error(
        "row " + std::to_string(output) + " into " + std::to_string(values.size()) + " values",
        format_, outputs_, inputs_);
  }
  const PanelLayout layout = panel_layout(format_);
  const std::int64_t place = output % kPanel;
  const std::byte* block = panel(output / kPanel);
  for (std::int64_t input = 0; input < inputs_; ++input) {
    const auto in_block = static_cast<int>(input % kBlock);
    float& value = values[static_cast<std::size_t>(input)];
    const std::byte* plain = block + (in_block * kPanel + place) * block_bytes(format_);
    if (format_ == WeightFormat::kF32) {
      std::memcpy(&value, plain, 4);
    } else if (format_ == WeightFormat::kF16) {
      value = half_to_float(load_u16(plain));
    } else if (format_ == WeightFormat::kBf16) {
      value = bf16_to_float(load_u16(plain));
    } else {
      const std::byte* scales = block + layout.scales + place * 2;
      const float scale = half_to_float(load_u16(scales));
      if (format_ == WeightFormat::kQ8_0) {
        const std::byte stored =
            block[(in_block / kWordBytes * kPanel + place) * kWordBytes + in_block % kWordBytes];
        value = static_cast<float>(std::to_integer<std::int8_t>(stored)) * scale;
      } else {
        const std::uint32_t word = load_u32(block + (in_block / kNibbles * kPanel + place) * 4);
        std::uint32_t integer = (word >> (in_block % kNibbles * 4)) & 15u;
        if (layout.has_high_bits) {
          const std::uint32_t high = load_u32(block + layout.high_bits + place * 4);
          integer |= ((high >> fifth_bit(in_block)) & 1u) << 4;
        }
        // Exact products: at most 5 bits times the 11 of a float16.
        value = layout.has_offsets ? static_cast<float>(integer) * scale +
                                         half_to_float(load_u16(scales + kPanel * 2))
                                   : (static_cast<float>(integer) - layout.zero) * scale;
      }
    }
    if (in_block == kBlock - 1) block += layout.bytes;
  }
}

}  // namespace asdbench::kernels
