#include "checkpoints/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace tupelo {
namespace {

EVP_MD_CTX* as_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

void check(int result, const char* call) {
  if (result != 1) {
    throw std::runtime_error(std::string("OpenSSL refused ") + call);
  }
}

}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(as_context(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr, "EVP_MD_CTX_new");
  check(EVP_DigestInit_ex(as_context(context_.get()), EVP_sha256(), nullptr), "EVP_DigestInit_ex");
}

void Sha256::update(const void* bytes, std::size_t count) {
  check(EVP_DigestUpdate(as_context(context_.get()), bytes, count), "EVP_DigestUpdate");
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(as_context(context_.get()), digest.data(), &size), "EVP_DigestFinal_ex");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace tupelo
