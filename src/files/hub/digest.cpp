#include "src/files/hub/digest.h"

#include <fmt/format.h>

#include <array>
#include <new>

#include "src/base/error.h"
#include "src/files/hub/system_libraries.h"

namespace ferry::hub {
namespace {

void check(int result) {
  if (result != 1)
    throw Error(Fault::machine, "hub.digest", "libcrypto refuses to compute a sum of a file",
                "is it set to a mode without SHA-1?");
}

EVP_MD_CTX* raw(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

void Digest::Free::operator()(Context* context) const {
  crypto().context_free(raw(context));
}

Digest::Digest(const void* kind)
    : context_(reinterpret_cast<Context*>(crypto().context_new())) {  // NOLINT: opaque to callers
  if (!context_) throw std::bad_alloc();
  check(crypto().digest_init(raw(context_.get()), static_cast<const EVP_MD*>(kind), nullptr));
}

Digest Digest::sha256() {
  return Digest(crypto().sha256());
}

Digest Digest::git_blob(int64_t n_bytes) {
  Digest digest(crypto().sha1());
  const std::string head = fmt::format("blob {}", n_bytes);
  digest.add({head.c_str(), head.size() + 1});  // with the zero at its end
  return digest;
}

void Digest::add(std::string_view bytes) {
  check(crypto().digest_update(raw(context_.get()), bytes.data(), bytes.size()));
}

std::string Digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int n_bytes = 0;
  check(crypto().digest_final(raw(context_.get()), sum.data(), &n_bytes));
  std::string text;
  for (unsigned int i = 0; i < n_bytes; ++i)
    text += fmt::format("{:02x}", sum[i]);
  return text;
}

}  // namespace ferry::hub
