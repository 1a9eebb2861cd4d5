// Feeds bytes to the bounded JSON parser: it returns a tree or raises DataError, whatever it is
// given.
#include <cstdint>
#include <string_view>

#include "eval/core/error.h"
#include "eval/core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto value = asdbench::parse_json({reinterpret_cast<const char*>(data), size});
    // What was read is written and read again to the same value.
    if (asdbench::parse_json(value.dump()) != value) __builtin_trap();
  } catch (const asdbench::DataError&) {
  }
  return 0;
}
