// Any bytes as a CSV file: records or a DataError, nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "tasks/common/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t columns = data[0] % 8 + 1;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::size_t bytes = 0;
  try {
    asdbench::parse_csv(content, "fuzz", columns, [&](const asdbench::CsvRow& row) {
      ASDBENCH_CHECK(row.fields().size() == columns, "every record has all columns");
      for (const std::string& field : row.fields()) bytes += field.size();
    });
  } catch (const asdbench::DataError&) {
  }
  ASDBENCH_CHECK(bytes <= size, "fields hold no more than the file");
  return 0;
}
