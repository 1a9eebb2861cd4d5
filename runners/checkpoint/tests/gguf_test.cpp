// The container reader against the malformed files of the shared fixtures and against truncation.
#include "runners/checkpoint/gguf.h"

#include <fmt/format.h>

#include "runners/checkpoint/tests/support.h"

namespace asdbench {
namespace {

using testing::allowed;
using testing::data_dir;
using testing::ExactBytes;
using testing::outcome_of;
using testing::read_file;

// The container alone: open, list metadata, read every tensor.
void read_everything(const GgufFile& file) {
  for (const GgufTensor& each : file.tensors()) {
    std::vector<float> values(static_cast<std::size_t>(each.tensor.elements()));
    dequantise(each.tensor, values);
  }
}

TEST(Gguf, GivesTheFaultOfEveryMalformedFixture) {
  const std::filesystem::path folder = data_dir() / "gguf" / "bad";
  const Json cases = parse_json(read_file(folder / "cases.json"));
  EXPECT_EQ(cases.size(), 49U);
  for (const Json& entry : cases) {
    const std::filesystem::path path = folder / entry.at("file").get<std::string>();
    const std::string outcome = outcome_of([&] { read_everything(GgufFile::open(path)); });
    EXPECT_TRUE(allowed(entry, outcome)) << entry.at("id") << ": " << outcome;
    // The same from memory, where a read behind the end is seen by the sanitizer.
    const ExactBytes bytes(read_file(path));
    EXPECT_EQ(outcome_of([&] { read_everything(GgufFile::parse(bytes.span(), "memory")); }),
              outcome)
        << entry.at("id");
  }
}

// Where the last tensor ends; what follows is padding that a file may lack.
std::size_t data_end(const GgufFile& file, std::span<const std::byte> bytes) {
  std::size_t end = 0;
  for (const GgufTensor& each : file.tensors()) {
    const std::byte* last = each.tensor.bytes.data() + each.tensor.bytes.size();
    end = std::max(end, static_cast<std::size_t>(last - bytes.data()));
  }
  return end;
}

TEST(Gguf, RefusesAFileCutAtAnyByte) {
  for (const char* name : {"types/mixed.gguf", "badmodels/good.gguf"}) {
    const std::string content = read_file(data_dir() / "gguf" / name);
    const ExactBytes whole(content);
    const std::size_t end = data_end(GgufFile::parse(whole.span(), name), whole.span());
    ASSERT_GT(end, content.size() / 2);
    for (std::size_t size = 0; size < end; ++size) {
      const ExactBytes cut(std::string_view(content).substr(0, size));
      ASSERT_EQ(outcome_of([&] { GgufFile::parse(cut.span(), name); }), "truncated") << size;
    }
  }
}

// Any single damaged byte gives a model or a clean error, never a crash or a read outside.
TEST(Gguf, SurvivesEveryDamagedHeaderByte) {
  const std::string content = read_file(data_dir() / "gguf" / "bad" / "good.gguf");
  std::size_t refused = 0;
  for (std::size_t at = 0; at < content.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const ExactBytes bytes(damaged);
      refused +=
          outcome_of([&] { read_everything(GgufFile::parse(bytes.span(), "damaged")); }) != "ok";
    }
  }
  EXPECT_GT(refused, 100U);
}

template <typename T>
T get(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  if (value == nullptr || !std::holds_alternative<T>(*value)) {
    ADD_FAILURE() << key;
    return T{};
  }
  return std::get<T>(*value);
}

TEST(Gguf, ReadsEveryKindOfMetadata) {
  const GgufFile file = GgufFile::open(data_dir() / "gguf" / "types" / "mixed.gguf");
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(get<std::uint64_t>(file, "x.u8"), 200U);
  EXPECT_EQ(get<std::int64_t>(file, "x.i8"), -100);
  EXPECT_EQ(get<std::uint64_t>(file, "x.u16"), 60000U);
  EXPECT_EQ(get<std::int64_t>(file, "x.i16"), -30000);
  EXPECT_EQ(get<std::uint64_t>(file, "x.u32"), 4000000000U);
  EXPECT_EQ(get<std::int64_t>(file, "x.i32"), -2000000000);
  EXPECT_EQ(get<double>(file, "x.f32"), 0.15625);
  EXPECT_EQ(get<bool>(file, "x.b1"), true);
  EXPECT_EQ(get<bool>(file, "x.b0"), false);
  EXPECT_EQ(get<std::string>(file, "x.str"), "Gr\u00f6\u00dfe \U0001F600");
  EXPECT_EQ(get<std::string>(file, "x.empty"), "");
  EXPECT_EQ(get<std::uint64_t>(file, "x.u64"), 9223372036854775813U);
  EXPECT_EQ(get<std::int64_t>(file, "x.i64"), -4611686018427387904);
  EXPECT_EQ(get<double>(file, "x.f64"), 0.1);
  EXPECT_EQ(get<std::vector<std::int64_t>>(file, "x.ai"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(get<std::vector<double>>(file, "x.af"), (std::vector<double>{0.5, -0.25}));
  EXPECT_EQ(get<std::vector<std::string>>(file, "x.as"),
            (std::vector<std::string>{"a", "", "b c"}));
  EXPECT_EQ(get<std::vector<bool>>(file, "x.ab"), (std::vector<bool>{true, false}));
}

TEST(Gguf, TypedAccessConvertsWidthsAndRefusesOtherKinds) {
  const GgufFile file = GgufFile::open(data_dir() / "gguf" / "types" / "mixed.gguf");
  EXPECT_EQ(file.integer("x.u8"), 200);
  EXPECT_EQ(file.integer("x.i64"), -4611686018427387904);
  EXPECT_EQ(file.real("x.f32"), 0.15625);
  EXPECT_EQ(file.text("x.str").size(), 12U);
  EXPECT_EQ(file.texts("x.as").size(), 3U);
  EXPECT_EQ(file.integers("x.ai").size(), 3U);
  EXPECT_EQ(outcome_of([&] { file.integer("x.u64"); }), "bad_config");  // beyond 63 bits
  EXPECT_EQ(outcome_of([&] { file.integer("x.f64"); }), "bad_config");
  EXPECT_EQ(outcome_of([&] { file.integer("absent"); }), "bad_config");
  EXPECT_EQ(outcome_of([&] { file.real("x.u8"); }), "bad_config");
  EXPECT_EQ(outcome_of([&] { file.text("x.as"); }), "bad_config");
  EXPECT_EQ(outcome_of([&] { file.texts("x.str"); }), "bad_config");
  EXPECT_EQ(outcome_of([&] { file.integers("x.as"); }), "bad_config");
}

// Empty axes must not hide a product that overflows when the shape is multiplied in another order.
TEST(Gguf, RefusesAShapeThatOverflowsBesideAnEmptyAxis) {
  std::string bytes = "GGUF";
  const auto put = [&bytes](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(std::uint32_t{3});
  put(std::int64_t{1});  // tensors
  put(std::int64_t{0});  // keys
  put(std::uint64_t{1});
  bytes += 't';
  put(std::uint32_t{3});
  for (const std::int64_t extent :
       {std::int64_t{0}, std::int64_t{1} << 40, std::int64_t{1} << 40}) {
    put(extent);
  }
  put(std::int32_t{0});
  put(std::uint64_t{0});
  const ExactBytes exact(bytes);
  EXPECT_EQ(outcome_of([&] { GgufFile::parse(exact.span(), "empty axis"); }), "bad_shape");
}

TEST(Gguf, OpenRefusesWhatIsNoReadableRegularFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(outcome_of([&] { GgufFile::open(folder.path()); }), "missing_file");
  EXPECT_EQ(outcome_of([&] { GgufFile::open(folder.path() / "absent.gguf"); }), "missing_file");
}

}  // namespace
}  // namespace asdbench
