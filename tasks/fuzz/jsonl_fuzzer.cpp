// Any bytes as a data file, packed or not: rows or a DataError, nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto read = [](const asdbench::JsonlRow& row) {
    row.text("question");
    row.text("answer");
  };
  try {
    asdbench::parse_jsonl(content, "fuzz", read);
  } catch (const asdbench::DataError&) {
  }
  try {
    asdbench::parse_json_array(content, "fuzz", read);
  } catch (const asdbench::DataError&) {
  }
  constexpr std::size_t kMostBytes = 1 << 16;
  try {
    ASDBENCH_CHECK(asdbench::gunzip(content, kMostBytes, "fuzz").size() <= kMostBytes, "bounded");
  } catch (const asdbench::DataError&) {
  }
  return 0;
}
