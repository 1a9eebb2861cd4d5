// Reads the safetensors container (specs: targets, section 6) from bytes that may be hostile.
#include "runners/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/checkpoint_internal.h"

namespace asdbench {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The cap of the reference reader.
constexpr std::uint64_t kLongestHeader = 100'000'000;

struct ItemType {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<ItemType, 15> kItemTypes = {{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"I64", 8},
    {"U64", 8},
    {"F64", 8},
}};

// An entry with its range, relative to the first data byte, before the range is checked.
struct Range {
  SafetensorsEntry entry;
  std::uint64_t begin;
  std::uint64_t end;
};

class Header {
 public:
  explicit Header(const std::string& name) : name_(name) {}

  [[noreturn]] void fail(ModelFault fault, const std::string& message) const {
    throw ModelError(fault, fmt::format("{}: {}", name_, message));
  }

  Json parse(std::string_view text) const {
    if (!text.starts_with('{')) fail(ModelFault::kBadHeader, "the header does not begin with '{'");
    try {
      return parse_json(text);
    } catch (const DataError& error) {
      fail(ModelFault::kBadHeader, fmt::format("header: {}", error.what()));
    }
  }

  Range range(const std::string& name, const Json& json) const {
    const std::string what = fmt::format("tensor {}", shown(name));
    Range range;
    range.entry.name = name;
    const Json& dtype = member(json, "dtype", what);
    if (!dtype.is_string())
      fail(ModelFault::kBadHeader, fmt::format("{}: dtype is no string", what));
    range.entry.dtype = dtype.get<std::string>();
    range.entry.shape = shape(member(json, "shape", what), what);
    const Json& offsets = member(json, "data_offsets", what);
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail(ModelFault::kBadHeader,
           fmt::format("{}: data_offsets are not two unsigned integers", what));
    }
    range.begin = offsets[0].get<std::uint64_t>();
    range.end = offsets[1].get<std::uint64_t>();
    const std::int64_t bytes = storage_bytes(range.entry, what);
    if (range.end < range.begin || range.end - range.begin != static_cast<std::uint64_t>(bytes)) {
      fail(ModelFault::kBadOffsets,
           fmt::format("{}: bytes [{}, {}) for shape {} of {}, which needs {} bytes", what,
                       range.begin, range.end, shown_shape(range.entry.shape), range.entry.dtype,
                       bytes));
    }
    return range;
  }

  // Ranges cover the data without holes or overlaps.
  void check_cover(const std::vector<Range>& ordered, std::uint64_t data_bytes) const {
    std::uint64_t covered = 0;
    for (const Range& range : ordered) {
      if (range.begin != covered) {
        fail(ModelFault::kBadOffsets,
             fmt::format("tensor {}: data begin at byte {}, expected {}: {}",
                         shown(range.entry.name), range.begin, covered,
                         range.begin < covered ? "tensors overlap" : "there is a hole"));
      }
      covered = range.end;
    }
    if (covered > data_bytes) {
      fail(ModelFault::kTruncated,
           fmt::format("{} bytes of data announced, {} present; the file is cut, fetch it again",
                       covered, data_bytes));
    }
    if (covered < data_bytes) {
      fail(ModelFault::kBadOffsets,
           fmt::format("{} bytes follow the last tensor", data_bytes - covered));
    }
  }

 private:
  const Json& member(const Json& json, const char* key, const std::string& what) const {
    if (!json.is_object()) fail(ModelFault::kBadHeader, fmt::format("{}: no object", what));
    const auto found = json.find(key);
    if (found == json.end()) {
      fail(ModelFault::kBadHeader, fmt::format("{}: {} is missing", what, key));
    }
    return *found;
  }

  std::vector<std::int64_t> shape(const Json& json, const std::string& what) const {
    std::vector<std::int64_t> shape;
    if (!json.is_array()) fail(ModelFault::kBadHeader, fmt::format("{}: shape is no list", what));
    shape.reserve(json.size());
    for (const Json& extent : json) {
      constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
      if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kLargest) {
        fail(ModelFault::kBadHeader,
             fmt::format("{}: an extent of the shape is no unsigned 63-bit integer", what));
      }
      shape.push_back(extent.get<std::int64_t>());
    }
    return shape;
  }

  std::int64_t storage_bytes(const SafetensorsEntry& entry, const std::string& what) const {
    const auto* type = std::find_if(kItemTypes.begin(), kItemTypes.end(),
                                    [&](const ItemType& each) { return each.name == entry.dtype; });
    if (type == kItemTypes.end()) {
      fail(ModelFault::kBadDtype, fmt::format("{}: unknown dtype {}", what, shown(entry.dtype)));
    }
    // Empty axes count as one here, so that no order of multiplying the shape overflows later.
    std::int64_t bytes = type->bytes;
    bool overflow = false;
    for (const std::int64_t extent : entry.shape) {
      overflow |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
    }
    if (overflow) {
      fail(ModelFault::kBadShape, fmt::format("{}: shape {} has more bytes than fit into 63 bits",
                                              what, shown_shape(entry.shape)));
    }
    const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
    return empty ? 0 : bytes;
  }

  const std::string& name_;
};

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<MappedFile>(path);
  SafetensorsFile file = parse(mapping->bytes(), path.string());
  file.file_ = std::move(mapping);
  return file;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  const Header header(name);
  if (bytes.size() < kLengthBytes) {
    header.fail(ModelFault::kTruncated,
                fmt::format("{} bytes, not even the 8 of the header's length", bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::span<const std::byte> rest = bytes.subspan(kLengthBytes);
  if (length == 0 || length > kLongestHeader) {
    header.fail(ModelFault::kBadHeader,
                fmt::format("header of {} bytes, expected 1 to {}", length, kLongestHeader));
  }
  if (length > rest.size()) {
    header.fail(ModelFault::kTruncated,
                fmt::format("header of {} bytes announced, {} present; the file is cut, fetch it "
                            "again",
                            length, rest.size()));
  }
  const Json json = header.parse({reinterpret_cast<const char*>(rest.data()), length});
  const std::span<const std::byte> data = rest.subspan(length);

  std::vector<Range> ranges;
  for (const auto& [key, value] : json.items()) {
    if (key != "__metadata__") ranges.push_back(header.range(key, value));
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  header.check_cover(ranges, data.size());

  SafetensorsFile file;
  file.name_ = name;
  file.entries_.reserve(ranges.size());
  for (Range& range : ranges) {
    range.entry.bytes = data.subspan(range.begin, range.end - range.begin);
    file.entries_.push_back(std::move(range.entry));
  }
  return file;
}

Tensor SafetensorsFile::weights(const SafetensorsEntry& entry) const {
  return as_weights(entry, name_);
}

Tensor as_weights(const SafetensorsEntry& entry, const std::string& file) {
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    if (entry.dtype == name_of(type)) return {type, entry.shape, entry.bytes};
  }
  throw ModelError(ModelFault::kBadDtype,
                   fmt::format("{}: tensor {} holds {}; weights are read from F32, F16 and BF16",
                               file, shown(entry.name), entry.dtype));
}

}  // namespace asdbench
