// SHA-256 over OpenSSL's EVP interface.
#include "eval/core/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <fstream>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  ASDBENCH_CHECK(state_->context != nullptr, "no memory for a digest");
  ASDBENCH_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
                 "SHA-256 is not available");
}

Sha256::~Sha256() = default;

Sha256& Sha256::update(std::string_view bytes) {
  ASDBENCH_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1,
                 "digest update failed");
  return *this;
}

std::array<std::uint8_t, 32> Sha256::finish() {
  std::array<std::uint8_t, 32> bytes{};
  unsigned int size = 0;
  ASDBENCH_CHECK(
      EVP_DigestFinal_ex(state_->context, bytes.data(), &size) == 1 && size == bytes.size(),
      "digest failed");
  return bytes;
}

std::string Sha256::finish_hex() {
  std::string text;
  text.reserve(64);
  for (const std::uint8_t byte : finish()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::string_view bytes) { return Sha256().update(bytes).finish_hex(); }

std::string sha256_file(const std::filesystem::path& path) {
  std::error_code error;
  // A pipe would block for ever.
  const bool regular = std::filesystem::is_regular_file(path, error);
  std::ifstream in;
  if (regular) in.open(path, std::ios::binary);
  if (!regular || !in) {
    throw DataError(fmt::format("{}: cannot be read", path.string()));
  }
  Sha256 digest;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.update({buffer.data(), static_cast<std::size_t>(in.gcount())});
  }
  if (in.bad())
    throw DataError(fmt::format("{}: reading failed before the end of the file", path.string()));
  return digest.finish_hex();
}

std::string sha256_tokens(std::span<const TokenId> tokens) {
  Sha256 digest;
  for (const TokenId token : tokens) {
    const auto word = static_cast<std::uint32_t>(token);
    const std::array<char, 4> bytes = {
        static_cast<char>(word & 0xff), static_cast<char>(word >> 8 & 0xff),
        static_cast<char>(word >> 16 & 0xff), static_cast<char>(word >> 24)};
    digest.update({bytes.data(), bytes.size()});
  }
  return digest.finish_hex();
}

}  // namespace asdbench
