// SHA-256 (OpenSSL) of bytes, files and token lists.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "eval/core/token_id.h"

namespace asdbench {

/// An incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(std::string_view bytes);
  /// 32 raw bytes; the object must not be used afterwards.
  std::array<std::uint8_t, 32> finish();
  /// 64 lower-case hex digits; the object must not be used afterwards.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hex digest of `bytes`.
std::string sha256_hex(std::string_view bytes);

/// Hex digest of a file's content, read in pieces. DataError when it cannot be read.
std::string sha256_file(const std::filesystem::path& path);

/// Hex digest of ids as 32-bit little-endian words (specs: measurement, section 5).
std::string sha256_tokens(std::span<const TokenId> tokens);

}  // namespace asdbench
