#include "data/content_digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "data/regular_file.h"

namespace tupelo {
namespace {

void check(bool succeeded) {
  if (!succeeded) throw std::runtime_error("OpenSSL could not compute SHA-256");
}

}  // namespace

struct ContentDigest::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free};
};

ContentDigest::ContentDigest() : state_(std::make_unique<State>()) {
  check(state_->context != nullptr &&
        EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

ContentDigest::~ContentDigest() = default;

void ContentDigest::update(const void* data, std::size_t bytes) {
  check(EVP_DigestUpdate(state_->context.get(), data, bytes) == 1);
}

ContentDigest::Bytes ContentDigest::finish() {
  Bytes digest;
  check(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1);
  // Without a new type the context keeps the algorithm it has already looked up.
  check(EVP_DigestInit_ex(state_->context.get(), nullptr, nullptr) == 1);
  return digest;
}

std::string ContentDigest::finish_hex() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : finish()) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string sha256_hex_of(const void* data, std::size_t bytes) {
  ContentDigest digest;
  digest.update(data, bytes);
  return digest.finish_hex();
}

std::string sha256_hex_of(const RegularFile& file) {
  ContentDigest digest;
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t offset = 0; offset < file.bytes(); offset += block.size()) {
    block.resize(std::min<std::uint64_t>(block.size(), file.bytes() - offset));
    file.read(offset, block);
    digest.update(block.data(), block.size());
  }
  return digest.finish_hex();
}

}  // namespace tupelo
