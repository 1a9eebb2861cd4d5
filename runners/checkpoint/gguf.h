// The GGUF container: metadata and a list of tensors, every size checked before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/mapped_file.h"

namespace asdbench {

/// Arrays keep their element kind; strings are copied out of the file.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string,
                               std::vector<std::uint64_t>, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<bool>, std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  Tensor tensor;
};

/// An opened container; tensors point into the mapping. Source: specs, targets, section 10.
class GgufFile {
 public:
  /// ModelError with the fault of the shared fixtures; never reads outside the file, never
  /// allocates by a size that the file cannot hold.
  static GgufFile open(const std::filesystem::path& path);
  static GgufFile parse(std::span<const std::byte> bytes,
                        const std::string& name);  // bytes must outlive the object

  std::uint32_t version() const { return version_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  /// Typed access; ModelError kBadConfig when absent or of another kind. Any integer width is
  /// accepted.
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  const GgufValue* find(std::string_view key) const;

 private:
  std::shared_ptr<MappedFile> file_;
  std::uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::string name_;
};

}  // namespace asdbench
