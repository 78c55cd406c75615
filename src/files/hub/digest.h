#pragma once
// The sums by which a hub names the bytes of its files.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::hub {

/** Over bytes as they come:
 *
 *   Digest digest = Digest::git_blob(n_bytes);
 *   digest.add(bytes);
 *   digest.hex() == file.blob_id
 */
class Digest {
 public:
  static Digest sha256();
  /** SHA-1 of git's form of a file: its size in front. */
  static Digest git_blob(int64_t n_bytes);

  void add(std::string_view bytes);
  /** Lower case; nothing can be added after it. */
  std::string hex();

 private:
  struct Context;
  struct Free {
    void operator()(Context* context) const;
  };
  explicit Digest(const void* kind);

  std::unique_ptr<Context, Free> context_;
};

}  // namespace ferry::hub
