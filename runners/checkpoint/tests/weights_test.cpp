// Conversion to float32 against the values of the shared fixtures, bit for bit.
#include <bit>

#include "runners/checkpoint/gguf.h"
#include "runners/checkpoint/tests/support.h"

namespace asdbench {
namespace {

using testing::data_dir;
using testing::read_file;
using testing::read_floats;

std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  dequantise(tensor, values);
  return values;
}

void expect_same_bits(std::span<const float> got, std::span<const float> expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "value " << i << ": " << got[i] << " for " << expected[i];
  }
}

TEST(Weights, EveryTypeGivesTheReferenceBits) {
  const std::filesystem::path folder = data_dir() / "gguf" / "types";
  const Json document = parse_json(read_file(folder / "cases.json"));
  ASSERT_EQ(document.at("cases").size(), 22U);
  for (const Json& entry : document.at("cases")) {
    SCOPED_TRACE(entry.at("id"));
    const GgufFile file = GgufFile::open(folder / entry.at("file").get<std::string>());
    ASSERT_EQ(file.tensors().size(), 1U);
    const GgufTensor& each = file.tensors().front();
    EXPECT_EQ(each.name, entry.at("tensor"));
    EXPECT_EQ(name_of(each.tensor.type), entry.at("type"));
    EXPECT_EQ(static_cast<int>(each.tensor.type), entry.at("type_id"));
    const std::vector<std::int64_t> shape = {entry.at("rows"), entry.at("cols")};
    EXPECT_EQ(each.tensor.shape, shape);
    const std::vector<float> expected =
        read_floats(folder / entry.at("expected").get<std::string>());
    expect_same_bits(values_of(each.tensor), expected);

    std::vector<float> rows(static_cast<std::size_t>(2 * shape[1]));
    dequantise_rows(each.tensor, 1, 2, rows);
    expect_same_bits(rows, std::span(expected).subspan(static_cast<std::size_t>(shape[1])));
  }
}

TEST(Weights, MixedFileHoldsTensorsOfSeveralRanksAndTypes) {
  const std::filesystem::path folder = data_dir() / "gguf" / "types";
  const Json mixed = parse_json(read_file(folder / "cases.json")).at("mixed");
  const std::vector<float> expected = read_floats(folder / mixed.at("expected").get<std::string>());
  const GgufFile file = GgufFile::open(folder / mixed.at("file").get<std::string>());
  ASSERT_EQ(file.tensors().size(), mixed.at("tensors").size());
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const Json& entry = mixed.at("tensors")[i];
    const GgufTensor& each = file.tensors()[i];
    SCOPED_TRACE(each.name);
    EXPECT_EQ(each.name, entry.at("name"));
    EXPECT_EQ(each.tensor.shape, entry.at("shape").get<std::vector<std::int64_t>>());
    expect_same_bits(values_of(each.tensor),
                     std::span(expected).subspan(entry.at("offset").get<std::size_t>() / 4,
                                                 static_cast<std::size_t>(each.tensor.elements())));
  }
}

// All 65,536 half-precision patterns against their definition in double.
TEST(Weights, HalfPrecisionIsExactForEveryPattern) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  const Tensor tensor{WeightType::kF16, {65536}, std::as_bytes(std::span(bits))};
  const std::vector<float> values = values_of(tensor);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto exponent = static_cast<int>((i >> 10) & 31);
    const auto mantissa = static_cast<double>(i & 1023);
    ASSERT_EQ(std::signbit(values[i]), i >= 32768) << i;
    if (exponent == 31) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffU, (i & 1023U) << 13) << i;
      ASSERT_FALSE(std::isfinite(values[i])) << i;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(static_cast<double>(std::fabs(values[i])), magnitude) << i;
    }
  }
}

TEST(Weights, WrongSizesAreMistakesOfTheCaller) {
  const std::vector<float> stored(6);
  const Tensor tensor{WeightType::kF32, {2, 3}, std::as_bytes(std::span(stored))};
  std::vector<float> out(5);
  EXPECT_THROW(dequantise(tensor, out), InternalError);
  EXPECT_THROW(dequantise_rows(tensor, 0, 2, out), InternalError);
  std::vector<float> row(3);
  EXPECT_THROW(dequantise_rows(tensor, 2, 1, row), InternalError);
  EXPECT_THROW(dequantise_rows(tensor, -1, 1, row), InternalError);
  EXPECT_NO_THROW(dequantise_rows(tensor, 1, 1, row));
}

}  // namespace
}  // namespace asdbench
