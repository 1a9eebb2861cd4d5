// Feeds bytes to the tokenizer.json reader: a usable tokenizer or a ModelError, whatever the file.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "eval/core/error.h"
#include "runners/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("asdbench_fuzz_" + std::to_string(getpid()) + "_tokenizer.json");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const asdbench::Tokenizer tokenizer(asdbench::read_tokenizer_json(file));
    const auto ids = tokenizer.encode_full("It's 12 o'clock\n\n <|im_end|> caf\u00e9 \xFF");
    tokenizer.decode(ids);
    for (const asdbench::TokenId id : ids) {
      if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
    }
  } catch (const asdbench::ModelError&) {
  }
  std::filesystem::remove(file);
  return 0;
}
