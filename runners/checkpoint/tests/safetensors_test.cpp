// The safetensors container against damage; the fixtures for whole folders are in another file.
#include "runners/checkpoint/safetensors.h"

#include "runners/checkpoint/tests/support.h"

namespace asdbench {
namespace {

using testing::data_dir;
using testing::ExactBytes;
using testing::outcome_of;
using testing::read_file;

std::string with_header(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  return content + header + data;
}

std::string fault(const std::string& header, const std::string& data = "") {
  const ExactBytes bytes(with_header(header, data));
  return outcome_of([&] { SafetensorsFile::parse(bytes.span(), "memory"); });
}

TEST(Safetensors, KeepsEntriesInTheOrderOfTheirData) {
  const std::string content = with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"I64","shape":[],"data_offsets":[4,12]},)"
      R"("c":{"dtype":"BF16","shape":[3,0],"data_offsets":[12,12]}}   )",
      "0123456789ab");
  const ExactBytes bytes(content);
  const SafetensorsFile file = SafetensorsFile::parse(bytes.span(), "memory");
  ASSERT_EQ(file.entries().size(), 3U);
  EXPECT_EQ(file.entries()[0].name, "b");
  EXPECT_EQ(file.entries()[1].name, "a");
  EXPECT_TRUE(file.entries()[1].shape.empty());  // rank 0: one element
  EXPECT_EQ(file.entries()[1].bytes.size(), 8U);
  EXPECT_EQ(static_cast<char>(file.entries()[1].bytes.front()), '4');
  EXPECT_EQ(file.entries()[2].bytes.size(), 0U);
  EXPECT_EQ(file.weights(file.entries()[0]).type, WeightType::kF16);
  EXPECT_EQ(outcome_of([&] { file.weights(file.entries()[1]); }), "bad_dtype");
}

TEST(Safetensors, RefusesHeadersThatAreNoDescription) {
  EXPECT_EQ(fault("{}"), "ok");
  EXPECT_EQ(fault("{}", "x"), "bad_offsets");
  EXPECT_EQ(fault(" {}"), "bad_header");
  EXPECT_EQ(fault("{}x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":1})"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"shape":[],"data_offsets":[0,1]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":1,"shape":[],"data_offsets":[0,1]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "x"), "bad_header");
  EXPECT_EQ(fault(R"({"a":{"dtype":"C64","shape":[],"data_offsets":[0,8]}})", "12345678"),
            "bad_dtype");
  // Empty axes must not hide a product that overflows in another order.
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})"),
            "bad_shape");
}

// Any single damaged byte gives entries inside the file or a clean error.
TEST(Safetensors, SurvivesEveryDamagedByte) {
  const std::string content = read_file(data_dir() / "bad" / "good" / "model.safetensors");
  ASSERT_GT(content.size(), 1200U);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < 1200; ++at) {  // length and header
    for (const int flip : {0x01, 0x10, 0x80}) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const ExactBytes bytes(damaged);
      refused += outcome_of([&] { SafetensorsFile::parse(bytes.span(), "damaged"); }) != "ok";
    }
  }
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace asdbench
