// Weight matrices packed for the CPU kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runners/kernels/isa.h"
#include "runners/kernels/weight_format.h"

namespace asdbench::kernels {

/// One weight matrix [outputs, inputs], reordered once for one instruction set.
///
/// The weights keep their stored precision (no float32 copy): a panel of neighbouring outputs lies
/// together, block of inputs by block of inputs, so that a thread reads one panel as one stream.
/// Immutable after construction; any number of threads may read it.
class PackedMatrix {
 public:
  PackedMatrix() = default;  // 0 x 0

  /// Packs `source`, row-major [outputs, inputs] in `format`, any alignment; copies everything, so
  /// the source may be unmapped afterwards.
  ///
  /// Errors: std::invalid_argument when a size is below 1 or too large, `inputs` is not a multiple
  /// of the block, or `source` has not exactly the bytes of the shape; std::bad_alloc.
  static PackedMatrix pack(WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                           std::span<const std::byte> source, Isa isa = active_isa());

  /// Packs float32 rows: `row(output, values)` fills values [inputs]. kF32, kF16 and kBf16 round to
  /// nearest even; kQ8_0 and kQ4_0 round each block of 32 to its own scale, the largest magnitude
  /// over 127, or the value of that magnitude over -8; the last block may be short. For stored
  /// types that have no kernel of their own, and for matrices that are to be read in fewer bytes
  /// than they are stored in.
  ///
  /// Errors: std::invalid_argument for other formats, sizes as in pack(), and for kQ8_0 and kQ4_0 a
  /// value that is not finite or needs a scale beyond float16; std::bad_alloc.
  static PackedMatrix from_rows(WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                                const std::function<void(std::int64_t, std::span<float>)>& row,
                                Isa isa = active_isa());

  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  WeightFormat format() const { return format_; }
  Isa isa() const { return isa_; }
  /// What a pass over the matrix reads.
  std::int64_t bytes() const { return panels_ * panel_bytes_; }

  /// The weights of one output, dequantised exactly: `values` [inputs]. This is also the embedding
  /// lookup of a tied head. Errors: std::invalid_argument for a row or size that does not exist.
  void unpack_row(std::int64_t output, std::span<float> values) const;

  /// The matrix of the given rows, in the same format. Errors: std::invalid_argument for a row that
  /// does not exist, or none; std::bad_alloc.
  PackedMatrix rows(std::span<const std::int32_t> outputs) const;

  /// For the kernels: panels of kPanel outputs (the last one padded with zeros), each
  /// panel_bytes() long.
  std::int64_t panels() const { return panels_; }
  std::int64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(std::int64_t index) const { return data_.get() + index * panel_bytes_; }

 private:
  PackedMatrix(WeightFormat format, std::int64_t outputs, std::int64_t inputs, Isa isa);
  void pack_row(std::int64_t output, const std::byte* source);

  WeightFormat format_ = WeightFormat::kF32;
  Isa isa_ = Isa::kPlain;
  std::int64_t outputs_ = 0;
  std::int64_t inputs_ = 0;
  std::int64_t panels_ = 0;
  std::int64_t panel_bytes_ = 0;
  std::shared_ptr<std::byte> data_;  // shares a slab with its neighbours (slab.h)
};

}  // namespace asdbench::kernels
