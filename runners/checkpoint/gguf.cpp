// Reads the GGUF container (specs: targets, section 10.1) from bytes that may be hostile.
#include "runners/checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"

namespace asdbench {
namespace {

enum class ValueType : std::int32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// ggml holds at most four axes.
constexpr std::uint32_t kMostDimensions = 4;
constexpr std::uint64_t kDefaultAlignment = 32;
// Array elements are widened to 8 bytes and more; the largest vocabularies have under 2^20 entries.
constexpr std::uint64_t kMostArrayElements = std::uint64_t{1} << 24;
// No file is this large: a length beyond it is a damaged header rather than a cut file.
constexpr std::uint64_t kImpossibleLength = std::uint64_t{1} << 48;
// A key's length, its value's type and at least one byte; a name's length, rank, type and offset.
constexpr std::uint64_t kLeastKeyBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[noreturn]] void fail(ModelFault fault, const std::string& message) const {
    throw ModelError(fault, fmt::format("{}: {}", name_, message));
  }

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  // Refuses `count` items of at least `item_bytes` that cannot follow.
  void need(std::uint64_t count, std::uint64_t item_bytes, std::string_view what) const {
    if (count <= remaining() / item_bytes) return;
    fail(
        count >= kImpossibleLength ? ModelFault::kBadHeader : ModelFault::kTruncated,
        fmt::format("{} at byte {}: {} x {} bytes announced, {} bytes are left; the file is cut or "
                    "damaged, fetch it again",
                    what, position_, count, item_bytes, remaining()));
  }

  template <typename T>
  T number(std::string_view what) {
    need(1, sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }

  bool boolean(std::string_view what) {
    const auto byte = number<std::uint8_t>(what);
    if (byte > 1) {
      fail(ModelFault::kBadHeader, fmt::format("{}: byte {} where a bool is 0 or 1", what, byte));
    }
    return byte == 1;
  }

  std::string string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    need(length, 1, what);
    std::string text(reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return text;
  }

  GgufValue value(ValueType type, std::string_view what) {
    switch (type) {
      case ValueType::kU8:
        return std::uint64_t{number<std::uint8_t>(what)};
      case ValueType::kI8:
        return std::int64_t{number<std::int8_t>(what)};
      case ValueType::kU16:
        return std::uint64_t{number<std::uint16_t>(what)};
      case ValueType::kI16:
        return std::int64_t{number<std::int16_t>(what)};
      case ValueType::kU32:
        return std::uint64_t{number<std::uint32_t>(what)};
      case ValueType::kI32:
        return std::int64_t{number<std::int32_t>(what)};
      case ValueType::kF32:
        return double{number<float>(what)};
      case ValueType::kBool:
        return boolean(what);
      case ValueType::kString:
        return string(what);
      case ValueType::kArray:
        return array(what);
      case ValueType::kU64:
        return number<std::uint64_t>(what);
      case ValueType::kI64:
        return number<std::int64_t>(what);
      case ValueType::kF64:
        return number<double>(what);
    }
    fail(ModelFault::kBadHeader,
         fmt::format("{}: value type {} is unknown", what, static_cast<std::int32_t>(type)));
  }

 private:
  template <typename Stored, typename Kept>
  std::vector<Kept> numbers(std::uint64_t count, std::string_view what) {
    need(count, sizeof(Stored), what);
    std::vector<Kept> values;
    values.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(number<Stored>(what));
    return values;
  }

  GgufValue array(std::string_view what) {
    const auto type = static_cast<ValueType>(number<std::int32_t>(what));
    const auto count = number<std::uint64_t>(what);
    need(count, 1, what);
    if (count > kMostArrayElements) {
      fail(ModelFault::kUnsupported, fmt::format("{}: an array of {} elements; at most {} are read",
                                                 what, count, kMostArrayElements));
    }
    switch (type) {
      case ValueType::kU8:
        return numbers<std::uint8_t, std::uint64_t>(count, what);
      case ValueType::kI8:
        return numbers<std::int8_t, std::int64_t>(count, what);
      case ValueType::kU16:
        return numbers<std::uint16_t, std::uint64_t>(count, what);
      case ValueType::kI16:
        return numbers<std::int16_t, std::int64_t>(count, what);
      case ValueType::kU32:
        return numbers<std::uint32_t, std::uint64_t>(count, what);
      case ValueType::kI32:
        return numbers<std::int32_t, std::int64_t>(count, what);
      case ValueType::kF32:
        return numbers<float, double>(count, what);
      case ValueType::kU64:
        return numbers<std::uint64_t, std::uint64_t>(count, what);
      case ValueType::kI64:
        return numbers<std::int64_t, std::int64_t>(count, what);
      case ValueType::kF64:
        return numbers<double, double>(count, what);
      case ValueType::kBool: {
        std::vector<bool> values;
        for (std::uint64_t i = 0; i < count; ++i) values.push_back(boolean(what));
        return values;
      }
      case ValueType::kString: {
        need(count, sizeof(std::uint64_t), what);
        std::vector<std::string> values;
        values.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i) values.push_back(string(what));
        return values;
      }
      case ValueType::kArray:
        fail(ModelFault::kUnsupported, fmt::format("{}: arrays of arrays are not read", what));
    }
    fail(ModelFault::kBadHeader, fmt::format("{}: array of unknown element type {}", what,
                                             static_cast<std::int32_t>(type)));
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::uint64_t position_ = 0;
};

std::uint32_t read_version(Reader& in) {
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF", little-endian
  const auto magic = in.number<std::uint32_t>("magic");
  if (magic != kMagic) {
    in.fail(ModelFault::kBadHeader,
            fmt::format("no GGUF file: it begins with bytes {:08x}, expected {:08x} (\"GGUF\")",
                        __builtin_bswap32(magic), __builtin_bswap32(kMagic)));
  }
  const auto version = in.number<std::uint32_t>("version");
  if (version != 2 && version != 3) {
    in.fail(ModelFault::kBadVersion,
            fmt::format("GGUF version {}{}; versions 2 and 3, little-endian, are read", version,
                        version != 0 && version % 0x10000 == 0 ? " (a big-endian file?)" : ""));
  }
  return version;
}

std::uint64_t read_count(Reader& in, std::uint64_t least_bytes, std::string_view what) {
  const auto count = in.number<std::int64_t>(what);
  if (count < 0) in.fail(ModelFault::kBadHeader, fmt::format("{} is {}", what, count));
  in.need(static_cast<std::uint64_t>(count), least_bytes, what);
  return static_cast<std::uint64_t>(count);
}

std::map<std::string, GgufValue, std::less<>> read_metadata(Reader& in, std::uint64_t count) {
  std::map<std::string, GgufValue, std::less<>> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = in.string(fmt::format("metadata key {}", i));
    const std::string what = fmt::format("metadata {}", shown(key));
    const auto type = static_cast<ValueType>(in.number<std::int32_t>(what));
    if (metadata.find(key) != metadata.end()) {
      in.fail(ModelFault::kBadHeader, fmt::format("{} occurs twice", what));
    }
    metadata.emplace(key, in.value(type, what));
  }
  return metadata;
}

std::uint64_t read_alignment(const Reader& in,
                             const std::map<std::string, GgufValue, std::less<>>& metadata) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kDefaultAlignment;
  const auto* alignment = std::get_if<std::uint64_t>(&found->second);
  if (alignment == nullptr || !std::has_single_bit(*alignment)) {
    in.fail(ModelFault::kBadHeader,
            alignment == nullptr
                ? "general.alignment is no unsigned integer"
                : fmt::format("general.alignment is {}, expected a power of two", *alignment));
  }
  return *alignment;
}

// A tensor's entry before its place in the file is known.
struct Entry {
  std::string name;
  WeightType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;
  std::uint64_t offset;
};

// Bytes of a tensor. Source: specs, targets, section 10.1.
std::uint64_t storage_bytes(const Reader& in, const std::string& what, WeightType type,
                            const std::vector<std::int64_t>& shape) {
  const BlockSize block = block_size(type);
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (row % block.values != 0) {
    in.fail(ModelFault::kBadShape,
            fmt::format("{}: rows of {} values; {} stores them in blocks of {}", what, row,
                        name_of(type), block.values));
  }
  // Empty axes count as one here, so that no order of multiplying the shape overflows later.
  std::int64_t elements = 1;
  bool overflow = false;
  for (const std::int64_t extent : shape) {
    overflow |= __builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements);
  }
  std::int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(elements / block.values, block.bytes, &bytes);
  if (overflow) {
    in.fail(ModelFault::kBadShape,
            fmt::format("{}: shape {} has more elements than fit into 63 bits", what,
                        shown_shape(shape)));
  }
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

Entry read_entry(Reader& in, std::uint64_t index) {
  Entry entry;
  entry.name = in.string(fmt::format("name of tensor {}", index));
  const std::string what = fmt::format("tensor {}", shown(entry.name));
  const auto dimensions = in.number<std::uint32_t>(what);
  if (dimensions > kMostDimensions) {
    in.fail(ModelFault::kBadShape,
            fmt::format("{}: {} dimensions, at most {} exist", what, dimensions, kMostDimensions));
  }
  for (std::uint32_t axis = 0; axis < dimensions; ++axis) {
    const auto extent = in.number<std::int64_t>(what);
    if (extent < 0) {
      in.fail(ModelFault::kBadShape, fmt::format("{}: dimension {} is {}", what, axis, extent));
    }
    entry.shape.push_back(extent);
  }
  // The file lists the fastest axis first, we the slowest.
  std::reverse(entry.shape.begin(), entry.shape.end());
  const auto id = in.number<std::int32_t>(what);
  const std::optional<WeightType> type = weight_type_of_id(id);
  if (!type) {
    in.fail(ModelFault::kBadDtype,
            fmt::format("{}: element type {}; readable are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, "
                        "Q8_0, Q4_K, Q5_K and Q6_K",
                        what, id));
  }
  entry.type = *type;
  entry.bytes = storage_bytes(in, what, entry.type, entry.shape);
  entry.offset = in.number<std::uint64_t>(what);
  return entry;
}

std::vector<Entry> read_entries(Reader& in, std::uint64_t count) {
  std::vector<Entry> entries;
  std::set<std::string, std::less<>> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry = read_entry(in, i);
    if (!names.insert(entry.name).second) {
      in.fail(ModelFault::kDuplicateTensor,
              fmt::format("tensor {} occurs twice", shown(entry.name)));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void check_places(const Reader& in, const std::vector<Entry>& entries, std::uint64_t alignment,
                  std::uint64_t data_bytes) {
  for (const Entry& entry : entries) {
    const std::string what = fmt::format("tensor {}", shown(entry.name));
    if (entry.offset % alignment != 0) {
      in.fail(ModelFault::kBadOffsets,
              fmt::format("{}: offset {} is no multiple of {}", what, entry.offset, alignment));
    }
    if (entry.offset > data_bytes || entry.bytes > data_bytes - entry.offset) {
      in.fail(entry.offset >= kImpossibleLength ? ModelFault::kBadOffsets : ModelFault::kTruncated,
              fmt::format("{}: {} bytes at offset {}, but the file has {} bytes of tensor data; it "
                          "is cut or damaged, fetch it again",
                          what, entry.bytes, entry.offset, data_bytes));
    }
  }
  std::vector<const Entry*> ordered;
  for (const Entry& entry : entries) {
    if (entry.bytes > 0) ordered.push_back(&entry);
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    if (ordered[i - 1]->offset + ordered[i - 1]->bytes > ordered[i]->offset) {
      in.fail(ModelFault::kBadOffsets,
              fmt::format("tensors {} and {} overlap", shown(ordered[i - 1]->name),
                          shown(ordered[i]->name)));
    }
  }
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<MappedFile>(path);
  GgufFile file = parse(mapping->bytes(), path.string());
  file.file_ = std::move(mapping);
  return file;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  Reader in(bytes, name);
  GgufFile file;
  file.name_ = name;
  file.version_ = read_version(in);
  const std::uint64_t tensors = read_count(in, kLeastTensorBytes, "number of tensors");
  const std::uint64_t keys = read_count(in, kLeastKeyBytes, "number of metadata keys");
  file.metadata_ = read_metadata(in, keys);
  const std::uint64_t alignment = read_alignment(in, file.metadata_);
  std::vector<Entry> entries = read_entries(in, tensors);

  const std::uint64_t padding = (alignment - in.position() % alignment) % alignment;
  const std::uint64_t data_bytes = in.remaining() > padding ? in.remaining() - padding : 0;
  check_places(in, entries, alignment, data_bytes);
  const std::span<const std::byte> data = bytes.last(data_bytes);
  for (Entry& entry : entries) {
    file.tensors_.push_back(
        {std::move(entry.name),
         {entry.type, std::move(entry.shape), data.subspan(entry.offset, entry.bytes)}});
  }
  return file;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

namespace {

[[noreturn]] void fail_key(const std::string& name, std::string_view key, std::string_view what) {
  throw ModelError(ModelFault::kBadConfig,
                   fmt::format("{}: metadata {} {}", name, shown(key), what));
}

template <typename Kind>
const Kind& require(const GgufValue* value, const std::string& name, std::string_view key,
                    std::string_view kind) {
  if (value == nullptr) fail_key(name, key, fmt::format("is missing, expected {}", kind));
  const Kind* typed = std::get_if<Kind>(value);
  if (typed == nullptr) fail_key(name, key, fmt::format("is no {}", kind));
  return *typed;
}

std::int64_t to_signed(std::uint64_t value, const std::string& name, std::string_view key) {
  if (!std::in_range<std::int64_t>(value)) {
    fail_key(name, key, fmt::format("is {}, which is too large", value));
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value != nullptr) {
    if (const auto* number = std::get_if<std::uint64_t>(value)) {
      return to_signed(*number, name_, key);
    }
  }
  return require<std::int64_t>(value, name_, key, "integer");
}

double GgufFile::real(std::string_view key) const {
  return require<double>(find(key), name_, key, "floating-point number");
}

const std::string& GgufFile::text(std::string_view key) const {
  return require<std::string>(find(key), name_, key, "string");
}

const std::vector<std::string>& GgufFile::texts(std::string_view key) const {
  return require<std::vector<std::string>>(find(key), name_, key, "array of strings");
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value != nullptr) {
    if (const auto* numbers = std::get_if<std::vector<std::uint64_t>>(value)) {
      std::vector<std::int64_t> converted;
      converted.reserve(numbers->size());
      for (const std::uint64_t number : *numbers) {
        converted.push_back(to_signed(number, name_, key));
      }
      return converted;
    }
  }
  return require<std::vector<std::int64_t>>(value, name_, key, "array of integers");
}

}  // namespace asdbench
