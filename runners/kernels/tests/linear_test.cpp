// Packing and the linear kernels: exact weights, sums against double, and rows that never depend on
// what is beside them.
#include "runners/kernels/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/errors.h"
#include "runners/kernels/tests/matrices.h"

namespace asdbench::kernels::testing {
namespace {

class LinearTest : public ::testing::TestWithParam<Isa> {
 protected:
  Isa isa() const { return GetParam(); }
};

/// x W^T of `rows` rows that lie `stride` apart and begin one float past an aligned address.
std::vector<float> multiply(Pool& pool, const PackedMatrix& weights, const std::vector<float>& x,
                            std::int64_t rows, std::int64_t stride, const float* bias = nullptr,
                            ActivationType type = ActivationType::kFloat32) {
  std::vector<float> shifted(x.size() + 1);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  std::vector<float> out(static_cast<std::size_t>(rows * weights.outputs()), -7.0f);
  const LinearOutput output{&weights, {out.data(), weights.outputs()}, bias};
  linear(pool, {shifted.data() + 1, stride}, rows, {&output, 1}, type);
  return out;
}

TEST_P(LinearTest, PackingKeepsEveryWeightExactly) {
  for (const WeightFormat format : kAllFormats) {
    const std::int64_t block = block_inputs(format);
    for (const std::int64_t inputs :
         {block, 3 * block, block == 1 ? std::int64_t{70} : 2 * block}) {
      for (const std::int64_t outputs : {1, 7, 24, 48, 49, 100}) {
        const StoredMatrix stored = random_matrix(format, outputs, inputs, 21);
        const PackedMatrix packed = stored.packed(isa());
        std::vector<float> row(static_cast<std::size_t>(inputs));
        for (std::int64_t output = 0; output < outputs; ++output) {
          packed.unpack_row(output, row);
          for (std::int64_t input = 0; input < inputs; ++input) {
            ASSERT_EQ(row[static_cast<std::size_t>(input)],
                      stored.values[static_cast<std::size_t>(output * inputs + input)])
                << name_of(format) << " [" << output << ", " << input << "]";
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, ChosenRowsAreThoseOfTheWhole) {
  const std::vector<std::int32_t> chosen = {99, 0, 48, 47, 48, 3};
  for (const WeightFormat format : kAllFormats) {
    const std::int64_t inputs = block_inputs(format) == 1 ? 70 : 96;
    const PackedMatrix whole = random_matrix(format, 100, inputs, 22).packed(isa());
    const PackedMatrix rows = whole.rows(chosen);
    ASSERT_EQ(rows.outputs(), 6);
    std::vector<float> expected(static_cast<std::size_t>(inputs)), got(expected.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      whole.unpack_row(chosen[i], expected);
      rows.unpack_row(static_cast<std::int64_t>(i), got);
      ASSERT_EQ(got, expected) << name_of(format) << " row " << chosen[i];
    }
    EXPECT_THROW(whole.rows(std::vector<std::int32_t>{100}), std::invalid_argument);
    EXPECT_THROW(whole.rows({}), std::invalid_argument);
  }
}

struct Shape {
  std::int64_t rows, outputs, inputs;
};

void expect_sums_of_double(Isa isa, WeightFormat format, const Shape& shape, ActivationType type) {
  Pool pool(2);
  const std::int64_t inputs = shape.inputs * block_inputs(format);
  const std::int64_t stride = inputs + 3;
  const StoredMatrix stored = random_matrix(format, shape.outputs, inputs, 31);
  const std::vector<float> x = random_values(shape.rows * stride, 32);
  const std::vector<float> bias = random_values(shape.outputs, 33);
  const std::vector<float> out =
      multiply(pool, stored.packed(isa), x, shape.rows, stride, bias.data(), type);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::vector<float> rounded =
        rounded_row({x.begin() + row * stride, x.begin() + row * stride + inputs}, type);
    for (std::int64_t output = 0; output < shape.outputs; ++output) {
      double sum = bias[static_cast<std::size_t>(output)];
      double magnitude = std::abs(sum);
      for (std::int64_t input = 0; input < inputs; ++input) {
        const double product =
            double{stored.values[static_cast<std::size_t>(output * inputs + input)]} *
            rounded[static_cast<std::size_t>(input)];
        sum += product;
        magnitude += std::abs(product);
      }
      // Each of `inputs` additions rounds to half a unit of at most `magnitude`; in practice the
      // errors cancel like their root.
      const double tolerance = std::numeric_limits<float>::epsilon() * magnitude *
                               (2 + std::sqrt(static_cast<double>(inputs)));
      ASSERT_NEAR(out[static_cast<std::size_t>(row * shape.outputs + output)], sum, tolerance)
          << name_of(format) << ' ' << name_of(type) << " row " << row << " output " << output;
    }
  }
}

TEST_P(LinearTest, SumsAgreeWithDoubleOnOddShapes) {
  for (const WeightFormat format : kAllFormats) {
    for (const ActivationType type : kAllActivations) {
      for (const Shape& shape : {Shape{1, 1, 1},
                                 {1, 5, 9},
                                 {2, 47, 3},
                                 {3, 48, 7},
                                 {5, 50, 40},
                                 {8, 97, 1},
                                 {33, 25, 18},
                                 {70, 3, 2}}) {
        expect_sums_of_double(isa(), format, shape, type);
      }
    }
  }
}

void expect_rows_alone(Isa isa, WeightFormat format, ActivationType type) {
  constexpr std::int64_t kRows = 70;
  const StoredMatrix stored = random_matrix(format, 101, 576, 41);
  const PackedMatrix weights = stored.packed(isa);
  const std::vector<float> x = random_values(kRows * weights.inputs(), 42);
  Pool one(1);
  Pool two(2);
  std::vector<float> singly;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::vector<float> alone(x.begin() + row * weights.inputs(),
                                   x.begin() + (row + 1) * weights.inputs());
    const std::vector<float> out =
        multiply(one, weights, alone, 1, weights.inputs(), nullptr, type);
    singly.insert(singly.end(), out.begin(), out.end());
  }
  for (Pool* pool : {&one, &two}) {
    for (std::int64_t rows = 1; rows <= kRows; rows += rows < 33 ? 1 : 37) {
      const std::vector<float> out =
          multiply(*pool, weights, x, rows, weights.inputs(), nullptr, type);
      const std::vector<float> expected(singly.begin(), singly.begin() + rows * 101);
      ASSERT_TRUE(same_bits(out, expected)) << name_of(format) << ' ' << name_of(type) << ", "
                                            << rows << " rows, " << pool->threads() << " threads";
    }
  }
}

TEST_P(LinearTest, ARowsBitsDependOnNothingBesideIt) {
  for (const WeightFormat format : kAllFormats) {
    expect_rows_alone(isa(), format, ActivationType::kFloat32);
  }
  for (const ActivationType type : {ActivationType::kBf16, ActivationType::kInt8}) {
    for (const WeightFormat format : {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ8_0,
                                      WeightFormat::kQ5_1, WeightFormat::kBf16}) {
      expect_rows_alone(isa(), format, type);
    }
  }
}

TEST_P(LinearTest, OneRoundServesMatricesOfDifferentFormatsAndSizes) {
  const StoredMatrix query = random_matrix(WeightFormat::kQ4_1, 144, 96, 51);
  const StoredMatrix key = random_matrix(WeightFormat::kQ8_0, 50, 96, 52);
  const StoredMatrix value = random_matrix(WeightFormat::kF16, 7, 96, 53);
  const std::vector<float> x = random_values(5 * 96, 54);
  Pool pool(2);
  std::vector<PackedMatrix> packed;
  for (const StoredMatrix* stored : {&query, &key, &value}) packed.push_back(stored->packed(isa()));
  std::vector<std::vector<float>> out;
  for (const PackedMatrix& weights : packed) {
    out.emplace_back(static_cast<std::size_t>(5 * (weights.outputs() + 2)), -7.0f);
  }
  std::vector<LinearOutput> outputs;
  for (std::size_t i = 0; i < 3; ++i) {
    outputs.push_back({&packed[i], {out[i].data(), packed[i].outputs() + 2}});
  }
  linear(pool, {x.data(), 96}, 5, outputs);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<float> alone = multiply(pool, packed[i], x, 5, 96);
    const std::int64_t width = packed[i].outputs();
    for (std::int64_t row = 0; row < 5; ++row) {
      for (std::int64_t output = 0; output < width; ++output) {
        ASSERT_EQ(out[i][static_cast<std::size_t>(row * (width + 2) + output)],
                  alone[static_cast<std::size_t>(row * width + output)]);
      }
      EXPECT_EQ(out[i][static_cast<std::size_t>(row * (width + 2) + width)], -7.0f)
          << "wrote past a row";
    }
  }
}

TEST_P(LinearTest, TheResidualIsAddedLastAndMayBeTheOutput) {
  const StoredMatrix stored = random_matrix(WeightFormat::kQ4_0, 60, 64, 61);
  const PackedMatrix weights = stored.packed(isa());
  const std::vector<float> x = random_values(4 * 64, 62);
  std::vector<float> stream = random_values(4 * 60, 63);
  Pool pool(2);
  std::vector<float> expected = multiply(pool, weights, x, 4, 64);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += stream[i];
  const LinearOutput output{&weights, {stream.data(), 60}, nullptr, {stream.data(), 60}};
  linear(pool, {x.data(), 64}, 4, {&output, 1});
  EXPECT_TRUE(same_bits(stream, expected));
}

TEST_P(LinearTest, SwigluAgreesWithDoubleAndIsRowInvariant) {
  const StoredMatrix gate = random_matrix(WeightFormat::kQ4_1, 101, 96, 71);
  const StoredMatrix up = random_matrix(WeightFormat::kQ5_1, 101, 96, 72);
  const PackedMatrix packed_gate = gate.packed(isa());
  const PackedMatrix packed_up = up.packed(isa());
  constexpr std::int64_t kRows = 35;
  const std::vector<float> x = random_values(kRows * 96, 73);
  Pool pool(2);
  const std::vector<float> gates = multiply(pool, packed_gate, x, kRows, 96);
  const std::vector<float> ups = multiply(pool, packed_up, x, kRows, 96);
  std::vector<float> out(gates.size());
  linear_swiglu(pool, {x.data(), 96}, kRows, packed_gate, packed_up, {out.data(), 101});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double expected = gates[i] / (1.0 + std::exp(-double{gates[i]})) * ups[i];
    ASSERT_NEAR(out[i], expected, 1e-6 * std::abs(expected) + 1e-37) << gates[i];
  }
  std::vector<float> alone(101);
  for (std::int64_t row = 0; row < kRows; ++row) {
    linear_swiglu(pool, {x.data() + row * 96, 96}, 1, packed_gate, packed_up, {alone.data(), 101});
    const std::vector<float> expected(out.begin() + row * 101, out.begin() + (row + 1) * 101);
    ASSERT_TRUE(same_bits(alone, expected)) << "row " << row;
  }
}

TEST_P(LinearTest, ABadRowLeavesItsNeighboursBitsAlone) {
  Pool pool(2);
  for (const ActivationType type : kAllActivations) {
    for (const WeightFormat format : {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ8_0,
                                      WeightFormat::kQ5_0, WeightFormat::kF16}) {
      const PackedMatrix weights = random_matrix(format, 30, 64, 81).packed(isa());
      std::vector<float> x = random_values(9 * 64, 82);
      const std::vector<float> clean = multiply(pool, weights, x, 9, 64, nullptr, type);
      x[4 * 64 + 10] = std::numeric_limits<float>::quiet_NaN();
      x[4 * 64 + 11] = std::numeric_limits<float>::infinity();
      x[6 * 64 + 3] = -std::numeric_limits<float>::infinity();
      const std::vector<float> dirty = multiply(pool, weights, x, 9, 64, nullptr, type);
      for (std::size_t i = 0; i < clean.size(); ++i) {
        if (i / 30 == 4) {
          EXPECT_TRUE(std::isnan(dirty[i])) << name_of(format) << ' ' << name_of(type);
        } else if (i / 30 == 6) {
          EXPECT_FALSE(std::isfinite(dirty[i])) << name_of(format) << ' ' << name_of(type);
        } else {
          EXPECT_EQ(dirty[i], clean[i]);
        }
      }
    }
  }
}

/// What score_rows and linear_scores write.
struct Scores {
  explicit Scores(std::int64_t rows)
      : choice(static_cast<std::size_t>(rows), -7),
        choice_logit(choice.size(), -7.0f),
        runner_up(choice.size(), -7.0f),
        draft_logit(choice.size(), -7.0f),
        bad(choice.size(), 7) {}
  RowScores out() {
    return {choice.data(), choice_logit.data(), runner_up.data(), draft_logit.data(), bad.data()};
  }
  std::vector<TokenId> choice;
  std::vector<float> choice_logit, runner_up, draft_logit;
  std::vector<std::uint8_t> bad;
};

void expect_same(const Scores& a, const Scores& b, const std::string& what) {
  EXPECT_EQ(a.choice, b.choice) << what;
  EXPECT_EQ(a.bad, b.bad) << what;
  EXPECT_TRUE(same_bits(a.choice_logit, b.choice_logit)) << what;
  EXPECT_TRUE(same_bits(a.runner_up, b.runner_up)) << what;
  EXPECT_TRUE(same_bits(a.draft_logit, b.draft_logit)) << what;
}

TEST_P(LinearTest, ScoresOfAHeadAreThoseOfItsLogits) {
  constexpr std::int64_t kRows = 35;
  for (const std::int64_t vocab : {1, 2, 47, 384, 385, 1'300}) {
    StoredMatrix stored = random_matrix(WeightFormat::kQ8_0, vocab, 64, 85);
    // Equal rows of weights in different stretches: ties that the lowest id must win.
    const std::size_t row_bytes = stored.bytes.size() / static_cast<std::size_t>(vocab);
    for (const std::size_t id : {7U, 390U, 1'299U}) {
      if (id < static_cast<std::size_t>(vocab)) {
        std::copy_n(stored.bytes.begin(), row_bytes,
                    stored.bytes.begin() + static_cast<std::ptrdiff_t>(id * row_bytes));
      }
    }
    const PackedMatrix weights = stored.packed(isa());
    std::vector<float> x = random_values(kRows * 64, 86);
    for (std::size_t i = 0; i < 64; ++i) x[3 * 64 + i] = stored.values[i] * 1'000;  // id 0 and ties
    x[5 * 64 + 1] = std::numeric_limits<float>::quiet_NaN();
    x[6 * 64 + 2] = std::numeric_limits<float>::infinity();
    std::vector<TokenId> draft;
    for (std::int64_t row = 0; row < kRows; ++row) {
      draft.push_back(static_cast<TokenId>(row * 97 % (vocab + 2)) - 1);  // -1, ..., vocab
    }
    Pool pool(2);
    std::vector<float> expected_logits = multiply(pool, weights, x, kRows, 64);
    Scores expected(kRows);
    cpu_kernels(isa()).score_rows(expected_logits.data(), draft.data(), kRows, vocab,
                                  MaskedVocab::kNo, expected.out());
    Scores found(kRows);
    linear_scores(pool, {x.data(), 64}, kRows, weights, draft.data(), found.out());
    expect_same(found, expected, "vocabulary of " + std::to_string(vocab));
    EXPECT_EQ(found.bad[5] & kBadLogits, kBadLogits);
    Scores kept(kRows);
    std::vector<float> logits(expected_logits.size(), -7.0f);
    linear_scores(pool, {x.data(), 64}, kRows, weights, draft.data(), kept.out(),
                  {logits.data(), vocab});
    expect_same(kept, expected, "with logits");
    EXPECT_TRUE(same_bits(logits, expected_logits));
  }
}

TEST_P(LinearTest, TinyActivationsStayTiny) {
  Pool pool(1);
  for (const ActivationType type : kAllActivations) {
    for (const WeightFormat format :
         {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ8_0, WeightFormat::kF32}) {
      const PackedMatrix weights = random_matrix(format, 5, 64, 83).packed(isa());
      for (const float tiny : {0.0f, 1e-44f, 1e-39f, 1e-31f}) {
        for (const float out :
             multiply(pool, weights, std::vector<float>(64, tiny), 1, 64, nullptr, type)) {
          EXPECT_LE(std::abs(out), 1'000 * tiny) << name_of(format) << ' ' << name_of(type);
        }
      }
    }
  }
}

TEST_P(LinearTest, DenormalsAreNotFlushed) {
  const float weight = 0.5f;
  const auto* bytes = reinterpret_cast<const std::byte*>(&weight);
  const PackedMatrix weights = PackedMatrix::pack(WeightFormat::kF32, 1, 1, {bytes, 4}, isa());
  Pool pool(1);
  const float denormal = 0x1p-140f;
  EXPECT_EQ(multiply(pool, weights, {denormal}, 1, 1).front(), 0x1p-141f);
}

TEST_P(LinearTest, ARealVocabularyIsMultipliedWhole) {
  const StoredMatrix stored = random_matrix(WeightFormat::kQ8_0, 151'936, 32, 91);
  const PackedMatrix weights = stored.packed(isa());
  const std::vector<float> x = random_values(2 * 32, 92);
  Pool pool(2);
  const std::vector<float> out = multiply(pool, weights, x, 2, 32);
  for (const std::size_t output : {0, 1, 77'777, 151'934, 151'935}) {
    double sum = 0;
    for (std::size_t input = 0; input < 32; ++input) {
      sum += double{stored.values[output * 32 + input]} * x[32 + input];
    }
    EXPECT_NEAR(out[151'936 + output], sum, 1e-5) << output;
  }
}

INSTANTIATE_TEST_SUITE_P(On, LinearTest, ::testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST(LinearAcrossIsasTest, Avx2AndAvx512GiveTheSameBits) {
  if (!supported(Isa::kAvx2)) {
    EXPECT_FALSE(supported(Isa::kAvx512));
    return;
  }
  const Isa widest = supported_isas().back();
  Pool pool(2);
  for (const WeightFormat format : kAllFormats) {
    const StoredMatrix stored = random_matrix(format, 101, 576, 41);
    const std::vector<float> x = random_values(9 * 576, 42);
    EXPECT_TRUE(same_bits(multiply(pool, stored.packed(Isa::kAvx2), x, 9, 576),
                          multiply(pool, stored.packed(widest), x, 9, 576)))
        << name_of(format);
  }
}

TEST(LinearAcrossIsasTest, IntegerDotsAreTheSameBitsOnEverySet) {
  Pool pool(2);
  for (const WeightFormat format :
       {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ8_0}) {
    const StoredMatrix stored = random_matrix(format, 101, 576, 43);
    const std::vector<float> x = random_values(9 * 576, 44);
    std::vector<float> first;
    for (const Isa isa : supported_isas()) {
      if (isa == Isa::kPlain) continue;  // rounds products before it adds them
      const std::vector<float> out =
          multiply(pool, stored.packed(isa), x, 9, 576, nullptr, ActivationType::kInt8);
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out, first)) << name_of(format) << ' ' << name_of(isa);
    }
  }
}

TEST(PackedMatrixTest, ImpossibleShapesAndSourcesAreRefused) {
  const std::vector<std::byte> bytes(1'000);
  const auto pack = [&](WeightFormat format, std::int64_t outputs, std::int64_t inputs,
                        std::size_t size) {
    return PackedMatrix::pack(format, outputs, inputs, {bytes.data(), size}, Isa::kPlain);
  };
  EXPECT_EQ(pack(WeightFormat::kQ4_1, 2, 64, 80).outputs(), 2);
  EXPECT_THROW(pack(WeightFormat::kQ4_1, 2, 64, 79), std::invalid_argument);
  EXPECT_THROW(pack(WeightFormat::kQ4_1, 2, 64, 81), std::invalid_argument);
  EXPECT_THROW(pack(WeightFormat::kQ4_1, 2, 33, 40), std::invalid_argument);
  EXPECT_THROW(pack(WeightFormat::kF32, 0, 4, 0), std::invalid_argument);
  EXPECT_THROW(pack(WeightFormat::kF32, 4, -1, 16), std::invalid_argument);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_THROW(pack(WeightFormat::kF32, huge, huge, 16), std::invalid_argument);
  // A hostile shape that could never be allocated: the source's size is compared first.
  EXPECT_THROW(pack(WeightFormat::kQ4_1, 1 << 30, 1 << 30, 40), std::invalid_argument);
  PackedMatrix matrix = pack(WeightFormat::kF32, 2, 3, 24);
  std::vector<float> row(3);
  EXPECT_THROW(matrix.unpack_row(2, row), std::invalid_argument);
  EXPECT_THROW(matrix.unpack_row(-1, row), std::invalid_argument);
  EXPECT_THROW(matrix.unpack_row(0, std::span(row).first(2)), std::invalid_argument);
}

TEST(PackedMatrixTest, FloatRowsAreRoundedToTheNarrowFormats) {
  const std::vector<float> values = random_values(3 * 50, 95);
  const auto row = [&](std::int64_t output, std::span<float> out) {
    std::copy_n(values.begin() + output * 50, 50, out.begin());
  };
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16}) {
    const PackedMatrix packed = PackedMatrix::from_rows(format, 3, 50, row, Isa::kPlain);
    std::vector<float> out(50);
    packed.unpack_row(2, out);
    for (std::size_t i = 0; i < 50; ++i) {
      const float value = values[100 + i];
      const float expected = format == WeightFormat::kF32   ? value
                             : format == WeightFormat::kF16 ? half_to_float(float_to_half(value))
                                                            : bf16_to_float(float_to_bf16(value));
      EXPECT_EQ(out[i], expected);
      EXPECT_NEAR(out[i], value, std::abs(value) / 250);
    }
  }
  EXPECT_THROW(PackedMatrix::from_rows(WeightFormat::kQ5_0, 1, 32, row, Isa::kPlain),
               std::invalid_argument);
}

TEST(PackedMatrixTest, FloatRowsAreRoundedToBlocksOfBytesAndNibbles) {
  constexpr std::int64_t kInputs = 72;  // the last block is short
  std::vector<float> values = random_values(2 * kInputs, 96);
  std::fill_n(values.begin() + 32, 32, 0.0f);  // a block without a scale
  values[kInputs] = 1e-7f;                     // far below its block's scale
  const auto row = [&](std::int64_t output, std::span<float> out) {
    ASSERT_EQ(std::ssize(out), kInputs);
    std::copy_n(values.begin() + output * kInputs, kInputs, out.begin());
  };
  for (const WeightFormat format : {WeightFormat::kQ8_0, WeightFormat::kQ4_0}) {
    const PackedMatrix packed = PackedMatrix::from_rows(format, 2, kInputs, row, Isa::kPlain);
    EXPECT_EQ(packed.format(), format);
    const std::int32_t second[] = {1};
    const PackedMatrix chosen = packed.rows(second);
    for (std::int64_t output = 0; output < 2; ++output) {
      std::vector<float> out(kInputs);
      (output == 0 ? packed : chosen).unpack_row(0, out);
      for (std::int64_t begin = 0; begin < kInputs; begin += 32) {
        const std::span<const float> block =
            std::span(values).subspan(static_cast<std::size_t>(output * kInputs + begin),
                                      static_cast<std::size_t>(std::min(32L, kInputs - begin)));
        float largest = 0;
        for (const float value : block) largest = std::max(largest, std::abs(value));
        // Half a step, and what rounding the scale adds; a whole step where the eighth positive
        // integer is missing.
        const float allowed =
            format == WeightFormat::kQ8_0 ? 0.57f * largest / 127 : 1.01f * largest / 8;
        for (std::size_t i = 0; i < block.size(); ++i) {
          EXPECT_NEAR(out[static_cast<std::size_t>(begin) + i], block[i], allowed) << begin << i;
        }
      }
    }
  }
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e9f}) {
    values[3] = wrong;
    EXPECT_THROW(PackedMatrix::from_rows(WeightFormat::kQ8_0, 2, kInputs, row, Isa::kPlain),
                 std::invalid_argument);
    EXPECT_THROW(PackedMatrix::from_rows(WeightFormat::kQ4_0, 2, kInputs, row, Isa::kPlain),
                 std::invalid_argument);
  }
}

TEST(PackedMatrixTest, AShortLastBlockTakesPartInProducts) {
  constexpr std::int64_t kInputs = 72;
  const std::vector<float> values = random_values(kInputs, 97);
  const std::vector<float> x = random_values(kInputs, 98);
  for (const WeightFormat format : {WeightFormat::kQ8_0, WeightFormat::kQ4_0}) {
    const PackedMatrix packed =
        PackedMatrix::from_rows(format, 1, kInputs, [&](std::int64_t, std::span<float> out) {
          std::copy(values.begin(), values.end(), out.begin());
        });
    std::vector<float> stored(kInputs);
    packed.unpack_row(0, stored);
    double expected = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      expected += static_cast<double>(stored[i]) * static_cast<double>(x[i]);
    }
    float out = 0;
    Pool pool(1);
    const LinearOutput output{&packed, {&out, 1}};
    linear(pool, {x.data(), kInputs}, 1, {&output, 1});
    EXPECT_NEAR(static_cast<double>(out), expected, 1e-4);
  }
}

TEST(PackedMatrixTest, RoundingWhatIsOnTheGridAlreadyChangesNothing) {
  // Each block holds its scale's largest integer, so that the scale is found again.
  for (const WeightFormat format : {WeightFormat::kQ8_0, WeightFormat::kQ4_0}) {
    std::vector<float> values;
    for (int i = 0; i < 96; ++i) {
      const int largest = format == WeightFormat::kQ8_0 ? -127 : -8;
      const int integer = i % 32 == 0 ? largest : (i * 37) % (-largest);
      values.push_back(static_cast<float>(integer) * 0x1p-6f);
    }
    const PackedMatrix packed = PackedMatrix::from_rows(
        format, 1, 96,
        [&](std::int64_t, std::span<float> out) {
          std::copy(values.begin(), values.end(), out.begin());
        },
        Isa::kPlain);
    std::vector<float> out(96);
    packed.unpack_row(0, out);
    EXPECT_EQ(out, values);
  }
}

TEST(LinearArgumentsTest, MatricesThatDoNotFitTogetherAreRefused) {
  const PackedMatrix a = random_matrix(WeightFormat::kF32, 2, 4, 1).packed(Isa::kPlain);
  const PackedMatrix b = random_matrix(WeightFormat::kF32, 2, 5, 1).packed(Isa::kPlain);
  const PackedMatrix c = random_matrix(WeightFormat::kF32, 3, 4, 1).packed(Isa::kPlain);
  const PackedMatrix none;
  float x[5] = {};
  float out[6];
  Pool pool(1);
  const LinearOutput outputs[] = {{&a, {out, 2}}, {&b, {out + 2, 2}}};
  EXPECT_THROW(linear(pool, {x, 5}, 1, outputs), std::invalid_argument);
  EXPECT_THROW(linear(pool, {x, 5}, -1, {outputs, 1}), std::invalid_argument);
  EXPECT_THROW(linear_swiglu(pool, {x, 5}, 1, a, c, {out, 2}), std::invalid_argument);
  EXPECT_THROW(linear_swiglu(pool, {x, 5}, 1, none, none, {out, 2}), std::invalid_argument);
  linear(pool, {x, 5}, 0, {outputs, 1});
  linear(pool, {x, 5}, 1, {});
}

TEST(HalfTest, EveryFloat16SurvivesTheWayToFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
  EXPECT_EQ(float_to_half(65'519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65'520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0) << "half a denormal ties to even";
  EXPECT_EQ(float_to_half(0x1.8p-25f), 1);
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00) << "a tie goes to the even neighbour";
  EXPECT_EQ(float_to_half(1.0f + 0x1.8p-10f), 0x3c02);
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace asdbench::kernels::testing
