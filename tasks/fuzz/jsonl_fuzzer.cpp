// Any bytes as a data file: rows or a DataError, nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    asdbench::parse_jsonl(content, "fuzz", [](const asdbench::JsonlRow& row) {
      row.text("question");
      row.text("answer");
    });
  } catch (const asdbench::DataError&) {
  }
  return 0;
}
