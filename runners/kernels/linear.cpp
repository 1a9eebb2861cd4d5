// Packing of weight matrices, and the division of linear layers into tasks of one panel.
#include "runners/kernels/linear.h"

#include <algorithm>
#include <array>
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

// Rows that one pass over a panel serves; more rows are several passes.
constexpr std::int64_t kPassRows = 32;
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

std::invalid_argument shape_error(const std::string& what, WeightFormat format,
                                  std::int64_t outputs, std::int64_t inputs) {
  return std::invalid_argument("weights " + std::string(name_of(format)) + " [" +
                               std::to_string(outputs) + ", " + std::to_string(inputs) +
                               "]: " + what);
}

void check_shape(WeightFormat format, std::int64_t outputs, std::int64_t inputs) {
  if (outputs < 1 || inputs < 1 || outputs > kMaxSize || inputs > kMaxSize) {
    throw shape_error("each size must be from 1 to 2^31", format, outputs, inputs);
  }
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
  if (block_inputs(format) != 1) {
    throw shape_error("only F32, F16 and BF16 are made from float32 rows", format, outputs, inputs);
  }
  check_shape(format, outputs, inputs);
  PackedMatrix matrix(format, outputs, inputs, isa);
  std::vector<float> values(static_cast<std::size_t>(inputs));
  std::vector<std::uint16_t> narrow(format == WeightFormat::kF32 ? 0 : values.size());
  for (std::int64_t output = 0; output < outputs; ++output) {
    row(output, values);
    const void* stored = values.data();
    if (format != WeightFormat::kF32) {
      std::transform(values.begin(), values.end(), narrow.begin(),
                     format == WeightFormat::kF16 ? float_to_half : float_to_bf16);
      stored = narrow.data();
    }
    matrix.pack_row(output, static_cast<const std::byte*>(stored));
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

namespace {

/// Sums of one panel for some rows; a task's whole working memory.
struct Sums {
  alignas(64) std::array<float, kPassRows * kPanel> values;
};

/// Throws unless the matrices can be multiplied in one round.
void check_same_shape(const PackedMatrix& first, const PackedMatrix& other, std::int64_t rows) {
  if (rows < 0 || first.outputs() == 0 || other.inputs() != first.inputs() ||
      other.isa() != first.isa()) {
    throw std::invalid_argument(
        "linear: matrices of one round need the same inputs and "
        "instruction set, and rows must be at least 0");
  }
}

std::int64_t blocks_of(const PackedMatrix& weights) {
  return (weights.inputs() + kBlock - 1) / kBlock;
}

/// Activations of one pass as the kernels read them. Every thread of the pool prepares its own
/// copy: lines that another core has just written are slow to read, and they would be read once a
/// panel. The memory belongs to the thread that calls linear() and grows to its largest pass.
class Activations {
 public:
  static Activations& of_this_thread() {
    thread_local Activations activations;
    return activations;
  }

  /// Begins the pass over `rows` rows of `x` [rows, inputs].
  void start(const CpuKernels& kernels, int threads, Rows x, std::int64_t rows,
             std::int64_t inputs) {
    kernels_ = &kernels;
    x_ = x;
    rows_ = static_cast<int>(rows);
    inputs_ = inputs;
    const std::int64_t blocks = (inputs + kBlock - 1) / kBlock;
    sums_at_ = blocks * rows * kBlock;
    const auto lines = static_cast<std::size_t>((sums_at_ + blocks * rows) / kLineFloats + 1);
    if (copies_.size() < static_cast<std::size_t>(threads)) {
      copies_.resize(static_cast<std::size_t>(threads));
    }
    for (Copy& copy : copies_) {
      for (Prepared& prepared : copy.of_kind) {
        if (prepared.lines.size() < lines) prepared.lines.resize(lines);
        prepared.is_there = false;
      }
    }
  }

  /// The copy of `thread` for a matrix of `format`; to be called on that thread.
  PreparedRows prepare(int thread, WeightFormat format) {
    Copy& copy = copies_[static_cast<std::size_t>(thread)];
    Prepared& prepared = copy.of_kind[has_nibbles(format) ? 1 : 0];
    float* memory = prepared.lines.front().values;
    if (!prepared.is_there) {
      kernels_->prepare_rows(x_.data, x_.stride, rows_, inputs_, has_nibbles(format), memory,
                             memory + sums_at_);
      prepared.is_there = true;
    }
    return {memory, memory + sums_at_, rows_};
  }

 private:
  static constexpr std::int64_t kLineFloats = kCacheLine / sizeof(float);
  struct alignas(kCacheLine) Line {
    float values[kLineFloats];
  };
  struct Prepared {
    std::vector<Line> lines;
    bool is_there = false;
  };
  struct alignas(kCacheLine) Copy {
    std::array<Prepared, 2> of_kind;  // [1]: for nibbles
  };
  const CpuKernels* kernels_ = nullptr;
  Rows x_;
  int rows_ = 0;
  std::int64_t inputs_ = 0;
  std::int64_t sums_at_ = 0;
  std::vector<Copy> copies_;  // [threads]
};

/// One panel of `weights` times the prepared rows, into sums. A thread usually goes on with the
/// panel after it.
void multiply_panel(const CpuKernels& kernels, const PackedMatrix& weights, std::int64_t panel,
                    const PreparedRows& x, float* sums) {
  kernels.linear_panel(weights.format(),
                       {.panel = weights.panel(panel),
                        .next = weights.panel(std::min(panel + 1, weights.panels() - 1)),
                        .blocks = blocks_of(weights),
                        .x = x,
                        .sums = sums});
}

/// One panel of one output for the rows of a pass, which begin at row `done` of it.
void linear_task(const CpuKernels& kernels, const LinearOutput& target, std::int64_t panel,
                 const PreparedRows& x, std::int64_t done) {
  const PackedMatrix& weights = *target.weights;
  const std::int64_t first = panel * kPanel;
  const std::int64_t count = std::min<std::int64_t>(kPanel, weights.outputs() - first);
  Sums sums;
  for (int row = 0; row < x.rows; ++row) {
    float* start = sums.values.data() + row * kPanel;
    std::fill_n(start, kPanel, 0.0f);
    if (target.bias != nullptr) std::copy_n(target.bias + first, count, start);
  }
  multiply_panel(kernels, weights, panel, x, sums.values.data());
  for (int row = 0; row < x.rows; ++row) {
    const float* sum = sums.values.data() + row * kPanel;
    float* out = target.out.data + (done + row) * target.out.stride + first;
    if (target.residual.data == nullptr) {
      std::copy_n(sum, count, out);
    } else {
      const float* residual = target.residual.data + (done + row) * target.residual.stride + first;
      for (std::int64_t i = 0; i < count; ++i) out[i] = sum[i] + residual[i];
    }
  }
}

}  // namespace

void linear(Pool& pool, Rows x, std::int64_t rows, std::span<const LinearOutput> outputs) {
  std::int64_t panels = 0;
  for (const LinearOutput& output : outputs) {
    check_same_shape(*outputs.front().weights, *output.weights, rows);
    panels += output.weights->panels();
  }
  if (rows == 0 || panels == 0) return;
  const PackedMatrix& front = *outputs.front().weights;
  const CpuKernels& kernels = cpu_kernels(front.isa());
  Activations& activations = Activations::of_this_thread();
  for (std::int64_t done = 0; done < rows; done += kPassRows) {
    activations.start(kernels, pool.threads(), {x.data + done * x.stride, x.stride},
                      std::min(kPassRows, rows - done), front.inputs());
    pool.run(panels, [&](std::int64_t task, int thread) {
      const LinearOutput* target = outputs.data();
      while (task >= target->weights->panels()) task -= (target++)->weights->panels();
      const PreparedRows prepared = activations.prepare(thread, target->weights->format());
      linear_task(kernels, *target, task, prepared, done);
    });
  }
}

void linear_swiglu(Pool& pool, Rows x, std::int64_t rows, const PackedMatrix& gate,
                   const PackedMatrix& up, MutableRows out) {
  check_same_shape(gate, up, rows);
  if (gate.outputs() != up.outputs()) {
    throw std::invalid_argument("linear_swiglu: gate has " + std::to_string(gate.outputs()) +
                                " outputs, up " + std::to_string(up.outputs()));
  }
  const CpuKernels& kernels = cpu_kernels(gate.isa());
  Activations& activations = Activations::of_this_thread();
  for (std::int64_t done = 0; done < rows; done += kPassRows) {
    activations.start(kernels, pool.threads(), {x.data + done * x.stride, x.stride},
                      std::min(kPassRows, rows - done), gate.inputs());
    pool.run(gate.panels(), [&](std::int64_t task, int thread) {
      const PreparedRows gate_x = activations.prepare(thread, gate.format());
      const PreparedRows up_x = activations.prepare(thread, up.format());
      const std::int64_t first = task * kPanel;
      const std::int64_t count = std::min<std::int64_t>(kPanel, gate.outputs() - first);
      Sums gates;
      Sums ups;
      std::fill_n(gates.values.data(), gate_x.rows * kPanel, 0.0f);
      std::fill_n(ups.values.data(), gate_x.rows * kPanel, 0.0f);
      multiply_panel(kernels, gate, task, gate_x, gates.values.data());
      multiply_panel(kernels, up, task, up_x, ups.values.data());
      kernels.swiglu(gates.values.data(), ups.values.data(), gate_x.rows * kPanel);
      for (int row = 0; row < gate_x.rows; ++row) {
        std::copy_n(gates.values.data() + row * kPanel, count,
                    out.data + (done + row) * out.stride + first);
      }
    });
  }
}

}  // namespace asdbench::kernels
